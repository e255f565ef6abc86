"""Sums and extremes of small integers, lane by lane, and what becomes of them: what pools and reductions share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from gossamer.codegen.elements import element
from gossamer.codegen.ir import Function, Part, Value, vector
from gossamer.codegen.quantized import nearest
from gossamer.targets import Target

SHORT = 256
"""Bytes whose sum fits 16 bits: from 0 or -128 on."""

TYPES = ("i8", "u8", "i16")


class Integers(NamedTuple):
    """A type of small integers, as kernels compute with it."""

    name: str
    memory: str
    bits: int
    signed: bool

    @property
    def least(self) -> int:
        """The smallest number."""
        return -(1 << (self.bits - 1)) if self.signed else 0

    @property
    def greatest(self) -> int:
        """The largest number."""
        return self.least + (1 << self.bits) - 1

    def lanes(self, target: Target) -> int:
        """Elements in a vector register."""
        return target.lanes(self.bits)

    def load(self, part: Part, pointer: Value) -> Value:
        """The elements at a pointer; any in the lanes that are not in use."""
        return part.load(pointer, 0, self.memory)

    def widened(self, x: Value, to: str) -> Value:
        """As wider integers, ``i16`` or ``i32``."""
        return _cast(x, to, "sext" if self.signed else "zext")

    def beyond(self, x: Value, than: Value, greater: bool) -> Value:
        """The greater (or the smaller) of two, lane by lane."""
        f = x.function
        condition = ("s" if self.signed else "u") + ("gt" if greater else "lt")
        return f.select(f.compare(condition, x, than), x, than)


def integers(name: str) -> Integers:
    """A type by name. Raises `CompileError` if there is none."""
    found = element(name)
    return Integers(name, found.memory, found.bits, found.kind == "signed")


NARROW = 16
"""Elements of the last vectors of a row."""


def blocks(
    f: Function, type: Integers, count: Value, body: Callable[[Value, list[Part]], None], unroll: int = 1
) -> None:
    """Walk over ``count`` contiguous elements: ``body(offset in bytes, parts)`` for vectors that fill registers, up to
    ``unroll`` one behind the other, then for smaller ones."""
    size = type.bits // 8
    start = f.integer(0)
    lanes = type.lanes(f.target)
    steps = [(number, lanes) for number in (unroll, 1)[unroll == 1 :]]
    while lanes > NARROW:
        lanes //= 2
        if lanes > NARROW:
            steps.append((1, lanes))
    for number, width in steps:
        end = count & -(number * width)
        with f.loop(start, end, number * width) as loop:
            body(loop.index * size, [Part(f, vector("float", width)) for _ in range(number)])
        start = end

    def rest(at: Value, parts: list[Part], _: list[Value]) -> None:
        body((start * size) + at, parts)

    # Masks on bytes and words are instructions of AVX-512 only.
    f.vectors(count - start, rest, size=size, masked=f.target.vector_bits == 512, lanes=min(NARROW, lanes))


def total(
    f: Function,
    type: Integers,
    corner: Value,
    parts: Sequence[Part],
    rows: Value,
    columns: Value,
    row_stride: Value,
    column_stride: Value,
) -> list[Value]:
    """The sums of rows x columns vectors, in 32 bits, which they must fit: those of the parts, one behind the other,
    from ``corner`` on. Bytes are summed in 16 bits as long as that goes."""
    zeros = [f.constant(part.type.with_element("i32"), 0) for part in parts]
    step = type.lanes(f.target)
    is_byte = type.bits == 8
    height = f.greatest(f.integer(SHORT) // columns, 1) if is_byte else rows
    with f.loop(0, rows, height, carry=zeros) as bands:
        bottom = f.least(bands.index + height, rows)
        with f.loop(0, columns, SHORT if is_byte else columns, carry=bands.values) as spans:
            end = f.least(spans.index + SHORT, columns) if is_byte else columns
            short = [f.constant(part.type.with_element("i16"), 0) for part in parts] if is_byte else spans.values
            with f.loop(bands.index, bottom, carry=short) as down:
                row = f.offset(corner, down.index * row_stride)
                with f.loop(spans.index, end, carry=down.values) as across:
                    pixel = f.offset(row, across.index * column_stride)
                    across.hand_on(added(f, type, pixel, parts, across.values, step))
                down.hand_on(across.results)
            sums = down.results
            if is_byte:
                widened = [type.widened(value, "i32") for value in sums]
                sums = [f.wrapping("add", a, b) for a, b in zip(spans.values, widened, strict=True)]
            spans.hand_on(sums)
        bands.hand_on(spans.results)
    return bands.results


def added(
    f: Function, type: Integers, pixel: Value, parts: Sequence[Part], sums: Sequence[Value], step: int
) -> list[Value]:
    """The sums with the vectors at a pixel."""
    return [
        f.wrapping(
            "add", sums[v], type.widened(type.load(part, f.at(pixel, v * step, type.memory)), sums[v].type.element)
        )
        for v, part in enumerate(parts)
    ]


def rounded(f: Function, x: Value, type: Integers) -> Value:
    """Floats as integers: to the nearest, halves to even, saturated."""
    bounded = f.minimum(f.maximum(x, float(type.least)), float(type.greatest))
    return narrowed(f, nearest(f, bounded), type)


def truncated(f: Function, x: Value) -> Value:
    """Floats that fit as 32-bit integers: without their fractions."""
    to = x.type.with_element("i32")
    return f.emit(to, f"fptosi {x} to {to}")


def narrowed(f: Function, x: Value, type: Integers) -> Value:
    """32-bit integers that fit, as they are stored."""
    return _cast(x, type.memory, "trunc")


def _cast(x: Value, to: str, instruction: str) -> Value:
    type = x.type.with_element(to)
    return x if type == x.type else x.function.emit(type, f"{instruction} {x} to {type}")
