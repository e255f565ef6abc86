"""`Model` → bytes of a .tflite file, laid out from the same declarations that the reader decodes.

A FlatBuffer is written from its end: children first, so that each offset points forward and what several parents share
is written once. Positions in here are therefore distances from the end. Equal models give equal bytes.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from operator import is_
from struct import Struct
from struct import error as StructError
from typing import IO, TYPE_CHECKING, Any, TypeVar

import numpy as np

from gossamer.errors import ModelError
from gossamer.model.model import NO_OFFSET, Model, resolved_code
from gossamer.schema.enums import BuiltinOperator
from gossamer.schema.fields import Field, Scalar, Table, u8, u32
from gossamer.schema.tables import FILE_IDENTIFIER, Buffer, Operator, OperatorCode, SubGraph

if TYPE_CHECKING:
    from gossamer.arrays import NDArray

T = TypeVar("T", bound=Table)

MAX_FLATBUFFER = (1 << 31) - 1
"""Bytes that the offsets of a FlatBuffer reach."""

INLINE_LIMIT = MAX_FLATBUFFER - (64 << 20)
"""Bytes of data above which they are stored behind the FlatBuffer; the rest is left to tables and names."""

ALIGNMENT = 16
"""Of constant data, in bytes, inside the FlatBuffer and behind it."""

SHORT = 8
"""Vectors up to this length are not looked up among those already written."""


def write_model(model: Model, path: str | os.PathLike[str] | None = None, *, external_data: bool = False) -> bytes:
    """The bytes of a model, also written to ``path`` (completely or not at all).

    A model just as it was read gives the bytes that it was read from. Otherwise files appended to the source are
    appended again, and fields of a newer schema are left out, with one warning that names them. ``external_data``
    stores constants and custom options behind the FlatBuffer, as is always done when they exceed its 2 GB; programs
    older than TensorFlow 2.16 cannot read such files.

    Raises `ModelError` for a value that its field cannot hold and a model that exceeds 2 GB without its data,
    `OSError` if the file cannot be written.
    """
    if _is_as_read(model, external_data):
        content = bytes(model.source or b"")
    else:
        content = b"".join(_serialized(model, external_data))
        files = _files_behind(model)
        if files:
            from gossamer.model.appended import append_files

            content = append_files(content, files)
    if path is not None:
        with replaced(path) as file:
            file.write(content)
    return content


def save_model(model: Model, path: str | os.PathLike[str], *, external_data: bool = False) -> None:
    """Write a file as `write_model` does: constants go there from where they lie, so that no more memory is needed than
    for the rest. Raises what `write_model` raises."""
    with replaced(path) as file:
        if _is_as_read(model, external_data):
            file.write(model.source or b"")
            return
        file.writelines(_serialized(model, external_data))
        files = _files_behind(model)
        if files:
            from gossamer.model.appended import append_archive

            append_archive(file, files)


@contextmanager
def replaced(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A file that takes the place of another one when all is written."""
    part = f"{os.fspath(path)}.{os.getpid()}.part"
    try:
        with open(part, "w+b") as file:
            yield file
        os.replace(part, path)
    except BaseException as error:
        if isinstance(error, OSError) and error.filename == part:
            error.filename = os.fspath(path)  # nobody has asked for the other name
        if os.path.exists(part):
            os.unlink(part)
        raise


def _is_as_read(model: Model, external_data: bool) -> bool:
    return model.unchanged and model.source is not None and not external_data


def _files_behind(model: Model) -> dict[str, bytes]:
    if model.source is None and model.appended is None:
        return {}
    from gossamer.model.appended import associated_files

    return associated_files(model)


def write_root(root: Table, identifier: bytes) -> bytes:
    """Any declared table as the root of a FlatBuffer. Raises `ModelError` as `write_model`."""
    return b"".join(_written(root, identifier))


def _written(root: Table, identifier: bytes) -> list[Any]:
    """The pieces of a FlatBuffer, in their order."""
    writing = _Writing()
    pieces = writing.finish(root, identifier)
    if writing.left_out:
        warnings.warn(f"fields of a newer schema are not written: {', '.join(writing.left_out)}", stacklevel=4)
    return pieces


def _serialized(model: Model, external: bool) -> list[Any]:
    """The pieces of the file, in their order."""
    named = {entry.buffer for entry in model.metadata}  # TFLite looks for metadata only inside the FlatBuffer
    data = [model.buffer_data(i) if i else buffer.data for i, buffer in enumerate(model.buffers)]
    external = external or sum(part.size for part in data if part is not None) > INLINE_LIMIT
    outside = _Outside()

    def stored_buffer(i: int, buffer: Buffer) -> Buffer:
        part = data[i]
        if external and i and i not in named and part is not None and part.size:
            offset = outside.add(part)
            return _without(buffer, "data", offset=offset, size=part.size)
        if buffer.offset > NO_OFFSET and part is not None:
            return _without(buffer, "offset", "size", data=part)
        return buffer

    def stored_operator(operator: Operator) -> Operator:
        options = model.custom_options(operator)
        if external and options.size:
            offset = outside.add(options)
            return _without(
                operator,
                "custom_options",
                large_custom_options_offset=offset,
                large_custom_options_size=options.size,
            )
        if operator.large_custom_options_offset > NO_OFFSET and not operator.has("custom_options"):
            return _without(
                operator, "large_custom_options_offset", "large_custom_options_size", custom_options=options
            )
        return operator

    def stored_subgraph(subgraph: SubGraph) -> SubGraph:
        operators = tuple(map(stored_operator, subgraph.operators))
        return subgraph if all(map(is_, operators, subgraph.operators)) else _without(subgraph, operators=operators)

    def laid_out() -> Model:
        vectors = {
            "buffers": tuple(stored_buffer(i, buffer) for i, buffer in enumerate(model.buffers)),
            "subgraphs": tuple(map(_once(stored_subgraph), model.subgraphs)),
            "operator_codes": tuple(map(_once(both_codes), model.operator_codes)),
        }
        return _without(model, **{name: vector for name, vector in vectors.items() if model.has(name)})

    pieces = _written(laid_out(), FILE_IDENTIFIER)
    if not outside.parts:
        return pieces
    # The offsets depend on the length of the FlatBuffer, its length not on the offsets.
    outside = _Outside(sum(map(len, pieces)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pieces = _written(laid_out(), FILE_IDENTIFIER)
    return [*pieces, *outside.pieces()]


def _once(change: Callable[[T], T]) -> Callable[[T], T]:
    """The same function, which answers the same object the same way, so that what is shared stays shared."""
    known: dict[int, T] = {}

    def changed(table: T) -> T:
        if id(table) not in known:
            known[id(table)] = change(table)
        return known[id(table)]

    return changed


def _without(table: T, *names: str, **changes: Any) -> T:
    """A copy with some fields absent and others set, which still knows what the reader left out."""
    copy = type(table)()
    vars(copy).update({name: value for name, value in vars(table).items() if name not in names})
    vars(copy).update(changes)
    return copy


def both_codes(code: OperatorCode) -> OperatorCode:
    """Readers before schema 3a know only the int8 field, so both are written; codes beyond it show as a placeholder."""
    number = resolved_code(code)
    old = min(number, BuiltinOperator.PLACEHOLDER_FOR_GREATER_OP_CODES)
    if (code.builtin_code, code.deprecated_builtin_code) == (number, old):
        return code
    return _without(code, builtin_code=number, deprecated_builtin_code=int(old))


class _Outside:
    """Data behind the FlatBuffer: each part aligned, equal views stored once."""

    def __init__(self, start: int = ALIGNMENT) -> None:
        self.start = self.end = start
        self.parts: list[tuple[int, NDArray[np.uint8]]] = []
        self.known: dict[tuple[int, int], int] = {}

    def add(self, part: NDArray[np.uint8]) -> int:
        """Offset of the part in the file, in bytes."""
        key = (part.__array_interface__["data"][0], part.size)
        if key not in self.known:
            offset = -(-self.end // ALIGNMENT) * ALIGNMENT
            self.parts.append((offset, part))
            self.known[key] = offset
            self.end = offset + part.size
        return self.known[key]

    def pieces(self) -> list[Any]:
        pieces: list[Any] = []
        end = self.start
        for offset, part in self.parts:
            pieces += [bytes(offset - end), part.data]
            end = offset + part.size
        return pieces


class _Layout:
    """How a table with certain fields present lies in memory: its vtable, its alignment, one `struct` for all."""

    def __init__(self, fields: tuple[tuple[Field, Scalar, int], ...]) -> None:
        waiting = sorted(fields, key=lambda entry: (-entry[1].size, entry[2]))
        self.align = max([4, *(scalar.size for _, scalar, _ in fields)])
        self.order: list[tuple[Field, int, int]] = []  # field, slot, offset
        form, end = "<i", 4
        while waiting:
            fitting = next((n for n, entry in enumerate(waiting) if end % entry[1].size == 0), None)
            if fitting is None:
                form, end = form + "x", end + 1
                continue
            field, scalar, slot = waiting.pop(fitting)
            self.order.append((field, slot, end))
            form, end = form + scalar.code, end + scalar.size
        self.size = end
        self.pack = Struct(form).pack
        slots = [0] * (1 + max((slot for _, slot, _ in self.order), default=-1))
        for _, slot, offset in self.order:
            slots[slot] = offset
        self.vtable = Struct(f"<{2 + len(slots)}H").pack(4 + 2 * len(slots), end, *slots)


_LAYOUTS: dict[tuple[type[Table], tuple[int, ...]], _Layout] = {}


class _Writing:
    """One FlatBuffer in the making: its pieces, the last one first."""

    def __init__(self) -> None:
        self.pieces: list[Any] = []
        self.size = 0
        self.align = 4
        self.vtables: dict[bytes, int] = {}
        self.known: dict[tuple[Any, ...], int] = {}
        self.left_out: dict[str, None] = {}

    def put(self, piece: Any, size: int, align: int) -> int:
        """Puts a piece before all others, aligned; returns its position."""
        padding = -(self.size + size) % align
        if padding:
            self.pieces.append(bytes(padding))
        self.pieces.append(piece)
        self.size += padding + size
        self.align = max(self.align, align)
        return self.size

    def finish(self, root: Table, identifier: bytes) -> list[Any]:
        pos = self.table(root)
        align = max(self.align, ALIGNMENT)
        total = -(-(self.size + 8) // align) * align
        if total > MAX_FLATBUFFER:
            raise ModelError(f"the model needs a FlatBuffer of {total} bytes; offsets reach {MAX_FLATBUFFER}")
        head = u32_pack(total - pos) + identifier + bytes(total - self.size - 8)
        return [head, *reversed(self.pieces)]

    def table(self, item: Table) -> int:
        known = self.known.get((id(item),))
        if known is not None:
            return known
        cls = type(item)
        values: dict[int, Any] = {}  # by slot; a position for what is stored elsewhere
        for field in reversed(cls.FIELDS):
            if not item.has(field.name):
                continue
            value = getattr(item, field.name)
            if value is None:
                continue
            try:
                if field.kind in ("scalar", "enum"):
                    if not _is_default(value, field.default):
                        values[field.slot] = value
                elif field.kind == "union":
                    if type(value) not in field.of.codes:
                        raise TypeError(f"{type(value).__name__} is not a member of the union")
                    values[field.slot + 1] = self.table(value)
                    values[field.slot] = field.of.codes[type(value)]
                else:
                    values[field.slot] = _PUT[field.kind](self, value, field)
            except ModelError:
                raise
            except (StructError, TypeError, ValueError, AttributeError, OverflowError) as error:
                raise ModelError(f"{cls.__name__}.{field.name} cannot hold {_brief(value)}: {error}") from None
        self._leave_out(item)
        position = self._put_table(cls, values)
        self.known[(id(item),)] = position
        return position

    def _put_table(self, cls: type[Table], values: dict[int, Any]) -> int:
        key = (cls, tuple(sorted(values)))
        layout = _LAYOUTS.get(key)
        if layout is None:
            layout = _LAYOUTS[key] = _Layout(tuple(_inline(cls, slot) for slot in key[1]))
        size = layout.size
        position = self.size + size + -(self.size + size) % layout.align
        vtable = self.vtables.get(layout.vtable)
        where = position + len(layout.vtable) if vtable is None else vtable
        stored: list[Any] = [where - position]
        for field, slot, offset in layout.order:
            value = values[slot]
            if field.kind in ("scalar", "enum") or (field.kind == "union" and slot == field.slot):
                stored.append(value)
            else:
                stored.append(position - offset - value)
        try:
            piece = layout.pack(*stored)
        except StructError as error:
            raise ModelError(f"{cls.__name__} cannot hold {_misfit(layout, values)}: {error}") from None
        self.put(piece, size, layout.align)
        if vtable is None:
            self.vtables[layout.vtable] = self.put(layout.vtable, len(layout.vtable), 2)
        return position

    def _leave_out(self, item: Table) -> None:
        for slot in item.unknown_slots:
            self.left_out[f"{type(item).__name__} slot {slot}"] = None
        for name, code in item.unknown_members.items():
            self.left_out[f"{type(item).__name__}.{name} of type {code}"] = None

    def vector(self, content: Any, count: int, size: int, align: int) -> int:
        """A vector of elements in their final form: its length, then ``size`` bytes aligned to ``align``."""
        self.put(content, size, max(align, 4))
        return self.put(u32_pack(count), 4, 4)

    def shared(self, key: tuple[Any, ...], put: Callable[[], int]) -> int:
        position = self.known.get(key)
        if position is None:
            position = self.known[key] = put()
        return position

    def string(self, value: str, field: Field) -> int:
        def put() -> int:
            text = value.encode("utf-8", "surrogateescape")
            return self.vector(text + b"\0" + bytes(-(len(text) + 1) % 4), len(text), (len(text) + 4) & ~3, 4)

        return self.shared((id(value), "s"), put) if len(value) > 4 * SHORT else put()

    def strings(self, value: tuple[str, ...], field: Field) -> int:
        return self.offsets([self.string(text, field) for text in reversed(value)][::-1])

    def tables(self, value: tuple[Table, ...], field: Field) -> int:
        for item in value:
            if not isinstance(item, field.of):
                raise TypeError(f"expected {field.of.__name__}, got {type(item).__name__}")

        def put() -> int:
            return self.offsets([self.table(item) for item in reversed(value)][::-1])

        return self.shared((id(value), "t"), put) if len(value) > SHORT else put()

    def offsets(self, positions: list[int]) -> int:
        count = len(positions)
        start = self.size + 4 * count + -(self.size + 4 * count) % 4
        content = Struct(f"<{count}I").pack(*(start - 4 * i - position for i, position in enumerate(positions)))
        return self.vector(content, count, 4 * count, 4)

    def numbers(self, value: tuple[Any, ...], field: Field) -> int:
        def put() -> int:
            content = Struct(f"<{len(value)}{field.of.code}").pack(*value)
            return self.vector(content, len(value), len(content), max(field.of.size, field.align))

        return self.shared((id(value), field.of.code, field.align), put) if len(value) > SHORT else put()

    def array(self, value: Any, field: Field) -> int:
        """Bytes and arrays of numbers; the values must survive the conversion to the type of the field."""
        array = (
            np.frombuffer(value, np.uint8) if isinstance(value, (bytes, bytearray, memoryview)) else np.asarray(value)
        )
        stored = np.ascontiguousarray(array, field.of.dtype).reshape(-1)
        if (
            stored.dtype != array.dtype
            and field.of.dtype.kind in "iu"
            and not np.array_equal(stored, array.reshape(-1))
        ):
            raise ValueError(f"{array.dtype} values do not fit {field.of.dtype}")
        align = max(field.of.size, field.align)
        key = ("a", stored.__array_interface__["data"][0], stored.nbytes, align)

        def put() -> int:
            return self.vector(stored.view(np.uint8).data, stored.size, stored.nbytes, align)

        # A copy made here may give its address to the next one, so only what the model itself holds is shared.
        return self.shared(key, put) if np.shares_memory(stored, array) and stored.size > SHORT else put()


u32_pack = Struct("<I").pack

_PUT: dict[str, Callable[[_Writing, Any, Field], int]] = {
    "string": _Writing.string,
    "strings": _Writing.strings,
    "table": lambda writing, value, field: writing.table(_checked(value, field.of)),
    "tables": _Writing.tables,
    "numbers": _Writing.numbers,
    "array": _Writing.array,
    "data": _Writing.array,
}


def _checked(value: Any, cls: type[Table]) -> Table:
    if not isinstance(value, cls):
        raise TypeError(f"expected {cls.__name__}, got {type(value).__name__}")
    return value


def _inline(cls: type[Table], slot: int) -> tuple[Field, Scalar, int]:
    """The field of a slot, and what of it lies in the table itself."""
    field = next(field for field in cls.FIELDS if field.slot <= slot < field.slot + field.slots)
    if field.kind in ("scalar", "enum"):
        return field, field.of, slot
    return field, u8 if field.kind == "union" and slot == field.slot else u32, slot


def _is_default(value: Any, default: Any) -> bool:
    """Equal to the default in every bit: -0.0 is not 0.0."""
    return bool(value == default) and (
        not isinstance(value, float) or math.copysign(1, value) == math.copysign(1, default)
    )


def _misfit(layout: _Layout, values: dict[int, Any]) -> str:
    for field, slot, _ in layout.order:
        if field.kind in ("scalar", "enum"):
            try:
                Struct(f"<{field.of.code}").pack(values[slot])
            except StructError:
                return f"{field.name}={values[slot]!r}"
    return "a value"


def _brief(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
