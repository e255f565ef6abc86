"""Products of large matrices of bytes with seven eighths of the multiplications, where bytes have no dot products.

`gossamer.codegen.kernels.strassen` has the algorithm and the driver. Its sums of up to four bytes fit 16 bits, which is
what `gossamer.codegen.kernels.inner_products` multiplies: so the first factors are widened rows, the second ones wide
panels of two vectors of channels, and what a row or a panel has beside its depth is that of the sums. Everything is
computed modulo 2^32, so that results are exact. The bias is in the panels of the products that are each in one of the
results, and not in the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import ClassVar

from gossamer.codegen.basis import BYTE_ENDINGS, BYTES
from gossamer.codegen.dots import Byte, crosses, order, products_of_pairs
from gossamer.codegen.expression import name_of
from gossamer.codegen.ir import I32, I64, PTR, Function, Module, Value, vector
from gossamer.codegen.kernels.inner_products import (
    HEADER,
    ROW_HEADER,
    ROWS,
    STEP,
    SUMS,
    VALUES,
    store_sums,
    with_products,
)
from gossamer.codegen.kernels.outputs import Requantized, Tile
from gossamer.codegen.kernels.pack import transpose
from gossamer.codegen.kernels.strassen import PRODUCTS, input_sums, quarters, weight_sums
from gossamer.codegen.spec import ENTRY, ArgumentBlock, KernelSpec
from gossamer.errors import CompileError
from gossamer.records import record, replace
from gossamer.targets import Target

NV = 2
"""Vectors of channels of a panel."""

BLOCK = VALUES.lanes
"""Steps of depth at a time: that of a quarter is a multiple."""

WITH_LEFT, WITH_RIGHT = (1, 2), (3,)
"""The products that have the biases of the first and of the second half of the channels: m2 is in c11 alone, m3 in c21,
m4 in c12 and in c22."""


def _widened(f: Function, pointer: Value, type: Byte) -> Value:
    """A block in 16 bits."""
    bytes = f.load(vector("i8", BLOCK), pointer)
    return f.emit(VALUES, f"{'sext' if type == 'i8' else 'zext'} {bytes} to {VALUES}")


@record(frozen=True)
class QuantizedStrassenWeights(KernelSpec):
    """Weights [2 x channels, 2 x depth], int8, as the second factors of all products: [panel][product], wide panels of
    `NV` vectors as `InnerProductGemm` reads them.

    ``channels`` and ``depth`` are those of a quarter: whole panels, and a multiple of `BLOCK`. Rows are ``source_row``
    bytes apart. ``bias`` are int32; ``offset`` is the zero point of the first factor. Threads share vectors of
    channels.
    """

    targets = "bytes"

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock("*source *destination *bias channels depth source_row offset")

    @property
    def parts(self) -> tuple[str, ...]:
        return ("i8", "strassen", "weights")

    @classmethod
    def ships(cls, target: Target) -> Iterator[KernelSpec]:
        yield from (cls(target.name),) if crosses(target) else ()

    def emit(self, target: Target) -> str:
        module = Module(target)
        f = module.driver()
        a = f.arguments(self.arguments)
        lanes, size, words = f.lanes, 4 * f.lanes, vector("i32", f.lanes)
        _, step = order(lanes, NV)[0]
        square = f.stack(I32, PRODUCTS * lanes * lanes, 32)  # [product][channel][pair of depth]
        of_channels = f.stack(I32, 2 * lanes, 4)
        step_bytes = 2 * NV * size
        panel_bytes = HEADER * NV * size + (a.depth // STEP) * step_bytes
        with f.share(a.channels // lanes) as number:
            panel = number // NV
            inside = number - panel * NV
            destination = f.offset(a.destination, panel * panel_bytes * PRODUCTS + inside * size)
            first = panel * (NV * lanes) + inside * 4
            source, below = f.offset(a.source, first * a.source_row), a.channels * a.source_row

            def row(lane: Value) -> Value:
                run = lane // 4
                return f.offset(source, (run * (step - 4) + lane) * a.source_row)

            with f.loop(0, 2) as sides, f.loop(0, lanes) as channels:
                start = f.offset(row(channels.index), sides.index * below)
                with f.loop(0, a.depth * 2, BLOCK, carry=[f.constant(words, 0)]) as depth:
                    values = _widened(f, f.offset(start, depth.index), "i8")
                    sums = products_of_pairs(f, values, f.constant(VALUES, 1))
                    depth.hand_on([f.wrapping("add", depth.values[0], sums)])
                sum = f.fold(lambda x, y: f.wrapping("add", x, y), depth.results[0])
                f.store(sum, f.at(of_channels, sides.index * lanes + channels.index, "i32"))
            begin = [f.constant(words, 0)] * PRODUCTS
            zero = f.splat(f.emit(I32, f"trunc {a.offset} to i32"))
            for side, products in enumerate((WITH_LEFT, WITH_RIGHT)):
                at = first + side * a.channels
                of_lanes = [at + step * run + lane for run in range(lanes // 4) for lane in range(4)]
                bias = f.gathered(vector("i32", 1), [f.at(a.bias, one, "i32") for one in of_lanes])
                sums = f.load(words, f.at(of_channels, f.integer(side * lanes), "i32"))
                bias = f.wrapping("sub", bias, f.wrapping("mul", sums, zero))
                for number_of in products:
                    begin[number_of] = bias
            for number_of, value in enumerate(begin):
                f.store(value, f.offset(destination, panel_bytes * number_of))
            with f.loop(0, a.depth, BLOCK) as blocks:
                with f.loop(0, lanes) as channels:
                    left = f.offset(row(channels.index), blocks.index)
                    b11, b12 = (_widened(f, at, "i8") for at in (left, f.offset(left, below)))
                    left = f.offset(left, a.depth)
                    b21, b22 = (_widened(f, at, "i8") for at in (left, f.offset(left, below)))
                    for number_of, value in enumerate(weight_sums(b11, b12, b21, b22)):
                        f.store(value, f.at(square, (channels.index + number_of * lanes) * lanes, "i32"))
                with f.loop(0, PRODUCTS) as all:
                    here = f.at(square, all.index * (lanes * lanes), "i32")
                    header = f.offset(destination, all.index * panel_bytes)
                    to = f.offset(header, (HEADER * NV) * size + inside * size + (blocks.index // STEP) * step_bytes)
                    columns = transpose(f, [f.load(words, f.offset(here, size * lane)) for lane in range(lanes)])
                    total = f.load(words, header)
                    for low, high in zip(columns[::2], columns[1::2], strict=True):
                        f.store(low, to)
                        f.store(high, f.offset(to, size))
                        halves = (f.emit(VALUES, f"bitcast {half} to {VALUES}") for half in (low, high))
                        total = f.wrapping("sub", total, products_of_pairs(f, *halves))
                        to = f.offset(to, step_bytes)
                    f.store(total, header)
        return module.text()


@record(frozen=True)
class QuantizedStrassenInput(KernelSpec):
    """A microkernel: the first factors of all products, of pairs of pixels: widened rows as `InnerProductRows` makes
    them. ``void k(ptr x, ptr below, ptr s, ptr shape, i64 pixels)``.

    ``x`` and ``below`` are the pixels of the first pair. ``shape`` is the argument block: ``depth``, that of a quarter,
    a multiple of `BLOCK`; ``x_pair``, bytes between pairs; ``s_row`` and ``s_plane``, bytes between rows of a factor
    and between factors.
    """

    type: Byte = "i8"

    targets = "bytes"

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock("depth x_pair s_row s_plane")

    @property
    def parts(self) -> tuple[str, ...]:
        return (self.type, "strassen", "input")

    @classmethod
    def ships(cls, target: Target) -> Iterator[KernelSpec]:
        yield from (cls(target.name, type) for type in BYTES) if crosses(target) else ()

    def emit(self, target: Target) -> str:
        module = Module(target)
        f = module.function(ENTRY, *((PTR, name) for name in ("x", "below", "s", "shape")), (I64, "pixels"))
        x, below, s, shape_pointer, count = f.parameters
        shape = f.arguments(self.arguments, shape_pointer)
        with f.loop(0, count) as pixels:
            above, under = (f.offset(start, pixels.index * shape.x_pair) for start in (x, below))
            row = f.offset(s, pixels.index * shape.s_row)
            rows = [f.offset(row, shape.s_plane * number) for number in range(PRODUCTS)]
            with f.loop(0, shape.depth, BLOCK, carry=[f.constant(SUMS, 0)] * PRODUCTS) as depth:
                a11, a21 = (_widened(f, f.offset(start, depth.index), self.type) for start in (above, under))
                right = depth.index + shape.depth
                a12, a22 = (_widened(f, f.offset(start, right), self.type) for start in (above, under))
                values = [a11, a12, a22, *input_sums(a11, a12, a21, a22)]
                for to, value in zip(rows, values, strict=True):
                    f.store(value, f.offset(to, depth.index * 2 + ROW_HEADER))
                depth.hand_on([with_products(f, *pair) for pair in zip(depth.values, values, strict=True)])
            for at in range(0, PRODUCTS, ROWS):
                store_sums(f, depth.results[at : at + ROWS], rows[at : at + ROWS])
        return module.text()


@record(frozen=True)
class QuantizedStrassenOutput(KernelSpec):
    """A microkernel: pairs of output pixels of a panel from their products.

    Its parameters are those of `gossamer.codegen.kernels.strassen.StrassenOutput`; where that has the bias are scales,
    float32, of vectors of channels as `gossamer.codegen.dots.order` has them. ``shape`` is the argument block:
    ``right``, bytes from pixels to those of the other half of the channels, of which scales have four times as many;
    the others are those of `StrassenOutput` and of `Requantized`.
    """

    type: Byte = "i8"
    output: Requantized = Requantized()

    targets = "bytes"

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock(
        "right m_plane width step y_pair y_turn residual_pair residual_turn zero_point low high *parameters"
    )

    @property
    def parts(self) -> tuple[str, ...]:
        return (self.type, "strassen", "output", name_of(self.output.epilogue))

    @property
    def variant(self) -> str:
        return "_".join(self.output.flags)

    def general(self) -> Iterator[KernelSpec]:
        yield from (replace(self, output=output) for output in self.output.general())

    @classmethod
    def ships(cls, target: Target) -> Iterator[KernelSpec]:
        if crosses(target):
            for type, ending, general in product(BYTES, BYTE_ENDINGS, (False, True)):
                yield cls(target.name, type, Requantized(ending, general, general))

    def emit(self, target: Target) -> str:
        if self.output.together:
            raise CompileError(f"{self.name}: pixels of both halves do not lie together.")
        module = Module(target)
        pointers = ("m", "scales", "y", "y_below", "residual", "residual_below", "shape")
        counts = ("pixels", "column", "column_below", "skip")
        f = module.function(ENTRY, *((PTR, name) for name in pointers), *((I64, name) for name in counts))
        m, scales, y, y_below, residual, residual_below, shape_pointer, count, column, column_below, skip = f.parameters
        shape = f.arguments(self.arguments, shape_pointer)
        size, words = 4 * f.lanes, vector("i32", f.lanes)
        tile = Tile(f, shape, self.type, 2, NV)
        self.output.check(self.name, tile)
        numbers = self.output.numbers(tile)
        with f.loop(0, count, carry=[y, residual, column, y_below, residual_below, column_below]) as pixels:
            halves = (pixels.values[:3], pixels.values[3:])
            products = f.offset(m, pixels.index * (NV * size))
            is_mine = f.compare("sge", pixels.index, skip)
            found = []
            for v in range(NV):
                factors = [f.offset(products, shape.m_plane * number + v * size) for number in range(PRODUCTS)]
                found.append(quarters([f.load(words, factor) for factor in factors]))
            for side in range(2):
                at = shape.right * side
                (above, other, _), (below, other_below, _) = halves
                totals = [found[v][2 * is_below + side] for is_below in range(2) for v in range(NV)]
                to = f.select(is_mine, f.offset(below, at), products)  # which has been read
                others = [f.offset(other, at), f.offset(other_below, at)]
                self.output.store(tile, numbers, totals, f.offset(scales, at * 4), [f.offset(above, at), to], others)
            following = []
            for pixel, other, number in halves:
                next_column = number + shape.step
                turns = f.compare("sge", next_column, shape.width)
                following.append(f.offset(pixel, shape.y_pair + f.select(turns, shape.y_turn, 0)))
                following.append(f.offset(other, shape.residual_pair + f.select(turns, shape.residual_turn, 0)))
                following.append(next_column - f.select(turns, shape.width, 0))
            pixels.hand_on(following)
        return module.text()
