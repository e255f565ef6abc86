"""`quantized_winograd`: 3x3 convolutions of bytes with a quarter of the multiplications, and exact sums.

Winograd's F(4x4, 3x3) (`gossamer.codegen.kernels.winograd`) at the points 0, 1, -1, 2, -2 and infinity has integers in
its matrices but for quarters, sixths and 24ths in that of the weights. Here the rows of the points 2 and -2 are
multiplied by 24, all others by 12; what comes out in each direction is the sum times 24 or, where that can be halved on
the way, 12, and in all the sum times 9 x 2^4, 2^5 or 2^6. Everything is computed modulo 2^32, where 9 has an inverse:
a multiplication makes it 64 times the sum, as long as that is less than 2^31. As a float this is as exact as the sum
itself, and the scales of channels are 64 times smaller. Biases come in with a plane that all pixels have alike.

Larger sums, those of ``deep`` kernels, have the point -1/2 instead of -2. There are halves, sixths, 15ths and 30ths
then, and what comes out is the sum times 225 x 4 everywhere. Without the symmetry of the points more must be added: a
small convolution takes 1.03 times as long so.

Pixels, less 128 where they are unsigned, times 100 (deep: 196) and weights times 144 (225) fit 16 bits. An instruction
multiplies half as many of these as of bytes, so half of the time of the products remains.

The driver is that of floats, with a row of 6 planes where that has a plane. A group of tiles passes
`QuantizedWinogradInput`; for every row of planes `QuantizedWinogradProduct`, which multiplies and transforms along the
row; and `QuantizedWinogradOutput`, which transforms along columns and requantizes. `QuantizedWinogradWeights`
transforms and packs weights, once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import ClassVar

from gossamer.codegen.basis import BYTE_ENDINGS, BYTES
from gossamer.codegen.dots import Byte
from gossamer.codegen.expression import name_of
from gossamer.codegen.ir import I32, I64, PTR, Function, Module, Value, vector
from gossamer.codegen.kernels.contract import LINE
from gossamer.codegen.kernels.outputs import Requantized, Tile, rows_at
from gossamer.codegen.kernels.quantized_contract import columns_of_four
from gossamer.codegen.kernels.winograd import Transform
from gossamer.codegen.spec import ENTRY, ArgumentBlock, KernelSpec
from gossamer.records import record, replace
from gossamer.targets import Target

SIZE = 4
"""Output pixels of a tile, in each direction."""

SIDE = SIZE + 2
"""Input pixels of a tile in each direction, and planes in a row of them."""

PLANES = SIDE * SIDE

BLOCK = 8
"""Steps of depth whose weights are transformed at a time: the depth is a multiple."""

SHIFTS = 6, 2
"""Sums come out 2 to this power as large; ``deep``: to the other one."""

HEADER = 2
"""Vectors in front of the packed weights for every vector of channels: the bias (int32), as a plane has it, and scales
(float32) of sums as they come out."""

TILES = 16
"""Tiles whose products fetch the next two panels between them: so what comes from memory is asked for twice. With fewer
lines in a step, a layer of 256 channels takes 1.05 times as long (Zen 4, AVX-512). With AVX2, whose panels have half
the bytes and whose steps half the tiles, as many would be eight panels: small convolutions take 1.03 times as long."""

_INVERSES = 0x38E38E39, 0x87654321
"""Those of 9 and 225, modulo 2^32."""

_FACTORS = 144, 900
"""How many times the bias is in the plane of the point 1 in both directions, from where all pixels have it."""


def fits(depth: int, bias: int, deep: bool) -> bool:
    """Whether sums of so much depth, plus no more than such a bias, come out in 32 bits."""
    return (9 * 128 * 255 * depth + bias) << SHIFTS[deep] < 1 << 31


def plane_bytes(rows: int, channels: int, item: int) -> int:
    """Bytes from plane to plane of ``rows`` x ``channels`` elements: an odd number of whole lines."""
    lines = -(-item * rows * channels // LINE)
    return LINE * (lines + 1 - lines % 2)


def tiles_of(target: Target) -> int:
    """How many tiles a microkernel does: six registers have the sums of each, and there are two more. Elements that are
    multiplied have to be in one of 16 of NEON's registers, which leaves no room for a fourth tile."""
    if target.by_element:
        return 3
    return 4 if target.registers >= 32 else 2


def vectors_of(target: Target) -> int:
    """How many vectors of channels a panel has. In 16 registers there are two, and half of the planes at a time: then
    there are as many loads as sums, and not half as many again, which is more than Zen 4 loads meanwhile. So it is
    where a product takes an element of a register, and a load cannot be part of it."""
    return 1 if target.registers >= 32 and not target.by_element else 2


def turns_of(target: Target, mr: int) -> int:
    """How often a product of ``mr`` tiles goes along the depth."""
    return vectors_of(target) * -(-mr // tiles_of(target))


def prefetch(target: Target) -> int:
    """Lines of what comes next that a product fetches in every step of depth, see `TILES`."""
    lines, mr = 4 * target.lanes() * SIDE * vectors_of(target) // LINE, tiles_of(target)  # of a panel
    return -(-2 * lines * mr // (TILES * turns_of(target, mr)))


@record(frozen=True)
class QuantizedWinogradWeights(KernelSpec):
    """Weights [channels, 3, 3, depth], int8, transformed and packed, and what else belongs to the channels.

    At ``header`` is what `HEADER` says of each vector of channels, at ``destination`` int16: for each row of planes
    panels [vector of channels][pair of depth][6 planes][lanes][2], or, where panels have two vectors, the same of the
    first 3 planes and then of the others. ``bias`` are int32, ``scales`` float32, ``scale_step`` bytes apart (0: one
    for all channels); ``zero_point`` is that of the pixels, less 128 where they are unsigned, for which the bias makes
    up. Channels are whole panels. Threads share vectors of channels.
    """

    deep: bool = False

    targets = "bytes"

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock(
        "*source *header *destination *bias *scales scale_step zero_point channels depth"
    )

    @property
    def parts(self) -> tuple[str, ...]:
        return ("i8", "winograd", "weights")

    @property
    def variant(self) -> str:
        return "deep" * self.deep

    def emit(self, target: Target) -> str:
        module = Module(target)
        f = module.driver()
        a = f.arguments(self.arguments)
        lanes, size = f.lanes, 4 * f.lanes
        row, at_a_time = 2 * BLOCK, SIDE // vectors_of(target)  # bytes of a block of depth, of one channel
        square = f.stack(vector("i16", 1), PLANES * lanes * BLOCK, 16)  # [plane][channel][depth]
        sums = f.stack(I32, lanes, 4)
        with f.share(a.channels // lanes) as number:
            destination = f.offset(a.destination, number * (a.depth // 2) * (SIDE * size))
            row_bytes = (a.channels // lanes) * (a.depth // 2) * (SIDE * size)
            first = f.offset(a.source, number * lanes * 9 * a.depth)
            self._sum(f, first, 9 * a.depth, sums)
            with f.loop(0, a.depth, BLOCK) as blocks:
                with f.loop(0, lanes) as channels:
                    taps = f.offset(first, channels.index * 9 * a.depth + blocks.index)
                    filter = []
                    for tap in range(9):
                        bytes = f.load(vector("i8", BLOCK), f.offset(taps, a.depth * tap))
                        filter.append(f.emit(vector("i16", BLOCK), f"sext {bytes} to {vector('i16', BLOCK)}"))
                    grid = (filter[column::3] for column in range(3))
                    for plane, value in enumerate(_transformed(f, _WEIGHTS[self.deep], grid)):
                        f.store(value, f.offset(square, channels.index * row + plane * lanes * row))
                with f.loop(0, PLANES) as planes:
                    here = f.offset(square, planes.index * (lanes * row))
                    down = planes.index // SIDE
                    across = planes.index - down * SIDE
                    part = across // at_a_time
                    pairs = part * (a.depth // 2) + blocks.index // 2
                    to = f.offset(destination, down * row_bytes + (across - part * at_a_time) * size)
                    to = f.offset(to, pairs * (at_a_time * size))
                    parts = [f.load(vector("i32", 4), f.offset(here, lane * row)) for lane in range(lanes)]
                    for column in columns_of_four(f, parts):
                        f.store(Pairs(f).packed(column), to)
                        to = f.offset(to, at_a_time * size)
            header = f.offset(a.header, number * (HEADER * size))
            words = vector("i32", lanes)
            zero = f.splat(f.emit(I32, f"trunc {a.zero_point} to i32"))
            bias = f.load(words, f.offset(a.bias, number * size))
            bias = f.wrapping("sub", bias, f.wrapping("mul", f.load(words, sums), zero))
            f.store(f.wrapping("mul", bias, _FACTORS[self.deep]), header)
            scales = [f.offset(a.scales, (number * lanes + lane) * a.scale_step) for lane in range(lanes)]
            f.store(f.gathered(f.f32.scalar, scales) * 2.0 ** -SHIFTS[self.deep], f.offset(header, size))
        return module.text()

    def _sum(self, f: Function, first: Value, bytes: Value, to: Value) -> None:
        """Write the sums of so many bytes of every channel."""
        wide = vector("i32", BLOCK)
        with f.loop(0, f.lanes) as channels:
            row = f.offset(first, channels.index * bytes)
            with f.loop(0, bytes, BLOCK, carry=[f.constant(wide, 0)]) as loop:
                x = f.load(vector("i8", BLOCK), f.offset(row, loop.index))
                loop.hand_on([f.wrapping("add", loop.values[0], f.emit(wide, f"sext {x} to {wide}"))])
            sum = f.fold(lambda a, b: f.wrapping("add", a, b), loop.results[0])
            f.store(sum, f.offset(to, channels.index * 4))


@record(frozen=True)
class QuantizedWinogradInput(KernelSpec):
    """A microkernel: the planes, of int16, of a tile of input pixels. ``void k(ptr x, ptr v, ptr shape)``.

    ``shape`` is the argument block: ``channels``, whole vectors of int16, or, ``half``, a multiple of half a vector;
    ``x_row`` and ``x_column``, bytes between pixels of x; ``v_plane``, bytes between planes of v.
    """

    type: Byte
    deep: bool = False
    half: bool = False

    targets = "bytes"

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock("channels x_row x_column v_plane")

    @property
    def parts(self) -> tuple[str, ...]:
        return (self.type, "winograd", "input")

    @property
    def variant(self) -> str:
        return "_".join(filter(None, ("deep" * self.deep, "half" * self.half)))

    def emit(self, target: Target) -> str:
        module = Module(target)
        f = module.microkernel("x", "v", "shape")
        x, v, shape_pointer = f.parameters
        shape = f.arguments(self.arguments, shape_pointer)
        lanes = f.lanes if self.half else 2 * f.lanes
        bytes, wide = (vector(element, lanes) for element in ("i8", "i16"))

        def pixel(pointer: Value) -> Value:
            value = f.load(bytes, pointer)
            if self.type == "u8":
                value = f.wrapping("xor", value, -128)
            return f.emit(wide, f"sext {value} to {wide}")

        with f.loop(0, shape.channels, lanes) as loop:
            rows = [f.offset(x, loop.index + shape.x_row * row) for row in range(SIDE)]
            grid = ([pixel(f.offset(row, shape.x_column * column)) for row in rows] for column in range(SIDE))
            to = f.offset(v, loop.index * 2)
            for value in _transformed(f, _INPUT[self.deep], grid):
                f.store(value, to)
                to = f.offset(to, shape.v_plane)
        return module.text()


@record(frozen=True)
class QuantizedWinogradProduct(KernelSpec):
    """A microkernel: of a row of 6 planes, the products of ``mr`` tiles with the channels of a panel, transformed to 4.

    ``void k(ptr v, ptr b, ptr, ptr m, ptr, ptr next, ptr shape)``; b is a panel of `vectors_of` the target, and of the
    next one so many lines are fetched in every step as `prefetch` says. What is written are 4 planes of sums, modulo
    2^32. ``shape`` is the argument block: ``depth``, even; ``v_tile`` and ``v_plane``, ``m_tile`` and
    ``m_plane``, bytes from tile to tile and from plane to plane.
    """

    mr: int
    deep: bool = False

    targets = "bytes"

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock("depth v_tile v_plane m_tile m_plane")

    @property
    def parts(self) -> tuple[str, ...]:
        return ("i16", "winograd", "product", str(self.mr))

    @property
    def variant(self) -> str:
        return "deep" * self.deep

    @classmethod
    def ships(cls, target: Target) -> Iterator[KernelSpec]:
        yield from (cls(target.name, mr, deep) for mr in range(1, tiles_of(target) + 1) for deep in (False, True))

    def emit(self, target: Target) -> str:
        module = Module(target)
        f = module.microkernel("v", "b", "bias", "m", "residual", "next", "shape")
        v, b, _, m, _, following, shape_pointer = f.parameters
        shape = f.arguments(self.arguments, shape_pointer)
        size, words, steps = 4 * f.lanes, vector("i32", f.lanes), shape.depth // 2
        pairs, lines, nv, most = Pairs(f), prefetch(target), vectors_of(target), tiles_of(target)
        count = SIDE // nv
        tiles, places = rows_at(f, v, shape.v_tile, self.mr), rows_at(f, m, shape.m_tile, self.mr)
        fetch = following
        for part, first in product(range(nv), range(0, self.mr, most)):
            some = tiles[first : first + most]
            planes = [shape.v_plane * (count * part + plane) for plane in range(count)]
            panels = [f.offset(b, steps * (size * (SIDE * number + count * part))) for number in range(nv)]
            # A step at a time: LLVM takes the sums of several apart, into products and additions.
            together = pairs.together
            with f.loop(0, steps, together, carry=[f.constant(words, 0)] * (len(some) * nv * count)) as loop:
                sums, known = list(loop.values), dict[int, Value]()
                weights_at = [f.offset(panel, loop.index * (count * size)) for panel in panels]
                starts = [f.offset(tile, loop.index * 4) for tile in some]
                for line in range(lines * together):
                    f.prefetch(f.offset(fetch, loop.index * (lines * LINE) + line * LINE))
                for (plane, offset), step in product(enumerate(planes), range(together)):
                    weights = [pairs.weights(f.offset(panel, (step * count + plane) * size)) for panel in weights_at]
                    for i, start in enumerate(starts):
                        if step == 0:
                            known[i] = pairs.activation(f.offset(start, offset))
                        for number in range(nv):
                            at = (i * nv + number) * count + plane
                            sums[at] = pairs.add(sums[at], known[i], weights[number], step)
                loop.hand_on(sums)
            fetch = f.offset(fetch, steps * (lines * LINE))
            # The transformation is linear: what other planes add to it is added to what is there.
            nothing = [f.constant(words, 0)] * count
            for i, number in product(range(len(some)), range(nv)):
                at = (i * nv + number) * count
                found = [*nothing * part, *loop.results[at : at + count], *nothing * (nv - 1 - part)]
                to = f.offset(places[first + i], number * size)
                for value, place in zip(_OUTPUT[self.deep](f, found), rows_at(f, to, shape.m_plane, SIZE), strict=True):
                    f.store(value if part == 0 else f.wrapping("add", f.load(words, place), value), place)
        return module.text()


class Pairs:
    """Dot products of two int16 with as many weights of every channel of a vector."""

    def __init__(self, f: Function) -> None:
        self.f = f
        self.words = vector("i32", f.lanes)
        self.type = vector("i16", 2 * f.lanes)
        self.together = 2 if f.target.by_element else 1
        """Steps whose activations are loaded at once; the depth has a multiple of so many."""

    def weights(self, pointer: Value) -> Value:
        """Weights of a vector of channels."""
        return self.f.load(self.type, pointer)

    def packed(self, pairs: Value) -> Value:
        """A pair of every channel as `weights` reads it: where elements are multiplied, the first of all, and then the
        other."""
        f = self.f
        if not f.target.by_element:
            return pairs
        both = f.emit(self.type, f"bitcast {pairs} to {self.type}")
        return f.shuffle(both, both, [*range(0, self.type.lanes, 2), *range(1, self.type.lanes, 2)])

    def activation(self, pointer: Value) -> Value:
        """Two activations for every channel, or, where elements are multiplied, those of all steps together."""
        f = self.f
        if f.target.by_element:
            return f.load(vector("i16", 2 * self.together), pointer)
        both = f.splat(f.emit(I32, f"load i32, {pointer}, align 2"))
        return f.emit(self.type, f"bitcast {both} to {self.type}")

    def add(self, sum: Value, x: Value, weights: Value, step: int = 0) -> Value:
        """The sum and two more products of every channel: of a step of those together."""
        f, words, type = self.f, self.words, self.type
        if f.target.dot == "unsigned":
            name = f"llvm.x86.avx512.vpdpwssd.{f.target.vector_bits}"
            f.module.declare(f"declare {words} @{name}({words}, {type}, {type})")
            return f.emit(words, f"call {words} @{name}({sum}, {weights}, {x})")
        if f.target.triple.startswith("x86_64"):
            name = {16: "llvm.x86.avx512.pmaddw.d.512", 8: "llvm.x86.avx2.pmadd.wd"}[f.lanes]
            f.module.declare(f"declare {words} @{name}({type}, {type})")
            return f.wrapping("add", sum, f.emit(words, f"call {words} @{name}({weights}, {x})"))
        half = vector("i16", f.lanes)
        name = f"llvm.aarch64.neon.smull.{words.suffix}"
        f.module.declare(f"declare {words} @{name}({half}, {half})")
        for number in range(2):
            of_weights = f.shuffle(weights, weights, range(number * f.lanes, (number + 1) * f.lanes))
            element = f.shuffle(x, x, [2 * step + number] * f.lanes)
            sum = f.wrapping("add", sum, f.emit(words, f"call {words} @{name}({of_weights}, {element})"))
        return sum


@record(frozen=True)
class QuantizedWinogradOutput(KernelSpec):
    """A microkernel: a tile of output pixels from their planes, which are int32.

    ``void k(ptr m, ptr header, ptr y, ptr residual, ptr shape, i64 rows, i64 columns)``; all pixels are written, also
    those that another tile writes: sums are exact, so they are the same.

    ``shape`` is the argument block: ``channels``, whole vectors; ``m_plane``, bytes between planes of m; the bytes
    between pixels of y and of the residual; the others are those of `Requantized`. Pixels lie ``together`` if there is
    one vector of channels, and pixels of a row lie one behind the other.
    """

    type: Byte = "i8"
    output: Requantized = Requantized()
    deep: bool = False

    targets = "bytes"

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock(
        "channels m_plane y_row c_stride residual_row residual_stride zero_point low high *parameters"
    )

    @property
    def parts(self) -> tuple[str, ...]:
        return (self.type, "winograd", "output", name_of(self.output.epilogue))

    @property
    def variant(self) -> str:
        return "_".join(filter(None, (*self.output.flags, "deep" * self.deep)))

    def general(self) -> Iterator[KernelSpec]:
        yield from (replace(self, output=output) for output in self.output.general())

    @classmethod
    def ships(cls, target: Target) -> Iterator[KernelSpec]:
        for type, ending, general, deep in product(BYTES, BYTE_ENDINGS, (False, True), (False, True)):
            yield cls(target.name, type, Requantized(ending, general, general), deep)

    def emit(self, target: Target) -> str:
        module = Module(target)
        pointers = [(PTR, name) for name in ("m", "header", "y", "residual", "shape")]
        f = module.function(ENTRY, *pointers, (I64, "rows"), (I64, "columns"))
        m, header, y, residual, shape_pointer, _, _ = f.parameters
        shape = f.arguments(self.arguments, shape_pointer)
        size, words = 4 * f.lanes, vector("i32", f.lanes)
        tile = Tile(f, shape, self.type, SIZE**2, 1)
        numbers = self.output.numbers(tile)
        with f.loop(0, shape.channels, f.lanes) as loop:
            known = f.offset(header, loop.index * (4 * HEADER))
            bias = f.load(words, known)
            columns = []
            for column in range(SIZE):
                at = f.offset(m, loop.index * 4 + shape.m_plane * column)
                planes = [f.load(words, plane) for plane in rows_at(f, at, shape.m_plane * SIZE, SIDE)]
                planes[1] = _plus(f, planes[1], bias if column or self.deep else _twice(f, bias))
                columns.append(_OUTPUT[self.deep](f, planes))
            totals, to, others = [], [], []
            for row in range(SIZE):
                to += rows_at(f, f.offset(y, loop.index + shape.y_row * row), shape.c_stride, SIZE)
                other = f.offset(residual, loop.index + shape.residual_row * row)
                others += rows_at(f, other, shape.residual_stride, SIZE)
                for column in range(SIZE):
                    factor = _INVERSES[self.deep] << (0 if self.deep else (row > 0) + (column > 0))
                    totals.append(f.wrapping("mul", columns[column][row], factor & 0xFFFFFFFF))
            self.output.store(tile, numbers, totals, f.offset(known, size), to, others)
        return module.text()


def _transformed(f: Function, transform: Transform, columns: Iterable[Sequence[Value]]) -> Iterator[Value]:
    """The matrix from both sides of a grid, row by row.

    Columns are asked for, and values handed out, one by one: if all loads are in front and all stores behind, the
    additions between do not hide them (0.8 of the time on Zen 4).
    """
    transformed = [transform(f, column) for column in columns]
    for row in zip(*transformed, strict=True):
        yield from transform(f, row)


# The matrices B^T, 12 or 24 times G, and 12 or 24 times A^T, by what their rows share. Where doubling is an addition,
# twice as many are done in a cycle as shifts.


def _input(f: Function, d: Sequence[Value]) -> list[Value]:
    even, odd = _minus(f, d[4], d[2]), _minus(f, d[3], d[1])
    near = _minus(f, d[4], _times_4(f, d[2]))
    near_odd = _minus(f, d[3], _times_4(f, d[1]))
    far_odd = _plus(f, odd, odd)
    return [
        _plus(f, _times_4(f, _minus(f, d[0], d[2])), even),
        _plus(f, near, near_odd),
        _minus(f, near, near_odd),
        _plus(f, even, far_odd),
        _minus(f, even, far_odd),
        _minus(f, _minus(f, d[5], d[3]), _plus(f, far_odd, far_odd)),
    ]


def _weights(f: Function, g: Sequence[Value]) -> list[Value]:
    near, twice = _plus(f, g[0], g[2]), _plus(f, g[1], g[1])
    near = _plus(f, near, near)
    far = _plus(f, g[0], _times_4(f, g[2]))
    none = f.constant(g[0].type, 0)
    return [
        f.wrapping("mul", g[0], 3),
        _minus(f, none, _plus(f, near, twice)),
        _minus(f, twice, near),
        _plus(f, far, twice),
        _minus(f, far, twice),
        f.wrapping("mul", g[2], 12),
    ]


def _output(f: Function, m: Sequence[Value]) -> list[Value]:
    near, near_odd = _plus(f, m[1], m[2]), _minus(f, m[1], m[2])
    far, far_odd = _plus(f, m[3], m[4]), _minus(f, m[3], m[4])
    first = _plus(f, m[0], near)
    return [
        _plus(f, _plus(f, first, first), far),
        _plus(f, near_odd, far_odd),
        _plus(f, near, _plus(f, far, far)),
        _plus(f, _plus(f, near_odd, m[5]), _times_4(f, far_odd)),
    ]


# The same with the point -1/2: B^T, 30 times G, and A^T.


def _input_deep(f: Function, d: Sequence[Value]) -> list[Value]:
    even, odd = _minus(f, d[4], d[2]), _minus(f, d[3], d[1])
    twice, twice_odd = _twice(f, even), _twice(f, odd)
    near, near_odd = _minus(f, twice, _times_3(f, d[3])), _minus(f, _times_3(f, d[2]), twice_odd)
    first = _twice(f, _plus(f, _minus(f, d[0], d[2]), even))
    last = _twice(f, _minus(f, _minus(f, _minus(f, d[5], d[3]), odd), even))
    return [
        _minus(f, _minus(f, first, twice_odd), odd),
        _minus(f, near, near_odd),
        _plus(f, near, near_odd),
        _plus(f, twice, odd),
        _minus(f, even, twice_odd),
        _minus(f, last, even),
    ]


def _weights_deep(f: Function, g: Sequence[Value]) -> list[Value]:
    near, twice = _plus(f, g[0], g[2]), _twice(f, g[1])
    return [
        f.wrapping("mul", g[0], 15),
        f.wrapping("mul", _plus(f, near, g[1]), -5),
        f.wrapping("mul", _minus(f, near, g[1]), 5),
        _plus(f, _plus(f, g[0], twice), _times_4(f, g[2])),
        _minus(f, _minus(f, twice, _times_4(f, g[0])), g[2]),
        f.wrapping("mul", g[2], 15),
    ]


def _output_deep(f: Function, m: Sequence[Value]) -> list[Value]:
    near, near_odd = _plus(f, m[1], m[2]), _minus(f, m[1], m[2])
    return [
        _plus(f, _plus(f, _plus(f, m[0], near), m[3]), f.wrapping("shl", m[4], 3)),
        _plus(f, near_odd, _twice(f, _minus(f, m[3], _twice(f, m[4])))),
        _plus(f, near, _twice(f, _plus(f, m[4], _twice(f, m[3])))),
        _plus(f, _plus(f, near_odd, _minus(f, m[5], m[4])), f.wrapping("shl", m[3], 3)),
    ]


def _plus(f: Function, a: Value, b: Value) -> Value:
    return f.wrapping("add", a, b)


def _minus(f: Function, a: Value, b: Value) -> Value:
    return f.wrapping("sub", a, b)


def _times_4(f: Function, x: Value) -> Value:
    return f.wrapping("shl", x, 2)


def _twice(f: Function, x: Value) -> Value:
    return _plus(f, x, x)


def _times_3(f: Function, x: Value) -> Value:
    return _plus(f, _twice(f, x), x)


_INPUT: Sequence[Transform] = (_input, _input_deep)
_WEIGHTS: Sequence[Transform] = (_weights, _weights_deep)
_OUTPUT: Sequence[Transform] = (_output, _output_deep)
