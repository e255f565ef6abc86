"""`pack_depthwise`: how the weights of `quantized_depthwise` lie, and what lays them out.

How pixels and weights meet (`Scheme`): the rows of a column are interleaved, so that what one channel has in a group of
rows lies together, and an instruction multiplies it by the group's weights and adds it up:

- dot products of bytes: groups of four rows; two rounds of interleaving make four vectors of what was loaded;
- x86 without them: pixels widened to 16 bits, groups of two rows, products added up in pairs;
- AArch64 without them: one row at a time, widened when multiplied.

x86 interleaves within 128 bits, and narrows within 128 bits: both together leave channels where they were. Two rows of
output share interleaved columns: one has the weights w0 w1 w2 0, the other 0 w0 w1 w2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from gossamer.codegen.dots import Byte
from gossamer.codegen.ir import F32, I32, I64, Function, Module, Value, vector
from gossamer.codegen.spec import ArgumentBlock, KernelSpec
from gossamer.records import record
from gossamer.targets import Target

Tap = tuple[int, int]
"""Row and column."""


@record(frozen=True)
class Scheme:
    """How a target multiplies blocks of ``width`` channels: in ``parts`` vectors, by groups of ``rows`` rows, with
    weights of ``item`` bytes. Lane i of part t is channel 4 (parts (i / 4) + t) + i % 4 of the block."""

    width: int
    rows: int
    parts: int
    item: int

    @property
    def vector_bytes(self) -> int:
        """Bytes of weights of a part."""
        return self.width // self.parts * self.rows * self.item

    @property
    def head_bytes(self) -> int:
        """Bytes of bias and scales, which precede the weights of a block."""
        return 8 * self.width


def widths(target: Target) -> tuple[int, ...]:
    """The channels that blocks can have, the widest first."""
    if target.dot:
        return tuple([bits // 8 for bits in (512, 256, 128) if bits <= target.vector_bits])
    if target.triple.startswith("aarch64"):
        return (8,)
    return (target.vector_bits // 16,)


def scheme(target: Target, width: int) -> Scheme:
    """How a target multiplies blocks of a width."""
    if target.dot:
        return Scheme(width, 4, 4, 1)
    return Scheme(width, 1, 2, 2) if target.triple.startswith("aarch64") else Scheme(width, 2, 2, 2)


def quads_of(scheme: Scheme, kernel: Tap, rows: int = 1, stride: int = 1, *, staged: bool = False) -> list[list[Tap]]:
    """The taps that are multiplied together, in the order in which weights are packed: of all the input rows that
    ``rows`` output rows read, group by group of them and column by column.

    Where ``staged``, what is left of the rows is taken for several columns together.
    """
    height, width = (rows - 1) * stride + kernel[0], kernel[1]
    found = []
    for first in range(0, height, scheme.rows):
        columns = max(1, scheme.rows // (height - first)) if staged else 1
        together = range(first, first + scheme.rows // columns)
        for column in range(0, width, columns):
            found.append([(row, column + other) for other in range(columns) for row in together])
    return found


def weights_of(kernel: Tap, quads: Sequence[Sequence[Tap]], first: int) -> list[list[Tap | None]]:
    """The weights that taps meet of an output row that begins so many input rows further down."""
    return [
        [(row - first, column) if 0 <= row - first < kernel[0] and column < kernel[1] else None for row, column in quad]
        for quad in quads
    ]


@record(frozen=True)
class PackDepthwise(KernelSpec):
    """Weights, biases and scales in the blocks that `QuantizedRows` reads: [block], and in it bias [part][lane] of
    i32, scales alike of f32, weights [output row][quad][layer][part][lane][tap].

    ``weights`` are bytes. Channel j of block b is number (``first`` + b width + j) modulo ``channels``: so a few
    channels can fill a block. ``table`` has ``quads`` x ``rows`` words for each of ``output_rows``: where the weight of
    a tap is behind the first of its channel, in bytes, or -1 for 0. A weight is the byte less ``weight_zero``, as an
    integer of ``item`` bytes, or, where that may need nine bits, as the sum of ``layers`` of them. From the bias the
    zero point ``input_zero`` times the sum of a channel's weights is taken; sums wrap. ``scale_step`` is 4, or 0 if all
    channels have one scale. Threads share the blocks.
    """

    weights: Byte
    item: int
    layers: int = 1

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock(
        source="ptr",
        bias="ptr",
        scales="ptr",
        destination="ptr",
        table="ptr",
        blocks="i64",
        block_bytes="i64",
        width="i64",
        parts="i64",
        rows="i64",
        first="i64",
        channels="i64",
        output_rows="i64",
        quads="i64",
        scale_step="i64",
        input_zero="i64",
        weight_zero="i64",
    )

    @property
    def parts(self) -> tuple[str, ...]:
        return (self.weights, "dwpack", f"{self.item}x{self.layers}")

    def emit(self, target: Target) -> str:
        module = Module(target)
        f = module.driver()
        a = f.arguments(self.arguments)
        input_zero, weight_zero = (f.emit(I32, f"trunc {word} to i32") for word in (a.input_zero, a.weight_zero))
        lanes = a.width // a.parts
        part_bytes = lanes * a.rows * self.item
        layer_bytes = part_bytes * a.parts
        with f.share(a.blocks) as block, f.loop(0, a.width) as each:
            panel = f.offset(a.destination, block * a.block_bytes)
            channel = (a.first + block * a.width + each.index) % a.channels
            source = f.offset(a.source, channel)
            run, inside = each.index // (a.parts * 4), each.index % (a.parts * 4)
            lane, part = run * 4 + inside % 4, inside // 4
            begin = f.offset(panel, a.width * 8 + part * part_bytes + lane * a.rows * self.item)
            total = f.constant(I32, 0)
            with f.loop(0, a.output_rows * a.quads, carry=[total]) as quads:
                to = f.offset(begin, quads.index * layer_bytes * self.layers)
                is_first = f.compare("slt", quads.index, a.quads)
                with f.loop(0, a.rows, carry=quads.values) as taps:
                    offset = f.load(I64, f.at(a.table, quads.index * a.rows + taps.index, "i64"))
                    is_there = f.compare("sge", offset, 0)
                    byte = f.load(vector("i8", 1), f.offset(source, f.greatest(offset, 0)))
                    wide = f.emit(I32, f"{'sext' if self.weights == 'i8' else 'zext'} {byte} to i32")
                    value = f.select(is_there, f.wrapping("sub", wide, weight_zero), 0)
                    self._store(f, value, f.offset(to, taps.index * self.item), layer_bytes)
                    taps.hand_on([f.wrapping("add", taps.values[0], f.select(is_first, value, 0))])
                quads.hand_on(taps.results)
            bias = f.load(I32, f.at(a.bias, channel, "i32"))
            bias = f.wrapping("sub", bias, f.wrapping("mul", input_zero, quads.results[0]))
            place = f.at(panel, part * lanes + lane, "i32")
            f.store(bias, place)
            f.store(f.load(F32, f.offset(a.scales, channel * a.scale_step)), f.offset(place, a.width * 4))
        return module.text()

    def _store(self, f: Function, value: Value, to: Value, layer_bytes: Value) -> None:
        type = vector(f"i{8 * self.item}", 1)
        for _ in range(self.layers - 1):
            part = f.intrinsic("llvm.smax", value, f.constant(I32, -128))
            part = f.intrinsic("llvm.smin", part, f.constant(I32, 127))
            f.store(f.emit(type, f"trunc {part} to {type}"), to)
            value = f.wrapping("sub", value, part)
            to = f.offset(to, layer_bytes)
        f.store(f.emit(type, f"trunc {value} to {type}"), to)
