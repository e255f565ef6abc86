"""Inner products: the tiles of `quantized_contract` with half of the multiplications, where bytes have no dot products.

Winograd's way to inner products (1968): of each four of depth

    (a0 + b2) (a2 + b0) + (a1 + b3) (a3 + b1) = a0 b0 + a1 b1 + a2 b2 + a3 b3 + (a0 a2 + a1 a3) + (b0 b2 + b1 b3)

What is too much belongs to a row alone or to a channel alone. x86 without dot products multiplies and adds up pairs of
16 bits in one instruction, twice in a cycle, and adds in another: so four of depth are two additions of 16 bits, a
product and an addition instead of two products and two additions. These are as many, but any of four units adds, only
two multiply, and additions that wait where a product should begin delay it: on Zen 4, 29.6 products of bytes are done
in a cycle so and 25.4 otherwise. Sums are computed modulo 2^32, so they are exact.

The driver (`gossamer.codegen.kernels.contract.ContractGroups`) walks over groups of tiles. It has the rows of a group
widened to 16 bits (`InnerProductRows`), which also makes convolutions rows of a matrix: a row is what it begins with,
the negative sum of its own products, and then all of its depth, tap after tap. Then panel after panel goes by
(`InnerProductGemm`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import ClassVar, Literal, get_args

from gossamer.codegen.basis import BYTE_ENDINGS, BYTES
from gossamer.codegen.dots import Byte, crosses, products_of_pairs
from gossamer.codegen.expression import name_of
from gossamer.codegen.ir import I32, I64, PTR, Arguments, Function, Module, Value, vector
from gossamer.codegen.kernels.contract import LINE, ROW_ADDRESS
from gossamer.codegen.kernels.outputs import WALK, Output, Pointers, Requantized, Sums, Tile, rows_at
from gossamer.codegen.spec import ENTRY, ArgumentBlock, KernelSpec
from gossamer.codegen.tiles import proposals
from gossamer.errors import CompileError
from gossamer.records import record, replace
from gossamer.targets import Target

STEP = 4
"""Of depth."""

Block = Literal[16, 8, 4, 1]
"""Bytes that are widened at a time."""

VALUES, SUMS = vector("i16", 4 * STEP), vector("i32", 2 * STEP)
"""Of a row, and of their products."""

ROW_HEADER = 32
"""Bytes in front of the depth of a row, of which the first four are the negative sum of its own products."""

HEADER = 2
"""Vectors of a panel, for every vector of channels, in front of the weights."""

UNROLL = 2
"""Steps of depth at a time."""

WIDE = 16
"""Bytes of a block that becomes a vector."""

ROWS = 4
"""That are widened at a time."""

TOGETHER = 8 << 10
"""Bytes of the rows that are widened together."""


def row_bytes(steps: int) -> int:
    """Bytes of a row of so many steps: whole vectors, of which an odd number lies between rows."""
    vectors = -(-(ROW_HEADER + 2 * STEP * steps) // 32)
    return 32 * (vectors + 1 - vectors % 2)


def places_of(block: int, taps: Sequence[int], depth: int) -> tuple[list[int], list[int]]:
    """Where the wide blocks of taps are, and the others, for `InnerProductRows`: offsets of the taps, ``depth`` bytes
    each. A wide block reaches behind a shorter tap, if neither the last tap nor the row ends there: what follows is
    written later."""
    wide, narrow = [], []
    for tap, offset in enumerate(taps):
        place = tap * depth
        if depth < WIDE <= min(len(taps) * depth - place, max(taps) + depth - offset):
            wide += [offset, 2 * place]
        else:
            starts = [min(at, depth - block) for at in range(0, depth, block)]
            narrow += [word for at in starts for word in (offset + at, 2 * (place + at))]
    return wide, narrow


def panel_bytes(lanes: int, nv: int, steps: int) -> int:
    """Bytes of a panel of ``nv`` vectors."""
    return 4 * lanes * nv * (HEADER + 2 * steps)


@record(frozen=True)
class InnerProductRows(KernelSpec):
    """A microkernel: widens rows. ``void k(ptr a, ptr v, ptr shape, i64 count)``.

    ``shape`` is the argument block: ``a_stride`` and ``v_stride``, bytes from row to row; ``depth`` of the row, in
    bytes of a; ``together``: rows at a time; first ``wide_blocks`` of 16 bytes, then ``blocks`` of ``block`` bytes:
    ``wide_places`` and ``places`` are tables of where each is in a and in v, in bytes behind the row and its header.
    They may overlap. The last step of a row has its last four bytes, as `QuantizedPack` has their weights. ``whole``:
    there are no taps, and depth is whole blocks; the others are not read.
    """

    type: Byte
    block: Block = 16
    whole: bool = False

    targets = "bytes"

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock(
        "a_stride v_stride depth together wide_blocks *wide_places blocks *places"
    )

    @property
    def parts(self) -> tuple[str, ...]:
        return (self.type, "inner", "rows", str(self.block))

    @property
    def variant(self) -> str:
        return "whole" * self.whole

    @classmethod
    def ships(cls, target: Target) -> Iterator[KernelSpec]:
        if crosses(target):
            for type, block in product(BYTES, get_args(Block)):
                yield from (
                    cls(target.name, type, block, whole) for whole in (False, True) if block >= STEP or not whole
                )

    def emit(self, target: Target) -> str:
        module = Module(target)
        f = module.function(ENTRY, *((PTR, name) for name in ("a", "v", "shape")), (I64, "count"))
        a, v, shape_pointer, count = f.parameters
        shape = f.arguments(self.arguments, shape_pointer)
        strides = (shape.a_stride, shape.v_stride)
        if self.whole:
            for rows in _some_rows(f, f.integer(0), count, (a, v), strides):
                sums = [f.constant(vector("i32", max(self.block // 2, STEP)), 0)] * len(rows)
                with f.loop(0, shape.depth, self.block, carry=sums) as blocks:
                    following = []
                    for (row, to), sum in zip(rows, blocks.values, strict=True):
                        values = self._widened(f, f.offset(row, blocks.index), self.block)
                        f.store(values, f.offset(to, blocks.index * 2 + ROW_HEADER))
                        following.append(with_products(f, sum, values))
                    blocks.hand_on(following)
                store_sums(f, blocks.results, [to for _, to in rows])
            return module.text()
        four = vector("i16", STEP)
        end = ((shape.depth - 1) // STEP) * STEP
        last = f.greatest(shape.depth - STEP, 0) * 2
        tables = ((WIDE, shape.wide_blocks, shape.wide_places), (self.block, shape.blocks, shape.places))
        # What lies across several stores takes a while to be read, so some rows are written before; they share where
        # their blocks are.
        with f.loop(0, count, shape.together) as some:
            start, stop = some.index, f.least(some.index + shape.together, count)
            row, to = f.offset(a, some.index * shape.a_stride), f.offset(v, some.index * shape.v_stride + ROW_HEADER)
            for rows in _some_rows(f, start, stop, (to,), strides[1:]):
                for (to_row,) in rows:  # the end of the last vector
                    f.store(f.constant(VALUES, 0), f.offset(to_row, (end & -VALUES.lanes) * 2))
            for block, count_of_blocks, places in tables if self.block < WIDE else tables[1:]:
                with f.loop(0, count_of_blocks) as blocks:
                    from_, place = (f.load(I64, f.at(places, blocks.index * 2 + number, "i64")) for number in range(2))
                    for rows in _some_rows(f, start, stop, (f.offset(row, from_), f.offset(to, place)), strides):
                        for from_row, to_row in rows:
                            f.store(self._widened(f, from_row, block), to_row)
            for rows in _some_rows(f, start, stop, (to,), strides[1:]):
                for (to_row,) in rows:
                    f.store(f.load(four, f.offset(to_row, last)), f.offset(to_row, end * 2))
            for rows in _some_rows(f, start, stop, (to,), strides[1:]):
                with f.loop(0, shape.depth, VALUES.lanes, carry=[f.constant(SUMS, 0)] * len(rows)) as steps:
                    loaded = [f.load(VALUES, f.offset(to_row, steps.index * 2)) for (to_row,) in rows]
                    steps.hand_on([with_products(f, *pair) for pair in zip(steps.values, loaded, strict=True)])
                store_sums(f, steps.results, [f.offset(to_row, -ROW_HEADER) for (to_row,) in rows])
        return module.text()

    def _widened(self, f: Function, pointer: Value, count: int) -> Value:
        """So many bytes in 16 bits."""
        narrow, wide = vector("i8", count), vector("i16", count)
        bytes = f.emit(narrow, f"load {narrow}, {pointer}, align 1")
        return f.emit(wide, f"{'sext' if self.type == 'i8' else 'zext'} {bytes} to {wide}")


def with_products(f: Function, sums: Value, x: Value) -> Value:
    """Sums with the first two of every four of a row times the other two, and these times them."""
    if x.type.lanes == STEP:
        x = f.shuffle(x, f.constant(x.type, 0), range(2 * STEP))
    swapped = f.shuffle(x, x, [at ^ 2 for at in range(x.type.lanes)])
    products = products_of_pairs(f, x, swapped)
    return f.wrapping("add", sums, f.shuffle(products, products, range(sums.type.lanes)))


def _some_rows(
    f: Function, start: Value, stop: Value, pointers: Sequence[Value], strides: Sequence[Value]
) -> Iterator[list[list[Value]]]:
    """The pointers of rows from ``start``, which they are of, to ``stop``: of `ROWS` at a time, then of one."""
    middle = start + ((stop - start) & -ROWS)
    for begin, end, count in ((start, middle, ROWS), (middle, stop, 1)):
        with f.loop(begin, end, count, carry=pointers) as rows:
            *some, following = (
                [f.offset(pointer, stride * row) for pointer, stride in zip(rows.values, strides, strict=True)]
                for row in range(count + 1)
            )
            yield some
            rows.hand_on(following)
        pointers = rows.results


def store_sums(f: Function, sums: Sequence[Value], to: Sequence[Value]) -> None:
    """What rows begin with. Every product is there twice."""
    first, second, third, fourth = [*sums, *[sums[0]] * (ROWS - len(sums))]
    # Of every 128 bits of four, what is not there twice becomes four neighbours.
    lanes = sums[0].type.lanes
    starts = range(0, lanes, 4)

    def pair(a: Value, b: Value, *places: int) -> Value:
        return f.shuffle(a, b, [side + start + place for start in starts for side in (0, lanes) for place in places])

    pairs = pair(first, second, 0, 2), pair(third, fourth, 0, 2)
    halves = [pair(*pairs, at, at + 2) for at in range(2)]
    total = f.wrapping("add", *halves)
    while total.type.lanes > ROWS:
        half = total.type.lanes // 2
        low, high = (f.shuffle(total, total, range(at, at + half)) for at in (0, half))
        total = f.wrapping("add", low, high)
    total = f.wrapping("sub", f.constant(total.type, 0), total)
    for lane, pointer in enumerate(to):
        f.store(f.emit(I32, f"extractelement {total}, i32 {lane}"), pointer)


OF_LINES = ArgumentBlock(WALK, Output.words, "line c_gap residual_gap")
"""What a microkernel is told whose row is many lines of c."""


@record(frozen=True)
class InnerProductGemm(KernelSpec):
    """A microkernel: c = output(bias + a b) for ``count`` tiles of mr widened rows and nv vectors of channels.

    ``void k(ptr a, ptr b, ptr bias, ptr c, ptr residual, ptr next, ptr shape, i64 tile, i64 count)``: as
    `QuantizedGemm`'s, but that depth is one tap, of whole steps, and a has rows of `InnerProductRows`, b a panel of a
    `QuantizedPack` that is wide. ``next`` is another panel, of which each tile fetches some lines, one in every turn:
    which, its number tells, the first one's being ``tile``. Tiles follow each other in a row.

    ``lines``: this row is many of c, of ``line`` pixels each, mr or more. There is one parameter more, the number of
    the first ``pixel``; c and residual are those of pixel 0, and at the end of a line they move by ``c_gap`` and
    ``residual_gap`` bytes more.
    """

    mr: int
    nv: int
    type: Byte = "i8"
    output: Output = Requantized()
    ragged: bool = False
    lines: bool = False

    targets = "bytes"

    @property
    def arguments(self) -> ArgumentBlock:  # type: ignore[override]  # of each output others
        """Those of `WALK`, and the output's."""
        return OF_LINES if self.lines else self.output.arguments

    @property
    def parts(self) -> tuple[str, ...]:
        return (*self.output.label(self.type), "inner", name_of(self.output.epilogue), f"{self.mr}x{self.nv}")

    @property
    def variant(self) -> str:
        own = [name for name in ("lines", "ragged") if getattr(self, name)]
        return "_".join(sorted((*self.output.flags, *own)))

    def general(self) -> Iterator[KernelSpec]:
        yield from (replace(self, output=output) for output in self.output.general())

    @classmethod
    def ships(cls, target: Target) -> Iterator[KernelSpec]:
        if not crosses(target):
            return
        clamped, large = Requantized(clamps=True), Requantized(clamps=True, large=True)
        for (mr, nv), ragged in product(proposals(target, "inner_products"), (False, True)):
            for ending in BYTE_ENDINGS:
                yield cls(target.name, mr, nv, "i8", Requantized(ending), ragged)
            yield cls(target.name, mr, nv, "i8", clamped, ragged)
            for type, output in product(BYTES, (large, replace(large, nudged=True), Sums())):
                yield cls(target.name, mr, nv, type, output, ragged)
            if mr > 1:
                yield from (cls(target.name, mr, nv, "i8", Requantized(end), ragged, True) for end in BYTE_ENDINGS)
                yield cls(target.name, mr, nv, "i8", clamped, ragged, True)

    def emit(self, target: Target) -> str:
        if not crosses(target):
            raise CompileError(f"{self.name}: {target.name} multiplies bytes otherwise.")
        if not 1 <= self.mr <= len(ROW_ADDRESS):
            raise CompileError(f"{self.name}: mr must be 1 to {len(ROW_ADDRESS)}, got {self.mr}.")
        module = Module(target)
        pointers = ("a", "b", "bias", "c", "residual", "next", "shape")
        numbers = ("tile", "count", "pixel")[: 3 if self.lines else 2]
        f = module.function(ENTRY, *((PTR, name) for name in pointers), *((I64, name) for name in numbers))
        a, b, bias, c, residual, following, shape_pointer, first, count, *pixel = f.parameters
        shape = f.arguments(self.arguments, shape_pointer)
        tile = Tile(f, shape, self.type, self.mr, self.nv, self.ragged)
        self.output.check(self.name, tile)
        whole = shape.depth & -(UNROLL * STEP)
        strides = (shape.a_stride, shape.c_stride, shape.residual_stride)
        starts, gaps = [a, c, residual], []
        if self.lines:
            gaps, line = [shape.c_gap, shape.residual_gap], pixel[0] // shape.line
            for number, gap in enumerate(gaps, 1):
                starts[number] = f.offset(starts[number], pixel[0] * strides[number] + line * gap)
            starts.append(shape.line * (line + 1) - pixel[0])
        with f.loop(0, count, carry=starts) as tiles:
            row, to, other, *left = tiles.values
            ends = [f.compare("sge", i, pixels) for pixels in left for i in range(self.mr + 1)]
            behind = [[f.select(end, gap, 0) for end in ends] for gap in gaps]
            at = Pointers(row, b, bias, to, other, *(inside[: self.mr] for inside in behind))
            begin = self.output.begin(tile, b)
            own = [f.splat(f.load(I32, each)) for each in rows_at(f, row, shape.a_stride, self.mr)]
            sums = [f.wrapping("add", of_channel, of_row) for of_row in own for of_channel in begin]
            self.output.fetch(tile, at)
            rows, panel = f.offset(row, ROW_HEADER), f.offset(b, HEADER * self.nv * 4 * f.lanes)
            share = (first + tiles.index) & (UNROLL * self.nv - 1)
            fetch = f.offset(following, share * whole * (LINE // (UNROLL * STEP)))
            step_bytes = 2 * self.nv * 4 * f.lanes
            with f.loop(0, whole, UNROLL * STEP, carry=[rows, panel, fetch, *sums]) as loop:
                rows, panel, fetch, *sums = loop.values
                f.prefetch(fetch)
                for number in range(UNROLL):
                    sums = self._step(f, shape, rows, panel, number, sums)
                    f.keep_order()
                following_places = ((rows, UNROLL * STEP * 2), (panel, UNROLL * step_bytes), (fetch, LINE))
                loop.hand_on([*(f.offset(*pair) for pair in following_places), *sums])
            with f.loop(whole, shape.depth, STEP, carry=loop.results[3:]) as rest:
                rest.hand_on(self._step(f, shape, loop.results[0], loop.results[1], 0, rest.values))
            self.output.finish(tile, rest.results, at)
            moves = [stride * self.mr for stride in strides]
            for number, inside in enumerate(behind, 1):
                moves[number] = moves[number] + inside[self.mr]
            onward = [f.select(ends[self.mr], pixels + shape.line, pixels) - self.mr for pixels in left]
            tiles.hand_on([*(f.offset(*pair) for pair in zip((row, to, other), moves, strict=True)), *onward])
        return module.text()

    def _step(
        self, f: Function, shape: Arguments, a: Value, panel: Value, number: int, sums: list[Value]
    ) -> list[Value]:
        """The sums plus a step of depth, the ``number``-th behind an index."""
        size, wide = 4 * f.lanes, vector("i16", 2 * f.lanes)
        stride = shape.a_stride
        strides = {0: f.integer(0), 1: stride, 3: stride * 3, 5: stride * 5}
        starts = {0: a, 7: f.offset(a, stride * 7)}
        weights = [
            [f.load(wide, f.offset(panel, ((number * self.nv + v) * 2 + half) * size)) for half in range(2)]
            for v in range(self.nv)
        ]
        found = list(sums)
        for i in range(self.mr):
            start, multiple, scale = ROW_ADDRESS[i]
            row = f.offset(starts[start], strides[multiple] * scale)
            halves = []
            for half in range(2):
                both = f.splat(f.emit(I32, f"load i32, {f.offset(row, 8 * number + 4 * half)}, align 2"))
                halves.append(f.emit(wide, f"bitcast {both} to {wide}"))
            for v in range(self.nv):
                crossed = [f.wrapping("add", halves[half], weights[v][1 - half]) for half in range(2)]
                place = i * self.nv + v
                found[place] = f.wrapping("add", found[place], products_of_pairs(f, *crossed))
        return found
