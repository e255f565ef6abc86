"""`quantized_window`: the maximum or the mean of windows of images of small integers, of their elements inside."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import ClassVar, Literal

from gossamer.codegen.basis import BYTES
from gossamer.codegen.ir import Function, Module, Part, Value
from gossamer.codegen.kernels.quantized_sums import SHORT, TYPES, Integers, blocks, integers, narrowed, truncated
from gossamer.codegen.spec import ArgumentBlock, KernelSpec
from gossamer.errors import CompileError
from gossamer.records import record
from gossamer.targets import Target

CHANNELS = 256
"""Channels of a task."""

PIXELS = 4
"""Windows that are walked over at the same time, where all of them lie inside the image."""

MOST = 1 << 14
"""Elements of the largest window of which there is a mean: a product with 1 / count is exact enough up to here."""


Reduction = Literal["max", "mean"]


@record(frozen=True)
class QuantizedWindow(KernelSpec):
    """A pool over NHWC of ``type`` (i8, u8 or i16), clamped to ``low`` and ``high``.

    Of the mean halves are rounded away from zero. The window of output pixel (i, j) begins at row i x ``stride_rows`` -
    ``pad_rows``, and likewise for columns; it has ``window_rows`` x ``window_columns`` elements, of which those inside
    the ``height`` x ``width`` image count. There is at least one. Columns ``whole`` to ``whole_end`` of y have windows
    that reach over neither side. ``wide``: of windows of more than `SHORT` elements the mean is summed in 32 bits.
    Strides in bytes; threads share images x rows x blocks of `CHANNELS` channels.
    """

    reduction: Reduction
    type: str = "i8"
    wide: bool = False

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock(
        "*x *y images rows columns channels height width window_rows window_columns stride_rows stride_columns "
        "pad_rows pad_columns whole whole_end low high x_image x_row x_column y_image y_row y_column"
    )

    @property
    def parts(self) -> tuple[str, ...]:
        return (self.type, {"max": "maxpool", "mean": "avgpool"}[self.reduction], "wide" * self.wide)

    @classmethod
    def ships(cls, target: Target) -> Iterator[KernelSpec]:
        forms: list[tuple[Reduction, bool]] = [("max", False), ("mean", False), ("mean", True)]
        for type, (reduction, wide) in product((*BYTES, "i16"), forms):
            yield cls(target.name, reduction, type, wide)

    def emit(self, target: Target) -> str:
        if self.reduction not in ("max", "mean") or self.type not in TYPES:
            raise CompileError(f"There are maxima and means of {', '.join(TYPES)}, got {self.name}.")
        module = Module(target)
        f = module.driver()
        a = f.arguments(self.arguments)
        type = integers(self.type)
        lanes = type.lanes(target)
        low, high = (f.emit(f.f32.scalar.with_element("i32"), f"trunc {bound} to i32") for bound in (a.low, a.high))
        if type.memory != "i32":
            low, high = (narrowed(f, bound, type) for bound in (low, high))

        def clip(at: Value, stride: Value, pad: Value, size: Value, limit: Value) -> tuple[Value, Value]:
            first = at * stride - pad
            return f.greatest(first, 0), f.least(first + size, limit)

        pieces = (a.channels + (CHANNELS - 1)) // CHANNELS
        with f.share(a.images * a.rows * pieces) as task:
            line = task // pieces
            channel = (task - line * pieces) * CHANNELS
            image = line // a.rows
            row = line - image * a.rows
            top, bottom = clip(row, a.stride_rows, a.pad_rows, a.window_rows, a.height)
            x = f.at(f.offset(a.x, image * a.x_image + top * a.x_row), channel, type.memory)
            y = f.at(f.offset(a.y, image * a.y_image + row * a.y_row), channel, type.memory)
            channels = f.least(a.channels - channel, CHANNELS)
            height = bottom - top

            def pixels(number: int, column: Value, left: Value, right: Value) -> None:
                """So many windows side by side, the first from ``left`` to ``right``."""
                corner = f.offset(x, left * a.x_column)
                to = f.offset(y, column * a.y_column)
                width = right - left
                apart = a.stride_columns * a.x_column
                means = Means(f, type, height * width) if self.reduction == "mean" else None

                def block(at: Value, parts: list[Part]) -> None:
                    first = f.offset(corner, at)
                    start = [self._start(f, type, part) for part in parts] * number
                    with f.loop(0, height, carry=[*start, first]) as down:
                        with f.loop(0, width, carry=down.values) as across:
                            *values, pixel = across.values
                            for n in range(number):
                                for v, part in enumerate(parts):
                                    at_vector = f.at(f.offset(pixel, apart * n), v * lanes, type.memory)
                                    k = n * len(parts) + v
                                    values[k] = self._combined(f, type, type.load(part, at_vector), values[k])
                            across.hand_on([*values, f.offset(pixel, a.x_column)])
                        down.hand_on([*across.results[:-1], f.offset(down.values[-1], a.x_row)])
                    for n in range(number):
                        for v, part in enumerate(parts):
                            value = down.results[n * len(parts) + v]
                            if means is not None:
                                value = means(value, part)
                            value = type.beyond(value, part.splat(low), True)
                            value = type.beyond(value, part.splat(high), False)
                            there = f.offset(f.offset(to, at), a.y_column * n)
                            part.store(value, f.at(there, v * lanes, type.memory))

                blocks(f, type, channels, block, 1 if number > 1 else 2)

            def edge(first: Value, end: Value) -> None:
                with f.loop(first, end) as columns:
                    left, right = clip(columns.index, a.stride_columns, a.pad_columns, a.window_columns, a.width)
                    pixels(1, columns.index, left, right)

            edge(f.integer(0), a.whole)
            several = a.whole + ((a.whole_end - a.whole) & -PIXELS)
            with f.loop(a.whole, several, PIXELS) as columns:
                left = columns.index * a.stride_columns - a.pad_columns
                pixels(PIXELS, columns.index, left, left + a.window_columns)
            edge(several, a.columns)
        return module.text()

    def _start(self, f: Function, type: Integers, part: Part) -> Value:
        if self.reduction == "max":
            return f.constant(part.type.with_element(type.memory), type.least)
        wide = self.wide or type.bits == 16
        return f.constant(part.type.with_element("i32" if wide else "i16"), 0)

    def _combined(self, f: Function, type: Integers, x: Value, so_far: Value) -> Value:
        if self.reduction == "max":
            return type.beyond(x, so_far, True)
        return f.wrapping("add", so_far, type.widened(x, so_far.type.element))


class Means:
    """Sums of ``count`` integers over it, halves away from zero.

    (|sum| + count // 2) // count is the whole part of (|sum| + count // 2 + 1/2) / count, which is 1 / (2 count) or
    more away from whole numbers: further than a product with the rounded 1 / count can lead astray. So floats do for
    bytes, in windows of up to `MOST`; int16 takes doubles.
    """

    def __init__(self, f: Function, type: Integers, count: Value) -> None:
        self._f = f
        self._type = type
        self._float = "float" if type.bits == 8 else "double"
        number = f.emit(f.f32.scalar.with_element(self._float), f"sitofp {count} to {self._float}")
        half = f.emit(number.type, f"sitofp i64 {(count // 2).text} to {self._float}")
        self._half = half + 0.5
        self._share = 1.0 / number

    def __call__(self, sums: Value, part: Part) -> Value:
        f = self._f
        wide = self._type.widened(sums, "i32")
        type = wide.type.with_element(self._float)
        real = f.emit(type, f"sitofp {wide} to {type}")
        half = part.splat(self._half)
        if self._type.signed:
            half = f.intrinsic("llvm.copysign", half, real)
        return narrowed(f, truncated(f, (real + half) * part.splat(self._share)), self._type)


def is_wide(elements: int) -> bool:
    """Whether means of windows of so many elements need the form that says so."""
    return elements > SHORT


def whole_columns(size: int, window: int, stride: int, pad: int, columns: int) -> Sequence[int]:
    """The first output column whose window reaches over neither side, and the one behind the last."""
    first = min(-(-pad // stride), columns)
    end = min((size - window + pad) // stride + 1, columns) if size + pad >= window else 0
    return first, max(first, end)
