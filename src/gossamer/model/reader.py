"""Bytes of a .tflite file → `Model`. Reading is checking the structure: nothing is believed before it is checked.

A table is decoded by a function made for its class and its layout (the vtable): one `struct` call fetches everything
that lies inline, then each field is converted. Tables of one kind share a vtable, so a model needs a handful of such
functions; they are kept for the next model, and their code for the next process. ``generate`` shows the source of one.

Weights are never touched: vectors of bytes and of floats become views. Vectors and tables that several tables share
are decoded once, and the bytes decoded are counted, so that time and memory stay in proportion to the file even if
its vectors overlap. Recursion needs no limit, since no table type of the schema contains itself.
"""

from __future__ import annotations

import marshal
import mmap
import os
import sys
from collections.abc import Callable
from struct import Struct
from struct import error as StructError
from types import CodeType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from gossamer import disk_cache
from gossamer.config import user_directory
from gossamer.errors import ModelError
from gossamer.model.model import Model
from gossamer.phases import phase
from gossamer.schema.fields import Field, Scalar, Table, boolean, i32, i64, u8, u16, u32
from gossamer.schema.tables import FILE_IDENTIFIER

if TYPE_CHECKING:
    from typing_extensions import Buffer

T = TypeVar("T", bound=Table)
Decode = Callable[["_Reading", int], Any]

MAX_FLATBUFFER = (1 << 31) - 1
"""Bytes: offsets of a FlatBuffer reach no further; what lies behind belongs to the file, not to the FlatBuffer."""

MAX_LAYOUTS = 1000
"""Layouts (pairs of table class and vtable) that a file may use; each costs a function. Real models use about 20."""

SHORT = 8
"""Vectors up to this length cost about as much as the reference to them, and are not worth remembering."""

u32_at = Struct("<I").unpack_from
i32_at = Struct("<i").unpack_from
u16_at = Struct("<H").unpack_from


class ModelFile(NamedTuple):
    """A model file that is mapped, and read when somebody asks for what is in it.

    ``identity`` says where it is stored, its size and the time of its last change.
    """

    path: str
    content: memoryview
    identity: str


class _Damage(Exception):
    """Why a file cannot be read, at which byte, and the way there from the root; completed on the way up."""

    def __init__(self, reason: str, at: int) -> None:
        self.reason = reason
        self.at = at
        self.path: list[str] = []

    def __str__(self) -> str:
        return f"{''.join(self.path).lstrip('.') or 'root table'}: {self.reason}"


class _Kind:
    """What a reading knows of one table class: tables by position, decoding functions by position of the vtable."""

    __slots__ = ("cls", "decoders", "known")

    def __init__(self, cls: type[Table]) -> None:
        self.cls = cls
        self.known: dict[int, Table] = {}
        self.decoders: dict[int, Decode] = {}


class _Kinds(dict[type[Table], _Kind]):
    def __missing__(self, cls: type[Table]) -> _Kind:
        kind = self[cls] = _Kind(cls)
        return kind


class _Reading:
    """One pass over one FlatBuffer: its bytes, what was decoded, and how many bytes may still be decoded."""

    __slots__ = ("budget", "data", "kinds", "known", "layouts", "left", "limit", "strange", "strings", "whole")

    def __init__(self, data: memoryview) -> None:
        self.data = data
        self.limit = len(data)
        self.whole = np.frombuffer(data, np.uint8)
        # A file without overlaps is decoded once; the rest is for the odd table that is read under two types.
        self.budget = self.left = 2 * self.limit + (1 << 16)
        self.kinds = _Kinds()
        self.known: dict[tuple[Any, int], Any] = {}
        self.strings: dict[int, str] = {}
        self.layouts = 0
        self.strange: dict[str, int] = {}

    def spend(self, count: int, at: int) -> None:
        """Counts decoded bytes. Raises `_Damage` when they are more than a file without overlaps can hold."""
        self.left -= count
        if self.left < 0:
            raise _Damage(f"overlaps other data: more than {self.budget} bytes decoded by byte {at}", at)

    def ends_outside(self, what: str, at: int) -> _Damage:
        return _Damage(f"{what} at byte {at} ends outside the file ({self.limit} bytes)", at)


@phase("model")
def read_model(source: str | os.PathLike[str] | Buffer | ModelFile, path: str | None = None) -> Model:
    """Reads a model from a file, which is mapped, or from bytes, which are referenced; neither is copied.

    The bytes must not change while the model is used. ``path`` names bytes that came from a file. Structure is checked
    completely (`verify_model` checks the meaning). Raises `ModelError` for a file that cannot be opened, is empty, or
    is not a .tflite model; the message says where it is damaged.
    """
    identity = None
    if isinstance(source, (str, os.PathLike)):
        source = map_model(os.fspath(source))
    if isinstance(source, ModelFile):
        path, data, identity = source
    elif isinstance(source, (bytes, bytearray, memoryview, mmap.mmap)):
        data = memoryview(source)
    else:
        try:
            data = memoryview(source)
        except TypeError:
            raise TypeError(f"a model is read from a path or from bytes, got {type(source).__name__}") from None
    model = read_root(Model, data.cast("B"), FILE_IDENTIFIER).with_source(
        data.cast("B").toreadonly(), path, True, identity
    )
    keep_decoders()
    return model


@phase("file")
def map_model(path: str) -> ModelFile:
    """Maps a model file. Raises `ModelError` for one that cannot be opened, or is empty."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0))
    except OSError as error:
        raise ModelError(f"Could not open {path!r}.The model allocation is null/empty: {error.strerror}") from None
    try:
        found = os.fstat(descriptor)
        if not found.st_size:
            raise ModelError(f"mmap of size 0 requested.The model allocation is null/empty: {path!r} is an empty file")
        identity = f"{found.st_dev} {found.st_ino} {found.st_size} {found.st_mtime_ns} {found.st_ctime_ns}"
        return ModelFile(path, memoryview(mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ)), identity)
    except (OSError, ValueError) as error:
        if isinstance(error, ModelError):
            raise
        raise ModelError(f"Could not open {path!r}.The model allocation is null/empty: {error}") from None
    finally:
        os.close(descriptor)


def read_root(cls: type[T], data: memoryview, identifier: bytes | None) -> T:
    """Reads the root table of any FlatBuffer whose tables are declared with `Table`; ``identifier`` is ``None`` if its
    schema declares none. Raises `ModelError`."""
    reading = _Reading(data[:MAX_FLATBUFFER].toreadonly())
    try:
        if len(data) < 8 or identifier not in (None, bytes(data[4:8])):
            raise _Damage(_not_identified(data, identifier), 4)
        root = u32_at(data, 0)[0]
        if not root:
            raise _Damage("the offset of the root table is 0", 0)
        return read_table(reading, cls, root)  # type: ignore[no-any-return]
    except _Damage as damage:
        raise ModelError(f"The model is not a valid Flatbuffer buffer: {damage}") from None


def _not_identified(data: memoryview, identifier: bytes | None) -> str:
    if len(data) < 8:
        return f"{len(data)} bytes are too few for a model"
    hint = "this is a zip archive; extract the .tflite file" if bytes(data[:2]) == b"PK" else "is this a .tflite file?"
    return f"identifier at byte 4 is {bytes(data[4:8])!r}, must be {identifier!r}; {hint}"


def read_table(reading: _Reading, cls: type[Table], pos: int) -> Any:
    kind = reading.kinds[cls]
    item = kind.known.get(pos)
    if item is None:
        try:
            vtable = pos - i32_at(reading.data, pos)[0]
        except StructError:
            raise reading.ends_outside("table", pos) from None
        decode = kind.decoders.get(vtable) or _decoder(reading, kind, pos, vtable)
        item = kind.known[pos] = decode(reading, pos)
    return item


def read_tables(reading: _Reading, cls: type[Table], at: int) -> tuple[Any, ...]:
    data = reading.data
    n = u32_at(data, at)[0]
    start = at + 4
    if start + 4 * n > reading.limit or at & 3:
        raise _vector_damage(reading, n, at)
    if n > SHORT:
        whole: tuple[Any, ...] | None = reading.known.get((cls, at))
        if whole is not None:
            return whole
        reading.spend(4 * n, at)
    kind = reading.kinds[cls]
    known, decoders = kind.known, kind.decoders
    items: list[Table] = []
    append = items.append
    try:
        for offset in Struct(f"<{n}I").unpack_from(data, start):
            pos = start + offset
            start += 4
            item = known.get(pos)
            if item is None:
                vtable = pos - i32_at(data, pos)[0]
                decode = decoders.get(vtable) or _decoder(reading, kind, pos, vtable)
                item = known[pos] = decode(reading, pos)
            append(item)
    except (_Damage, StructError) as error:
        damage = error if isinstance(error, _Damage) else reading.ends_outside("table", pos)
        damage.path.insert(0, f"[{len(items)}]")
        damage.at = at
        raise damage from None
    whole = tuple(items)
    if n > SHORT:
        reading.known[cls, at] = whole
    return whole


def read_strings(reading: _Reading, at: int) -> tuple[str, ...]:
    n = u32_at(reading.data, at)[0]
    start = at + 4
    if start + 4 * n > reading.limit or at & 3:
        raise _vector_damage(reading, n, at)
    reading.spend(4 * n, at)
    items: list[str] = []
    try:
        for i, offset in enumerate(Struct(f"<{n}I").unpack_from(reading.data, start)):
            items.append(read_string(reading, start + 4 * i + offset))
    except (_Damage, StructError) as error:
        damage = error if isinstance(error, _Damage) else reading.ends_outside("string", at)
        damage.path.insert(0, f"[{len(items)}]")
        damage.at = at
        raise damage from None
    return tuple(items)


def read_union(reading: _Reading, members: tuple[type[Table], ...], name: str, code: int, pos: int) -> Any:
    if 0 < code <= len(members):
        return read_table(reading, members[code - 1], pos)
    if pos >= reading.limit:
        raise _Damage(f"offset points to byte {pos}, outside the file ({reading.limit} bytes)", pos)
    if code:
        reading.strange[name] = code
    return None


def read_string(reading: _Reading, at: int) -> str:
    data = reading.data
    n = u32_at(data, at)[0]
    end = at + 4 + n
    if end >= reading.limit or at & 3:
        raise _vector_damage(reading, n, at)
    if data[end]:
        raise _Damage(f"string of {n} bytes at byte {at} is not terminated by 0", at)
    if n > 4 * SHORT:
        text = reading.strings.get(at)
        if text is not None:
            return text
        reading.left -= n
        if reading.left < 0:
            reading.spend(0, at)
    # Names need not be UTF-8; whatever they are, they are written back unchanged.
    text = str(data[at + 4 : end], "utf-8", "surrogateescape")
    if n > 4 * SHORT:
        reading.strings[at] = text
    return text


def _numbers(scalar: Scalar) -> Callable[[_Reading, int], tuple[Any, ...]]:
    code, size = scalar.code, scalar.size
    unpack = [Struct(f"<{n}{code}").unpack_from for n in range(SHORT + 1)]

    def read_numbers(reading: _Reading, at: int) -> tuple[Any, ...]:
        n = u32_at(reading.data, at)[0]
        if at & 3 or at + 4 + n * size > reading.limit:
            raise _vector_damage(reading, n, at)
        if n <= SHORT:
            values: tuple[Any, ...] = unpack[n](reading.data, at + 4)
            return values
        known: tuple[Any, ...] | None = reading.known.get((code, at))
        if known is None:
            reading.spend(n * size, at)
            known = reading.known[code, at] = Struct(f"<{n}{code}").unpack_from(reading.data, at + 4)
        return known

    return read_numbers


def _array(scalar: Scalar) -> Callable[[_Reading, int], Any]:
    size, dtype, empty = scalar.size, scalar.dtype, scalar.empty

    def read_array(reading: _Reading, at: int) -> Any:
        n = u32_at(reading.data, at)[0]
        if at & 3 or at + 4 + n * size > reading.limit:
            raise _vector_damage(reading, n, at)
        return np.frombuffer(reading.data, dtype, n, at + 4) if n else empty

    return read_array


def read_data(reading: _Reading, at: int) -> Any:
    n = u32_at(reading.data, at)[0]
    if at & 3 or at + 4 + n > reading.limit:
        raise _vector_damage(reading, n, at)
    return reading.whole[at + 4 : at + 4 + n]


def _vector_damage(reading: _Reading, n: int, at: int) -> _Damage:
    if at & 3:
        return _Damage(f"vector at byte {at} is not aligned to 4 bytes", at)
    return reading.ends_outside(f"vector of {n} elements", at)


def _locate(error: Exception, reading: _Reading, pos: int, references: list[tuple[str, int]], extent: int) -> _Damage:
    """The damage with the name of the field that it was found in put before its path."""
    if pos + extent > reading.limit:
        return reading.ends_outside(f"table of {extent} bytes", pos)
    for name, offset in references:
        target = pos + offset + u32_at(reading.data, pos + offset)[0]
        if isinstance(error, _Damage):
            found = error.at == target
        else:
            found = target + 4 > reading.limit
            if found:
                error = _Damage(f"offset points to byte {target}, outside the file ({reading.limit} bytes)", pos)
        if found:
            error.path.insert(0, f".{name}")  # type: ignore[attr-defined]
            break
    if not isinstance(error, _Damage):
        error = reading.ends_outside("table", pos)
    error.at = pos
    return error


_NAMES: dict[str, Any] = {
    "locate": _locate,
    "Damage": _Damage,
    "StructError": StructError,
    "new": object.__new__,
    "set_values": vars(Table)["__dict__"].__set__,
    "read_data": read_data,
    "read_string": read_string,
    "read_strings": read_strings,
    "read_table": read_table,
    "read_tables": read_tables,
    "read_union": read_union,
}
_DECODED: dict[tuple[type[Table], bytes], Decode] = {}
_fresh: set[str] = set()
_DECODERS = f"decoders {sys.version} {marshal.version}"
"""What code is kept under: it is of this Python."""

MAX_DECODERS = 1024
"""Decoding functions whose code is kept."""

_READ_NUMBERS = {scalar.code: _numbers(scalar) for scalar in (boolean, i32, i64, u16, u32)}
_READ_ARRAY: dict[str, Callable[[_Reading, int], Any]] = {}


def _decoder(reading: _Reading, kind: _Kind, pos: int, vtable: int) -> Decode:
    """The decoding function for tables of a class with the vtable at a position; raises `_Damage` for a bad one."""
    if pos & 3:
        raise _Damage(f"table at byte {pos} is not aligned to 4 bytes", pos)
    if vtable < 0 or vtable & 1 or vtable + 2 > reading.limit:
        raise _Damage(f"table at byte {pos} has its vtable at byte {vtable}", pos)
    size = u16_at(reading.data, vtable)[0]
    if size & 1 or vtable + size > reading.limit:
        raise _Damage(f"table at byte {pos} has a vtable of {size} bytes at byte {vtable}", pos)
    layout = bytes(reading.data[vtable + 4 : vtable + size])
    decode = _DECODED.get((kind.cls, layout))
    if decode is None:
        reading.layouts += 1
        if reading.layouts > MAX_LAYOUTS:
            raise _Damage(f"more than {MAX_LAYOUTS} different vtables", pos)
        if len(_DECODED) > 4 * MAX_LAYOUTS:
            _DECODED.clear()
        decode = _DECODED[kind.cls, layout] = _compile(kind.cls, layout, pos)
    kind.decoders[vtable] = decode
    return decode


_code: dict[str, CodeType] | None = None
"""Compiled decoding functions by their source: those of earlier processes, and new ones."""


def _compile(cls: type[Table], layout: bytes, pos: int) -> Decode:
    global _code
    source, names = generate(cls, Struct(f"<{len(layout) // 2}H").unpack(layout), pos)
    if _code is None:
        _code = disk_cache.load(user_directory(), _DECODERS, disk_cache.DECODERS)
    code = _code.get(source)
    if code is None:
        code = _code[source] = compile(source, f"<layout of {cls.__name__}>", "exec")
        _fresh.add(source)
    exec(code, names)
    return names["decode"]  # type: ignore[no-any-return]


def keep_decoders() -> None:
    """Save what has been compiled, for the next process: compiling takes longer than decoding."""
    if _fresh and _code is not None:
        earlier = disk_cache.load(user_directory(), _DECODERS, disk_cache.DECODERS)
        everything = {**earlier, **{source: _code[source] for source in _fresh}}
        disk_cache.save(
            user_directory(), _DECODERS, everything if len(everything) <= MAX_DECODERS else _code, disk_cache.DECODERS
        )
        _fresh.clear()


def generate(cls: type[Table], slots: tuple[int, ...], pos: int = 0) -> tuple[str, dict[str, Any]]:
    """Source of the decoding function for tables of a class whose vtable has these slots, and the names it uses.

    Raises `_Damage` if a slot breaks the alignment of its field; ``pos`` is the position of a table for the message.
    """
    inline: list[tuple[int, str, str]] = []  # offset in the table, struct code, variable
    entries: list[str] = []
    checks: list[str] = []
    references: list[tuple[str, int]] = []
    names: dict[str, Any] = {**_NAMES, "cls": cls, "references": references}

    def fetch(offset: int, scalar: Scalar, variable: str, field: Field) -> None:
        if offset & (min(scalar.size, 4) - 1):
            raise _Damage(f".{field.name} at byte {pos + offset} is not aligned to {scalar.size} bytes", pos)
        if scalar.size == 8:
            message = f"table has {field.name} at a byte that is not a multiple of 8"
            checks.append(f"if pos + {offset} & 7: raise Damage({message!r}, pos)")
        inline.append((offset, scalar.code, variable))

    def slot(number: int) -> int:
        return slots[number] if number < len(slots) else 0

    width = 0
    for field in cls.FIELDS:
        width += field.slots
        offset, variable = slot(field.slot), f"v{field.slot}"
        if field.kind == "union":
            tag, offset = offset, slot(field.slot + 1)
            if tag:
                fetch(tag, u8, f"{variable}_code", field)
        if not offset:
            continue
        if field.kind == "scalar":
            fetch(offset, field.of, variable, field)
            value = variable
        elif field.kind == "enum":
            fetch(offset, field.of, variable, field)
            names[f"known_{field.slot}"] = field.enum._value2member_map_.get  # type: ignore[union-attr]
            value = f"known_{field.slot}({variable}, {variable})"
        else:
            fetch(offset, u32, variable, field)
            checks.append(f"if not {variable}: raise Damage('offset of {field.name} is 0', pos)")
            references.append((field.name, offset))
            target = f"pos + {offset} + {variable}"
            if field.kind in ("table", "tables"):
                names[f"of_{field.slot}"] = field.of
                value = f"read_{field.kind}(reading, of_{field.slot}, {target})"
            elif field.kind == "union":
                names[f"of_{field.slot}"] = field.of.members
                code = f"{variable}_code" if tag else "0"
                value = f"read_union(reading, of_{field.slot}, {field.name!r}, {code}, {target})"
            elif field.kind == "numbers":
                names[f"numbers_{field.slot}"] = _READ_NUMBERS[field.of.code]
                value = f"numbers_{field.slot}(reading, {target})"
            elif field.kind == "array":
                names[f"array_{field.slot}"] = _READ_ARRAY.setdefault(field.of.code, _array(field.of))
                value = f"array_{field.slot}(reading, {target})"
            else:
                value = f"read_{field.kind}(reading, {target})"
        entries.append(f"{field.name!r}: {value},")

    fetches, extent = _fetches(inline, names)
    unions = any(field.kind == "union" for field in cls.FIELDS)
    unknown = tuple(number for number in range(width, len(slots)) if slots[number])
    if unknown:
        entries.append(f"'unknown_slots': {unknown},")
    lines = [
        "def decode(reading, pos):",
        f"    reading.left -= {extent}",
        "    if reading.left < 0: reading.spend(0, pos)",
        "    try:",
        *(f"        {line}" for line in (*fetches, *checks)),
        "        values = {",
        *(f"            {entry}" for entry in entries),
        "        }",
        "    except (Damage, StructError) as error:",
        f"        raise locate(error, reading, pos, references, {extent}) from None",
    ]
    if unions:
        lines += [
            "    if reading.strange:",
            "        values['unknown_members'] = reading.strange",
            "        reading.strange = {}",
        ]
    lines += ["    item = new(cls)", "    set_values(item, values)", "    return item"]
    return "\n".join(lines), names


def _fetches(inline: list[tuple[int, str, str]], names: dict[str, Any]) -> tuple[list[str], int]:
    """The `struct` calls that fetch the inline fields, and the bytes that the table takes. A sane table needs one call;
    fields that overlap, which a vtable can say, need more."""
    runs: list[tuple[list[str], str, int]] = []  # variables, format, end
    for offset, code, variable in sorted(inline):
        for n, (variables, form, end) in enumerate(runs):
            if offset >= end:
                runs[n] = ([*variables, variable], f"{form}{offset - end}x{code}", offset + Struct(f"<{code}").size)
                break
        else:
            runs.append(([variable], f"<{offset}x{code}", offset + Struct(f"<{code}").size))
    lines = []
    for n, (variables, form, _) in enumerate(runs):
        names[f"unpack_{n}"] = Struct(form).unpack_from
        lines.append(f"{', '.join(variables)}, = unpack_{n}(reading.data, pos)")
    return lines, max([4, *(end for _, _, end in runs)])
