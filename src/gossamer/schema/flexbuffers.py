"""FlexBuffers, the self-describing format of ``custom_options``: maps, vectors, numbers and texts as Python values.

Nothing is believed before it is checked: a hostile buffer costs an exception, and time and memory in proportion to its
size, even if its vectors overlap. Nothing in a buffer is code.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct
from struct import error as StructError
from typing import Any, NamedTuple

import numpy as np

NULL, INT, UINT, FLOAT, KEY, STRING, INDIRECT_INT, INDIRECT_UINT, INDIRECT_FLOAT, MAP, VECTOR = range(11)
VECTOR_INT, VECTOR_KEY, VECTOR_STRING = 11, 14, 15
VECTOR_INT2, VECTOR_FLOAT4 = 16, 24
BLOB, BOOL, VECTOR_BOOL = 25, 26, 36

MAX_DEPTH = 64
"""How deep maps and vectors may be nested."""

_WIDTHS = (1, 2, 4, 8)
_READ = {
    INT: {1: Struct("<b"), 2: Struct("<h"), 4: Struct("<i"), 8: Struct("<q")},
    UINT: {1: Struct("<B"), 2: Struct("<H"), 4: Struct("<I"), 8: Struct("<Q")},
    FLOAT: {2: Struct("<e"), 4: Struct("<f"), 8: Struct("<d")},
}


class String(bytes):
    """Bytes that `dumps` writes as a string, not as a blob; they need not be UTF-8."""


def loads(data: bytes | bytearray | memoryview) -> Any:
    """The value that a FlexBuffer holds: ``None``, bool, int, float, str, bytes (a blob, or a string that is no UTF-8),
    list, or dict. Raises `ValueError` for bytes that are no FlexBuffer."""
    content = bytes(data)
    if len(content) < 3:
        raise ValueError(f"{len(content)} bytes are too few for a flexbuffer")
    width, root = content[-1], len(content) - 2 - content[-1]
    if width not in _WIDTHS or root < 0:
        raise ValueError(f"its root is {width} bytes wide")
    return _Reading(content).value(root, width, content[-2], 0)


def dumps(value: Any) -> bytes:
    """A FlexBuffer with a value: what `loads` gives back, also from tuples and NumPy arrays and numbers.

    Raises `TypeError` for a value of another type, `ValueError` for one that the format does not hold.
    """
    writing = _Writing()
    writing.vector([writing.slot(_plain(value, 0))], root=True)
    return bytes(writing.data)


class _Reading:
    """One pass over one buffer: its bytes, the texts that were decoded, how many bytes may still be decoded."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.left = len(data)
        self.texts: dict[tuple[int, int], str | bytes] = {}

    def value(self, at: int, width: int, packed: int, depth: int) -> Any:
        """The value in a slot of this many bytes, whose type and child width are packed into one byte."""
        kind, child = packed >> 2, 1 << (packed & 3)
        if kind == NULL:
            return None
        if kind in _READ:
            return self.number(kind, at, width)
        if kind == BOOL:
            return bool(self.number(UINT, at, width))
        target = at - self.number(UINT, at, width)
        if target < 0:
            raise ValueError(f"the offset at byte {at} leaves it")
        if INDIRECT_INT <= kind <= INDIRECT_FLOAT:
            return self.number(kind - INDIRECT_INT + INT, target, child)
        if kind == KEY:
            return self.key(target)
        if kind in (STRING, BLOB):
            return self.text(kind, target, self.number(UINT, target - child, child))
        if depth == MAX_DEPTH:
            raise ValueError(f"it is nested more than {MAX_DEPTH} deep")
        if kind == MAP:
            return self.map(target, child, depth)
        if kind == VECTOR:
            return self.vector(target, child, depth)
        return self.typed_vector(kind, target, child, depth)

    def number(self, kind: int, at: int, width: int) -> Any:
        """An integer or a float."""
        layout = _READ[kind].get(width)
        if layout is None or not 0 <= at <= len(self.data) - width:
            raise ValueError(f"there is no number of {width} bytes at byte {at}")
        return layout.unpack_from(self.data, at)[0]

    def key(self, at: int) -> str | bytes:
        """A text that ends with a zero byte."""
        known = self.texts.get((KEY, at))
        if known is not None:
            return known
        end = self.data.find(0, at)
        return self.text(KEY, at, (end if end >= 0 else len(self.data)) - at)

    def text(self, kind: int, at: int, size: int) -> str | bytes:
        """A string or a blob; texts may be shared, and are decoded once."""
        known = self.texts.get((kind, at))
        if known is not None:
            return known
        if at + size > len(self.data):
            raise ValueError(f"the text of {size} bytes at byte {at} leaves it")
        self.spend(size, at)
        found: str | bytes = self.data[at : at + size]
        if kind != BLOB:
            try:
                found = self.data[at : at + size].decode()
            except UnicodeDecodeError:
                if kind == KEY:
                    raise ValueError(f"the key at byte {at} is no text") from None
        self.texts[kind, at] = found
        return found

    def vector(self, at: int, width: int, depth: int) -> list[Any]:
        """A vector with a type for each element; the types lie behind the elements."""
        count = self.count(at, width, 1)
        types = at + count * width
        return [self.value(at + i * width, width, self.data[types + i], depth + 1) for i in range(count)]

    def typed_vector(self, kind: int, at: int, width: int, depth: int) -> list[Any]:
        """A vector with one type for all elements, or of 2 to 4 numbers whose count is in the type."""
        if VECTOR_INT2 <= kind <= VECTOR_FLOAT4:
            count = 2 + (kind - VECTOR_INT2) // 3
            element = INT + (kind - VECTOR_INT2) % 3
            self.spend(count * width, at)
        elif VECTOR_INT <= kind <= VECTOR_STRING or kind == VECTOR_BOOL:
            count = self.count(at, width)
            element = BOOL if kind == VECTOR_BOOL else kind - VECTOR_INT + INT
        else:
            raise ValueError(f"type {kind} at byte {at} is none of the format's")
        return [self.value(at + i * width, width, element << 2, depth + 1) for i in range(count)]

    def map(self, at: int, width: int, depth: int) -> dict[Any, Any]:
        """A vector of values, and one of keys that maps may share."""
        values = self.vector(at, width, depth)
        slot = at - 3 * width
        keys, wide = slot - self.number(UINT, slot, width), self.number(UINT, slot + width, width)
        if wide not in _WIDTHS or self.number(UINT, keys - wide, wide) != len(values):
            raise ValueError(f"the map at byte {at} has {len(values)} values, and not as many keys")
        return {self.value(keys + i * wide, wide, KEY << 2, depth): value for i, value in enumerate(values)}

    def count(self, at: int, width: int, extra: int = 0) -> int:
        """How many elements a vector has, which then are paid for."""
        count: int = self.number(UINT, at - width, width)
        if at + count * (width + extra) > len(self.data):
            raise ValueError(f"the vector of {count} elements at byte {at} leaves it")
        self.spend(count * width, at)
        return count

    def spend(self, count: int, at: int) -> None:
        """Counts decoded bytes."""
        self.left -= count
        if self.left < 0:
            raise ValueError(f"its vectors and texts overlap at byte {at}")


class _Slot(NamedTuple):
    """What a value leaves in the vector that holds it: itself, or where it starts."""

    kind: int
    value: Any
    child: int = 0  # width of what is referred to, as a power of two
    offset: bool = False

    def encoded(self, at: int, width: int) -> bytes | None:
        """The slot at this position with this width, ``None`` if it does not fit."""
        value = at - self.value if self.offset else self.value
        kind = FLOAT if isinstance(value, float) else INT if value < 0 or self.kind == INT else UINT
        try:
            code = _READ[kind][width].pack(value)
        except (KeyError, StructError, OverflowError):
            return None
        # Readers in other languages know no half floats.
        exact = kind != FLOAT or width == 8 or (width == 4 and _READ[FLOAT][4].unpack(code)[0] == value)
        return code if exact else None


class _Writing:
    """A buffer that grows: what is referred to lies before what refers to it."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.keys: dict[str, int] = {}

    def slot(self, value: Any) -> _Slot:
        """Write what of a value lies outside its slot."""
        if value is None or isinstance(value, bool):
            return _Slot(NULL if value is None else BOOL, int(value or 0))
        if isinstance(value, int | float):
            return _Slot(INT if isinstance(value, int) else FLOAT, value)
        if isinstance(value, str | bytes):
            return (
                self.text(STRING, value.encode())
                if isinstance(value, str)
                else self.text(STRING if isinstance(value, String) else BLOB, value)
            )
        if isinstance(value, list):
            return self.vector([self.slot(item) for item in value])
        names = sorted(value)
        keys = self.vector([_Slot(KEY, self.key(name), 0, True) for name in names], typed=True)
        return self.vector([self.slot(value[name]) for name in names], keys=keys)

    def key(self, name: str) -> int:
        """Where a key starts; each is written once."""
        if name not in self.keys:
            self.keys[name] = len(self.data)
            self.data += name.encode() + b"\0"
        return self.keys[name]

    def text(self, kind: int, content: bytes) -> _Slot:
        """A size, the bytes, and a zero byte after a string."""
        width = next(width for width in _WIDTHS if len(content) < 1 << (8 * width))
        self.align(width)
        self.data += len(content).to_bytes(width, "little")
        start = len(self.data)
        self.data += content + (b"\0" if kind == STRING else b"")
        return _Slot(kind, start, _WIDTHS.index(width), True)

    def vector(
        self, slots: list[_Slot], *, keys: _Slot | None = None, typed: bool = False, root: bool = False
    ) -> _Slot:
        """Slots of one width, the least that all fit into, behind their count; before it the place of a map's keys,
        after it the types. The root is one slot with its type and width behind it."""
        size = _Slot(UINT, len(slots))
        before = [] if root else [size] if keys is None else [keys, _Slot(UINT, 1 << keys.child), size]
        for width in _WIDTHS:
            first = -(-len(self.data) // width) * width
            codes = [slot.encoded(first + i * width, width) for i, slot in enumerate([*before, *slots])]
            if None not in codes:
                break
        log = _WIDTHS.index(width)
        self.align(width)
        self.data += b"".join(code for code in codes if code is not None)
        if not typed:
            self.data += bytes(slot.kind << 2 | (slot.child if slot.offset else log) for slot in slots)
        if root:
            self.data.append(width)
        kind = VECTOR_KEY if typed else VECTOR if keys is None else MAP
        return _Slot(kind, first + len(before) * width, log, True)

    def align(self, width: int) -> None:
        """Fill up to a multiple of a width."""
        self.data += bytes(-len(self.data) % width)


def _plain(value: Any, depth: int) -> Any:
    """A value in the types that are written."""
    if depth > MAX_DEPTH:
        raise ValueError(f"a value is nested more than {MAX_DEPTH} deep")
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str) or not key.isascii() or "\0" in key:
                raise ValueError(f"keys must be ASCII texts without zero bytes, got {key!r}")
        return {key: _plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, depth + 1) for item in value]
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
        raise ValueError(f"integers must fit into 64 bits with a sign, got {value}")
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return value
    raise TypeError(f"a flexbuffer holds None, bool, int, float, str, bytes, lists and maps, no {type(value).__name__}")
