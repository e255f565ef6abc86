"""Protobuf's wire format, read and written by declarations: one class for a message, one line for a field.

A declaration is all that the reader and the writer know of a message::

    class NodeDef(Message):
        name: str = string(1)
        input: tuple[str, ...] = string.repeated(3)
        attr: Mapping[str, AttrValue] = mapping(5, string, "AttrValue")

The number is that of the field in the published ``.proto`` file. A message class may be given by its name, so that
messages can contain themselves. An instance stores only the fields that are present; the others read as the default
(0, "", b"", ``()``, an empty map, ``None`` for a message).

Reading copies no `view` and no array of a fixed width: they are views of the file. Everything is checked against the
end of the message that holds it; entries of a map, and messages that are declared ``late``, when they are looked at.
What a file costs is in proportion to its size, since nothing in it can be used twice; messages nest `MAX_DEPTH` deep
at most. A singular message that is written in several parts is read as one, as the format demands; of other singular
fields the last one counts.
"""

from __future__ import annotations

import operator
import struct
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np

from gossamer.errors import ConvertError
from gossamer.schema.fields import Field as SchemaField
from gossamer.schema.fields import Table

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from gossamer.arrays import NDArray

M = TypeVar("M", bound="Message")
Span = tuple[int, int]

MAX_DEPTH = 100
"""Messages inside messages: the limit of protobuf's own readers."""

VARINT, I64, LEN, I32 = 0, 1, 2, 5
FIXED = {I64: 8, I32: 4}


class Field(SchemaField):
    """One field: its ``number``, how it is repeated (``kind``) and of what (``of``: a `Scalar` or a message class).

    Kinds: ``scalar`` and ``message`` (one), ``scalars`` (read as a tuple), ``array`` (read as a NumPy array),
    ``messages`` (a tuple), ``map`` (of an entry message with ``key`` and ``value``); what is ``late``
    is read when somebody asks for it. Of the fields with the same ``oneof`` one is present at most. ``packed`` is how
    repeated numbers are written; both ways are read.
    """

    __slots__ = ("late", "number", "oneof", "packed")

    def __init__(
        self,
        kind: str,
        number: int,
        of: Any,
        default: Any,
        oneof: str = "",
        packed: bool = False,
        late: bool = False,
    ) -> None:
        super().__init__(kind, of, default)
        self.late = late
        self.number = number
        self.oneof = oneof
        self.packed = packed

    @property
    def wire(self) -> int:
        """The wire type of one element."""
        return self.of.wire if isinstance(self.of, Scalar) else LEN


class Scalar:
    """An element type of protobuf. Calling it declares a singular field.

    ``take`` makes a value of what is on the wire (an ``int`` of a varint, else a view of the bytes), ``give`` is its
    inverse and raises `ValueError` for a value that the type cannot hold. ``dtype`` is that of an array of numbers;
    ``spread`` makes such an array of the varints of a packed field.
    """

    __slots__ = ("default", "dtype", "give", "name", "spread", "take", "wire")

    def __init__(
        self,
        name: str,
        wire: int,
        default: Any,
        take: Callable[[Any], Any],
        give: Callable[[Any], Any],
        dtype: str | None = None,
        spread: Callable[[NDArray[np.uint64]], NDArray[Any]] | None = None,
    ) -> None:
        self.name = name
        self.wire = wire
        self.default = default
        self.take = take
        self.give = give
        self.dtype = dtype
        self.spread = spread

    def __call__(self, number: int, oneof: str = "", default: Any = None) -> Any:
        return Field("scalar", number, self, self.default if default is None else default, oneof)

    def repeated(self, number: int, packed: bool | None = None) -> Any:
        """Any number of values, read as a tuple. Numbers are ``packed`` unless the ``.proto`` file says otherwise."""
        return Field("scalars", number, self, (), packed=self.wire != LEN if packed is None else packed)

    def array(self, number: int) -> Any:
        """Any number of numbers, packed, read as a read-only NumPy array."""
        empty: NDArray[Any] = np.empty(0, self.dtype)
        empty.flags.writeable = False
        return Field("array", number, self, empty, packed=True)

    def __repr__(self) -> str:
        return f"<{self.name}>"


def _whole(name: str, bits: int, signed: bool) -> Scalar:
    """An integer type that is a varint of its 64-bit two's complement."""
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    mask, sign = (1 << bits) - 1, (1 << bits - 1) if signed else 0

    def take(value: int) -> int:
        return ((value & mask) ^ sign) - sign

    def spread(values: NDArray[np.uint64]) -> NDArray[Any]:
        return values.astype(f"<u{bits // 8}").view(f"<{'i' if signed else 'u'}{bits // 8}")

    return Scalar(name, VARINT, 0, take, _within(name, low, high), f"<{'i' if signed else 'u'}{bits // 8}", spread)


def _within(name: str, low: int, high: int) -> Callable[[Any], int]:
    def give(value: Any) -> int:
        number = operator.index(value)
        if not low <= number <= high:
            raise ValueError(f"{number} is no {name}: allowed are {low} to {high}")
        return number & (1 << 64) - 1

    return give


def _zigzag(name: str, bits: int) -> Scalar:
    """A signed integer type that interleaves negative and positive numbers."""
    inside = _within(name, -(1 << bits - 1), (1 << bits - 1) - 1)

    def take(value: int) -> int:
        value &= (1 << bits) - 1
        return value >> 1 ^ -(value & 1)

    def give(value: Any) -> int:
        number = operator.index(value)
        inside(number)
        return number << 1 ^ number >> bits - 1

    def spread(values: NDArray[np.uint64]) -> NDArray[Any]:
        values = values.astype(f"<u{bits // 8}")
        result: NDArray[Any] = (values >> 1).view(f"<i{bits // 8}") ^ -(values & 1).view(f"<i{bits // 8}")
        return result

    return Scalar(name, VARINT, 0, take, give, f"<i{bits // 8}", spread)


def _fixed(name: str, wire: int, code: str, dtype: str) -> Scalar:
    """A number that takes four or eight bytes."""
    packing = struct.Struct(code)

    def take(raw: memoryview) -> Any:
        return packing.unpack(raw)[0]

    def give(value: Any) -> bytes:
        try:
            return packing.pack(value)
        except (struct.error, OverflowError):
            raise ValueError(f"{value!r} is no {name}") from None

    return Scalar(name, wire, take(memoryview(bytes(packing.size))), take, give, dtype)


def _text(raw: memoryview) -> str:
    return str(raw, "utf-8")


int32 = _whole("int32", 32, signed=True)
int64 = _whole("int64", 64, signed=True)
uint32 = _whole("uint32", 32, signed=False)
uint64 = _whole("uint64", 64, signed=False)
sint32 = _zigzag("sint32", 32)
sint64 = _zigzag("sint64", 64)
boolean = Scalar("bool", VARINT, False, bool, lambda value: int(bool(value)), "?", lambda values: values != 0)
float_ = _fixed("float", I32, "<f", "<f4")
double = _fixed("double", I64, "<d", "<f8")
fixed32 = _fixed("fixed32", I32, "<I", "<u4")
fixed64 = _fixed("fixed64", I64, "<Q", "<u8")
string = Scalar("string", LEN, "", _text, lambda value: value.encode())
bytes_ = Scalar("bytes", LEN, b"", bytes, bytes)
view = Scalar("bytes", LEN, memoryview(b""), memoryview.toreadonly, lambda value: memoryview(value).cast("B"))
"""Bytes that are read as a view of the file: for what may be large."""


def enum(enumeration: type) -> Scalar:
    """A scalar whose known values become members of ``enumeration``; unknown ones stay ``int``."""
    known: Mapping[int, Any] = enumeration._value2member_map_  # type: ignore[attr-defined]

    def take(value: int) -> Any:
        number = int32.take(value)
        return known.get(number, number)

    return Scalar("enum", VARINT, take(0), take, int32.give, int32.dtype, int32.spread)


def message(number: int, of: Any, oneof: str = "") -> Any:
    """One message, or ``None``."""
    return Field("message", number, of, None, oneof)


def messages(number: int, of: Any, late: bool = False) -> Any:
    """Any number of messages, read as a tuple; ``late`` as a sequence, when the first of them is asked for."""
    return Field("messages", number, of, (), late=late)


def mapping(number: int, key: Scalar, value: Any) -> Any:
    """A map from a scalar to a scalar or a message; of equal keys the last one counts."""
    return Field("map", number, (key, value), MappingProxyType({}), late=True)


class Message(Table):
    """A message: immutable, compared by value, made by `read` or with keyword arguments.

    Raises `TypeError` for a field that the message does not have and for two members of one ``oneof``,
    `AttributeError` when assigned to.
    """

    TAGS: ClassVar[dict[int, tuple[Field, bool, tuple[str, ...]]]] = {}
    """What may begin a field on the wire: the field, whether its numbers are packed, and the other fields of its oneof.
    Made when first needed."""

    unknown: tuple[memoryview, ...] = ()
    """Fields that the declaration does not have, as they are in the file; they are written behind the others."""

    def __init__(self, **values: Any) -> None:
        super().__init__(**values)
        choices = [field.oneof for name in values if (field := self.FIELD[name]).oneof]  # type: ignore[attr-defined]
        if len(set(choices)) < len(choices):
            raise TypeError(f"{type(self).__name__} has one of the fields of a oneof, not {', '.join(values)}")

    def which(self, oneof: str) -> str | None:
        """The name of the field of a oneof that is present."""
        for field in self.FIELDS:
            if field.oneof == oneof and field.name in self.__dict__:  # type: ignore[attr-defined]
                return field.name
        return None

    def replace(self: M, **changes: Any) -> M:
        """A copy with some fields changed. Raises `TypeError` as the class does."""
        copy = super().replace(**changes)
        copy.__dict__.update({name: self.__dict__[name] for name in ("unknown",) if name in self.__dict__})
        return copy


def fields_of(cls: type[Message]) -> tuple[Field, ...]:
    """The fields of a message class, their classes found where they were given by name."""
    fields: tuple[Field, ...] = cls.FIELDS  # type: ignore[assignment] # a message declares no other ones
    if "TAGS" not in vars(cls):
        tags = {}
        for field in fields:
            if field.kind == "map":
                key, value = field.of
                one = value(2) if isinstance(value, Scalar) else Field("message", 2, value, None, late=True)
                members = {"__module__": cls.__module__, "key": key(1), "value": one}
                field.of = type(f"{cls.__name__}.{field.name}", (Message,), members)
            elif isinstance(field.of, str):
                field.of = operator.attrgetter(field.of)(sys.modules[cls.__module__])
            others = [one.name for one in fields if one.oneof == field.oneof and one is not field and one.oneof]
            tags[field.number << 3 | field.wire] = field, False, tuple(others)
            if field.kind in ("scalars", "array") and field.wire != LEN:
                tags[field.number << 3 | LEN] = field, True, tuple(others)
        cls.TAGS = tags
    return fields


class _Damage(Exception):
    """Why a message cannot be read, and the way there from the root; completed on the way up."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        self.path: list[str] = []

    def inside(self, step: str) -> _Damage:
        """The same, seen from the message around."""
        self.path.insert(0, step)
        return self

    def __str__(self) -> str:
        return f"{'.'.join(self.path)}: {self.reason}" if self.path else self.reason


def read(cls: type[M], source: Buffer, name: str = "") -> M:
    """The message of class ``cls`` that the bytes of ``source`` are; they are referenced and must not change.

    ``name`` says in messages where the bytes come from. Raises `ConvertError` for what is no such message, with the way
    to the damage in the names of the fields and its byte; a damaged entry of a map raises it when the map is used.
    """
    data = memoryview(source).cast("B").toreadonly()
    try:
        return _read(data, cls, [(0, len(data))], MAX_DEPTH)
    except _Damage as damage:
        raise _invalid(cls.__name__, damage, name) from None


def _invalid(what: str, damage: _Damage, name: str = "") -> ConvertError:
    where = f"{name}: " if name else ""
    return ConvertError(f"{where}no valid {what} of protobuf: {damage}")


def _varint(data: memoryview, at: int, end: int) -> tuple[int, int]:
    """The number at ``at``, and where it ends."""
    value = shift = 0
    for position in range(at, min(end, at + 10)):
        byte = data[position]
        value |= (byte & 127) << shift
        if byte < 128:
            return value & (1 << 64) - 1, position + 1
        shift += 7
    raise _Damage(
        f"number at byte {at} "
        + ("takes more than 10 bytes" if end - at >= 10 else f"ends behind what holds it ({end})")
    )


def _varints(raw: memoryview, at: int) -> NDArray[np.uint64]:
    """All numbers of a packed field that begins at ``at``."""
    data = np.frombuffer(raw, np.uint8)
    last = np.flatnonzero(data < 128)
    if data.size and data[-1] > 127:
        raise _Damage(f"the numbers at bytes {at} to {at + data.size} end within one")
    first = np.concatenate([[0], last[:-1] + 1])[: last.size]
    lengths = last - first + 1
    longest = int(lengths.max(initial=0))
    if longest > 10:
        raise _Damage(f"a number at bytes {at} to {at + data.size} takes {longest} bytes; allowed are 10")
    values = np.zeros(last.size, np.uint64)
    for place in range(longest):
        some = lengths > place
        values[some] |= (data[first[some] + place] & np.uint8(127)).astype(np.uint64) << np.uint64(7 * place)
    return values


def _read(data: memoryview, cls: type[M], spans: list[Span], depth: int) -> M:
    """The message whose fields lie in these parts of the file."""
    if not depth:
        raise _Damage(f"messages at byte {spans[0][0]} are nested deeper than {MAX_DEPTH}")
    if "TAGS" not in cls.__dict__:
        fields_of(cls)
    tags = cls.TAGS
    values: dict[str, Any] = {}
    parts: dict[str, tuple[Field, list[Span]]] = {}  # of singular messages
    lists: dict[str, tuple[Field, list[Any]]] = {}
    unknown: list[Span] = []
    for at, stop in spans:
        while at < stop:
            start = at
            tag = data[at]
            at += 1
            if tag > 127:  # as a rule, tags and sizes are a byte
                tag, at = _varint(data, start, stop)
            wire = tag & 7
            first = number = 0
            if wire == VARINT:
                number, at = _varint(data, at, stop)
            else:
                if wire == LEN:
                    size = data[at] if at < stop else 128
                    at += 1
                    if size > 127:
                        size, at = _varint(data, at - 1, stop)
                elif wire in FIXED:
                    size = FIXED[wire]
                else:
                    raise _Damage(f"byte {start} begins no field: tag {tag} (wire type {wire})")
                if size > stop - at:
                    raise _Damage(f"field {tag >> 3} at byte {start} has {size} bytes, its message {stop - at}")
                first = at
                at += size
            if tag not in tags:
                _refuse_type(cls, tag, start)
                if unknown and unknown[-1][1] == start:
                    unknown[-1] = unknown[-1][0], at
                else:
                    unknown.append((start, at))
                continue
            field, packed, others = tags[tag]
            name, kind, of = field.name, field.kind, field.of
            for other in others:  # of a oneof the last field counts
                values.pop(other, None)
                parts.pop(other, None)
            try:
                if kind == "message":
                    if name in parts:
                        parts[name][1].append((first, at))
                    else:
                        parts[name] = field, [(first, at)]
                elif kind == "scalar":
                    values[name] = of.take(number if wire == VARINT else data[first:at])
                elif field.late:
                    if name not in values:
                        values[name] = (_Map if kind == "map" else _Messages)(data, cls, field, depth - 1)
                    values[name].spans.append((first, at))
                else:
                    items = lists.setdefault(name, (field, []))[1]
                    if kind == "messages":
                        items.append(_read(data, of, [(first, at)], depth - 1))
                    elif kind == "array":
                        raw: Any = number if wire == VARINT else data[first:at]
                        items.append(_numbers(of, raw, first) if packed else np.array([of.take(raw)], of.dtype))
                    elif packed:
                        items += _tuple(of, data, first, at)
                    else:
                        items.append(of.take(number if wire == VARINT else data[first:at]))
            except _Damage as damage:
                raise damage.inside(f"{name}[{len(items)}]" if kind == "messages" else name) from None
            except UnicodeDecodeError as error:
                raise _Damage(f"{name} at byte {start} is no UTF-8: {error.reason}") from None
    for name, (field, found) in parts.items():
        values[name] = found if field.late else _read_part(data, field, found, depth - 1)
    for name, (field, items) in lists.items():
        values[name] = _joined(items) if field.kind == "array" else tuple(items)
    if unknown:
        values["unknown"] = tuple([data[begin:end] for begin, end in unknown])
    result = cls.__new__(cls)
    result.__dict__.update(values)
    return result


def _read_part(data: memoryview, field: Field, spans: list[Span], depth: int) -> Message:
    try:
        return _read(data, field.of, spans, depth)  # type: ignore[no-any-return]
    except _Damage as damage:
        raise damage.inside(field.name) from None


def _refuse_type(cls: type[Message], tag: int, at: int) -> None:
    """Raises `_Damage` if the field is known with another type on the wire, or has no number."""
    for field in fields_of(cls):
        if field.number == tag >> 3:
            got, allowed = tag & 7, field.wire
            raise _Damage(f"{field.name} (field {field.number}) at byte {at} has wire type {got}, must be {allowed}")
    if not tag >> 3 or tag >> 32:
        raise _Damage(f"byte {at} begins no field: number {tag >> 3}")


class _Late:
    """Messages in these parts of the file, which are read when they are first asked for: attributes of operators are
    most of a graph's messages, and most of them are never looked at."""

    __slots__ = ("cls", "data", "depth", "field", "read", "spans")

    def __init__(self, data: memoryview, cls: type[Message], field: Field, depth: int) -> None:
        self.data = data
        self.cls = cls
        self.field = field
        self.depth = depth
        self.spans: list[Span] = []
        self.read: Any = None

    def one(self, of: type[Message], spans: list[Span], depth: int, step: str = "") -> Any:
        """A message that lies there. Raises `ConvertError` if it is damaged."""
        try:
            return _read(self.data, of, spans, depth)
        except _Damage as damage:
            raise _invalid(self.cls.__name__, damage.inside(f"{self.field.name}{step}")) from None


class _Messages(_Late, Sequence[Any]):
    """The messages of a field."""

    __slots__ = ()

    def items(self) -> tuple[Any, ...]:
        """All of them. Raises `ConvertError` if one is damaged."""
        if self.read is None:
            of, depth = self.field.of, self.depth
            self.read = tuple([self.one(of, [span], depth, f"[{n}]") for n, span in enumerate(self.spans)])
        return self.read  # type: ignore[no-any-return]

    def __getitem__(self, index: Any) -> Any:
        return self.items()[index]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.items())

    def __len__(self) -> int:
        return len(self.spans)

    def __eq__(self, other: object) -> bool:
        return self.items() == (other.items() if isinstance(other, _Messages) else other)

    __hash__ = None  # type: ignore[assignment] # like the map's

    def __repr__(self) -> str:
        return repr(self.items())


class _Map(_Late, Mapping[Any, Any]):
    """The entries of a map. Values that are messages are read one by one."""

    __slots__ = ()

    def entries(self) -> dict[Any, Any]:
        """All of them; of a message that nobody has asked for, the parts. Raises `ConvertError` if one is damaged."""
        if self.read is None:
            found = {}
            for span in self.spans:
                entry = self.one(self.field.of, [span], self.depth)
                found[entry.key] = entry.value if entry.value is not None else []
            self.read = found
        return self.read  # type: ignore[no-any-return]

    def __getitem__(self, key: Any) -> Any:
        found = self.entries()[key]
        if type(found) is list:
            of = self.field.of.FIELD["value"].of
            found = self.one(of, found, self.depth - 1, ".value") if found else of()
            self.read[key] = found
        return found

    def __iter__(self) -> Iterator[Any]:
        return iter(self.entries())

    def __len__(self) -> int:
        return len(self.entries())

    def __contains__(self, key: object) -> bool:
        return key in self.entries()

    def __repr__(self) -> str:
        return repr(dict(self))


def _numbers(scalar: Scalar, raw: memoryview, at: int) -> NDArray[Any]:
    """The numbers of a packed field; those of a fixed width are a view."""
    if scalar.spread is not None:
        return scalar.spread(_varints(raw, at))
    if len(raw) % FIXED[scalar.wire]:
        raise _Damage(f"{len(raw)} bytes at byte {at} are no whole number of {scalar.name}")
    return np.frombuffer(raw, scalar.dtype)


def _tuple(scalar: Scalar, data: memoryview, at: int, end: int) -> list[Any]:
    """The numbers of a packed field, one by one: there are few of them as a rule."""
    if scalar.wire != VARINT:
        return _numbers(scalar, data[at:end], at).tolist()  # type: ignore[no-any-return]
    items = []
    while at < end:
        number, at = _varint(data, at, end)
        items.append(scalar.take(number))
    return items


def _joined(items: list[NDArray[Any]]) -> NDArray[Any]:
    array = items[0] if len(items) == 1 else np.concatenate(items)
    array.flags.writeable = False
    return array


def write(message: Message) -> bytes:
    """The message on the wire: its fields by number, then those that its declaration does not have.

    Of what `read` made, every field that was present is written, also if it is the default. Raises `ValueError` for a
    value that its field cannot hold and for messages nested deeper than `MAX_DEPTH`.
    """
    chunks: list[Any] = []
    _write(message, chunks, MAX_DEPTH)
    return b"".join(chunks)


def _number(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def _write(message: Message, chunks: list[Any], depth: int) -> int:
    """Appends the message; returns how many bytes it takes."""
    if not depth:
        raise ValueError(f"messages are nested deeper than {MAX_DEPTH}")
    size = 0

    def put(*pieces: Any) -> None:
        nonlocal size
        size += sum(map(len, pieces))
        chunks.extend(pieces)

    def put_message(tag: bytes, inner: Message) -> None:
        nonlocal size
        within: list[Any] = []
        taken = _write(inner, within, depth - 1)
        put(tag, _number(taken))
        chunks.extend(within)
        size += taken

    for field in sorted(fields_of(type(message)), key=lambda field: field.number):
        if field.name not in message.__dict__:
            continue
        value = message.__dict__[field.name]
        tag = _number(field.number << 3 | field.wire)
        try:
            if field.kind == "message":
                put_message(tag, value)
            elif field.kind == "messages":
                for inner in value:
                    put_message(tag, inner)
            elif field.kind == "map":
                for key, item in value.items():
                    put_message(tag, field.of(key=key, value=item))
            elif field.packed:
                raw = b"".join([_scalar(field.of, item) for item in value])
                if raw:
                    put(_number(field.number << 3 | LEN), _number(len(raw)), raw)
            else:
                for item in (value,) if field.kind == "scalar" else value:
                    raw = _scalar(field.of, item)
                    put(tag, _number(len(raw)), raw) if field.wire == LEN else put(tag, raw)
        except (ValueError, TypeError, AttributeError) as error:
            if isinstance(error, _Unwritable):
                raise
            raise _Unwritable(f"{type(message).__name__}.{field.name}: {error}") from None
    put(*message.unknown)
    return size


class _Unwritable(ValueError):
    """Says already which field it is."""


def _scalar(scalar: Scalar, value: Any) -> Any:
    raw = scalar.give(value)
    return _number(raw) if scalar.wire == VARINT else raw
