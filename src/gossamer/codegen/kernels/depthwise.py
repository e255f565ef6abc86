"""`depthwise`: every channel with a filter of its own, row by row, with the weights as the model stores them.

A microkernel (`DepthwiseRow`) makes one row of output pixels from pointers to the input rows that it needs: rows of an
image in whose border the padding is stored, or of a ring that another kernel fills. The driver (`Depthwise`) calls it
for all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import ClassVar

from gossamer.codegen.basis import ACTIVATIONS, PIXELS, WINDOWS
from gossamer.codegen.expression import IDENTITY, Expression, apply, name_of, operand_count
from gossamer.codegen.ir import F32, PTR, Arguments, Function, Module, Part, Value, vector
from gossamer.codegen.spec import ArgumentBlock, KernelSpec
from gossamer.errors import CompileError
from gossamer.records import record, replace
from gossamer.targets import Target

MAX_KERNEL_ROWS = 64
"""Rows of the tallest kernel that the driver can call."""

LINES = 4
"""Rows of a thread below which threads share chunks of channels, too."""

FEW = 4
"""Rows for each thread below which threads share chunks of channels, too."""

MULTIPLIERS = (1, 2, 4, 8, 16, 32)
"""Output channels of an input channel for which there are kernels: powers of two, as vectors have lanes. For others,
the channels are repeated first."""


Around = tuple[Value, Callable[[Value], Value]]
"""What sums begin with, and what becomes of them."""

_WORDS = "channels columns kernel_rows kernel_columns x_column x_step x_tap y_column weight_column"


@record(frozen=True)
class DepthwiseRow(KernelSpec):
    """A microkernel: y = epilogue(bias + the sum over the kernel of x w), for one row, ``pixels`` at a time.

    ``void k(ptr rows, ptr weights, ptr bias, ptr y, ptr shape)``. ``rows`` are pointers to the first element that
    the first pixel reads in each row of the kernel; weights are [kernel rows, kernel columns, channels].
    ``shape`` is the argument block:

    - ``channels``, ``columns`` (pixels of the row, at least ``pixels``); the last pixels overlap unless they fit;
    - ``x_column``: bytes between input pixels, ``y_column``: between output pixels, ``weight_column``: between
      kernel elements;
    - ``kernel_rows``, ``kernel_columns``, ``x_step`` (bytes that the input moves for an output pixel: stride) and
      ``x_tap`` (for a kernel element: dilation). They matter where ``kernel`` is None, and hold for any.

    ``kernel``: rows, columns and stride, when known: then a loaded input pixel serves all output pixels that it
    touches. ``multiplier``: output channels that read one input channel; ``channels`` are those of the output.
    """

    pixels: int
    epilogue: Expression = IDENTITY
    kernel: tuple[int, int, int] | None = None
    multiplier: int = 1

    endings: ClassVar[tuple[Expression, ...]] = (IDENTITY, *ACTIVATIONS)
    """With which kernels ship that have their window written out."""

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock(_WORDS)

    @property
    def parts(self) -> tuple[str, ...]:
        shape = "{}x{}s{}".format(*self.kernel) if self.kernel else "any"
        return ("f32", "dwconv", name_of(self.epilogue), shape, f"{self.pixels}x1")

    @property
    def variant(self) -> str:
        return f"m{self.multiplier}" if self.multiplier > 1 else ""

    def general(self) -> Iterator[KernelSpec]:
        # There are at least so many pixels, and what is known of a kernel is among the arguments.
        for kernel, pixels in product(dict.fromkeys((self.kernel, None)), range(self.pixels, 0, -1)):
            yield replace(self, kernel=kernel, pixels=pixels)

    @classmethod
    def ships(cls, target: Target) -> Iterator[KernelSpec]:
        yield from (cls(target.name, pixels, multiplier=number) for pixels, number in product(PIXELS, MULTIPLIERS))
        for pixels, ending, window in product(PIXELS, cls.endings, WINDOWS):
            yield cls(target.name, pixels, ending, window)

    def emit(self, target: Target) -> str:
        if operand_count(self.epilogue) > 1:
            raise CompileError(f"{self.name}: the epilogue of a depthwise kernel has no operand but the sum.")
        if self.multiplier not in MULTIPLIERS:
            raise CompileError(f"{self.name}: channels are multiplied by one of {MULTIPLIERS}.")
        if self.pixels < 1 or self.pixels + 2 > target.registers:
            raise CompileError(f"{self.name}: {target.name} has {target.registers} registers.")
        module = Module(target)
        f = module.microkernel("rows", "weights", "bias", "y", "shape")
        rows, weights, bias, y, shape_pointer = f.parameters
        shape = f.arguments(self.arguments, shape_pointer)
        last = shape.columns - self.pixels

        def channels(at: Value, part: Part) -> Callable[[Value, list[Value] | None], None]:
            """What makes the pixels from a column on, given the filter."""
            begin, finish = self._around(f, shape, part, f.offset(bias, at))
            filter, pixels = f.offset(weights, at), _Pixels(f, part, at, self.multiplier)

            def tile(columns: Value, fixed: list[Value] | None) -> None:
                column = f.least(columns, last)
                x = column * (shape.x_column * self.kernel[2] if self.kernel else shape.x_step)
                sums = [begin] * self.pixels
                if self.kernel:
                    sums = self._known(f, self.kernel, shape, part, pixels, rows, x, filter, fixed, sums)
                else:
                    sums = self._any(f, shape, part, pixels, rows, x, filter, sums)
                to = f.offset(y, column * shape.y_column + at)
                for value in sums:
                    part.store(apply(self.epilogue, f, [finish(value)]), to)
                    to = f.offset(to, shape.y_column)

            return tile

        def along(at: Value, parts: list[Part], _: list[Value]) -> None:
            tile, fixed = channels(at, parts[0]), self._load_filter(f, shape, parts[0], f.offset(weights, at))
            with f.loop(0, shape.columns, self.pixels) as columns:
                tile(columns.index, fixed)

        if self._fits(target):
            f.vectors(shape.channels, along)
            return module.text()
        # The filter is read again anyway: so lines of a pixel are done with before the next pixels come.
        with f.loop(0, shape.columns, self.pixels) as columns:
            f.vectors(shape.channels, lambda at, parts, _: channels(at, parts[0])(columns.index, None))
        return module.text()

    def _fits(self, target: Target) -> bool:
        """Whether the whole filter stays in registers, beside the sums and a pixel."""
        return self.kernel is not None and self.kernel[0] * self.kernel[1] + self.pixels + 2 <= target.registers

    def _around(self, f: Function, shape: Arguments, part: Part, bias: Value) -> Around:
        """What sums begin with, and what becomes of them before the epilogue."""
        return part.load(bias), lambda sum: sum

    def _load_filter(self, f: Function, shape: Arguments, part: Part, filter: Value) -> list[Value]:
        """The whole filter."""
        height, width, _ = self.kernel or (0, 0, 0)
        return [part.load(f.offset(filter, shape.weight_column * element)) for element in range(height * width)]

    def _known(
        self,
        f: Function,
        kernel: tuple[int, int, int],
        shape: Arguments,
        part: Part,
        pixels: _Pixels,
        rows: Value,
        x: Value,
        filter: Value,
        fixed: list[Value] | None,
        sums: list[Value],
    ) -> list[Value]:
        height, width, stride = kernel
        sums, apart = list(sums), f.target.by_element
        for row in range(height):
            first = pixel = f.offset(pixels.of_row(f.load(PTR, f.at(rows, row, "ptr"))), x)
            taps = range(row * width, (row + 1) * width)
            loaded = (
                [fixed[tap] for tap in taps]
                if fixed
                else [part.load(f.offset(filter, shape.weight_column * tap)) for tap in taps]
            )
            for column in range((self.pixels - 1) * stride + width):
                uses = [(at, column - at * stride) for at in range(self.pixels) if 0 <= column - at * stride < width]
                if uses:
                    value = pixels.load(pixel)
                    for at, tap in uses:
                        sums[at] = f.fma(value, loaded[tap], sums[at])
                # AArch64 has registers for the offsets of all columns, which its loads add.
                pixel = f.offset(*((first, shape.x_column * (column + 1)) if apart else (pixel, shape.x_column)))
        return sums

    def _any(
        self,
        f: Function,
        shape: Arguments,
        part: Part,
        pixels: _Pixels,
        rows: Value,
        x: Value,
        filter: Value,
        sums: list[Value],
    ) -> list[Value]:
        with f.loop(0, shape.kernel_rows, carry=[*sums, filter]) as down:
            pixel = f.offset(pixels.of_row(f.load(PTR, f.at(rows, down.index, "ptr"))), x)
            with f.loop(0, shape.kernel_columns, carry=[*down.values, pixel]) as across:
                *inner, weight_at, first = across.values
                weight, at = part.load(weight_at), first
                for number in range(self.pixels):
                    inner[number] = f.fma(pixels.load(at), weight, inner[number])
                    at = f.offset(at, shape.x_step)
                across.hand_on([*inner, f.offset(weight_at, shape.weight_column), f.offset(first, shape.x_tap)])
            down.hand_on(across.results[:-1])
        return down.results[:-1]


@record(frozen=True)
class HybridDepthwiseRow(DepthwiseRow):
    """A microkernel: y = epilogue((sum of x w) * weight scale * image scale + bias) for one row, as `DepthwiseRow`.

    It is LiteRT's own ``DepthwiseConvHybridPerChannel``, whose integers are small enough for floats: 514 products of
    255 and 128 stay below 2^24. The last channels, ``channels`` modulo 4, are multiplied by the image's scale first, as
    LiteRT does it. Behind ``bias`` by ``scales`` bytes are the weights' scales; ``scale`` points to that of the image.
    """

    endings = (IDENTITY,)

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock(_WORDS, "scales *scale")

    @property
    def parts(self) -> tuple[str, ...]:
        return ("hybrid", *super().parts)

    def _around(self, f: Function, shape: Arguments, part: Part, bias: Value) -> Around:
        of_weights, of_image = part.load(f.offset(bias, shape.scales)), part.splat(f.load(F32, shape.scale))
        own = part.load(bias)
        first, second = of_weights, of_image
        if part.type.lanes == 1:
            first, second = of_image, of_weights
        elif part.count is not None:
            whole = Part(f, part.type, part.count & -4).mask
            first, second = (
                f.emit(part.type, f"select {whole}, {one}, {other}")
                for one, other in ((of_weights, of_image), (of_image, of_weights))
            )
        return part.constant(0.0), lambda sum: sum * first * second + own


class _Pixels:
    """The input of a vector of output channels, which begin ``at`` bytes behind the first."""

    def __init__(self, f: Function, part: Part, at: Value, multiplier: int) -> None:
        self._f = f
        self._part = part
        self._at = at
        self._multiplier = multiplier
        lanes = part.type.lanes
        # A channel fills vectors, or several neighbours fill one with as many lanes each; the last may be cut off.
        self._few: Part | None = None
        if multiplier > 1:
            count = None if part.count is None or multiplier >= lanes else part.count // multiplier
            self._few = Part(f, vector("float", max(lanes // multiplier, 1)), count)

    def of_row(self, row: Value) -> Value:
        """The first pixel of a row."""
        if self._few:
            return self._f.offset(row, self._at // (4 * self._multiplier) * 4)
        return self._f.offset(row, self._at)

    def load(self, pixel: Value) -> Value:
        """The channels of a pixel."""
        f, lanes, multiplier = self._f, self._part.type.lanes, self._multiplier
        if self._few:
            few = self._few.load(pixel)
            if few.type.lanes == 1:
                return f.splat(few, lanes)
            return f.shuffle(few, few, [lane // multiplier for lane in range(lanes)])
        return self._part.load(pixel)


@record(frozen=True)
class Depthwise(KernelSpec):
    """A driver: calls ``kernel`` for ``rows`` rows of ``images`` images, in ``chunks`` of the channels.

    All strides are in bytes. ``x`` is the first element that the first output pixel reads. From output row to output
    row it moves by ``x_step`` (stride x row), from kernel row to kernel row by ``x_row`` (dilation x row), of which
    there are ``kernel_rows``, at most `MAX_KERNEL_ROWS`. A chunk is ``chunk_bytes`` of channels, described by
    ``shape``; the last one by ``last_shape``. There is one chunk if channels are multiplied. A chunk is done for row
    after row, which read much of the same. Threads share images x rows, or, where these are few or ``by_chunk`` is 1,
    chunks x images x rows.
    """

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock(
        "*kernel *shape *last_shape *x *weights *bias *y images rows chunks by_chunk kernel_rows chunk_bytes x_image "
        "x_step x_row y_image y_row"
    )

    @property
    def parts(self) -> tuple[str, ...]:
        return ("x8", "dwconv", "rows")

    def emit(self, target: Target) -> str:
        module = Module(target)
        f = module.driver()
        g = f.arguments(self.arguments)
        _, tid, threads = f.parameters
        rows = f.stack(PTR, MAX_KERNEL_ROWS)
        count = f.least(g.kernel_rows, MAX_KERNEL_ROWS)
        lines = g.images * g.rows
        by_chunk = f.compare("ne", g.by_chunk, 0) | f.compare("slt", lines, threads * FEW)
        shared = f.select(by_chunk, g.chunks, 1)
        begin, end = (shared * lines * at // threads for at in (tid, tid + 1))
        size = f.greatest(lines, 1)
        first_chunk, end_chunk = f.select(by_chunk, begin // size, 0), (end + size - 1) // size
        with f.loop(first_chunk, f.select(by_chunk, end_chunk, g.chunks)) as chunks:
            channels, before = chunks.index * g.chunk_bytes, f.select(by_chunk, chunks.index * lines, 0)
            shape = f.select(f.compare("eq", chunks.index, g.chunks - 1), g.last_shape, g.shape)
            with f.loop(f.greatest(begin - before, 0), f.least(end - before, lines)) as loop:
                line = loop.index
                image = line // g.rows
                row = line - image * g.rows
                x = f.offset(g.x, image * g.x_image + row * g.x_step + channels)
                with f.loop(0, count) as kernel_rows:
                    f.store(f.offset(x, kernel_rows.index * g.x_row), f.at(rows, kernel_rows.index, "ptr"))
                y = f.offset(g.y, image * g.y_image + row * g.y_row + channels)
                f.call(g.kernel, rows, f.offset(g.weights, channels), f.offset(g.bias, channels), y, shape)
        return module.text()
