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

from collections.abc import Iterator, Sequence
from itertools import product
from typing import ClassVar

from gossamer.codegen.basis import BYTES
from gossamer.codegen.dots import Byte
from gossamer.codegen.ir import F32, I32, I64, Function, Module, Value, vector
from gossamer.codegen.spec import ArgumentBlock, KernelSpec
from gossamer.records import record
from gossamer.targets import Target

Tap = tuple[int, int]
"""Row and column."""

RUN = 4
"""Channels whose lanes are neighbours in every scheme."""


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

    Where ``staged``, in groups of four, what is left of the rows is taken for several columns together, and one row of
    output has the quads of two. So the weights of one row are always the first of those of several.
    """
    staged = staged and scheme.rows > 2
    height, width = (max(rows, 2 if staged else 1) - 1) * stride + kernel[0], kernel[1]
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

    targets = "bytes"

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock(
        "*source *bias *scales *destination *table blocks block_bytes width parts rows first channels output_rows "
        "quads scale_step input_zero weight_zero"
    )

    @property
    def parts(self) -> tuple[str, ...]:
        return (self.weights, "dwpack", f"{self.item}x{self.layers}")

    @classmethod
    def ships(cls, target: Target) -> Iterator[KernelSpec]:
        items = {scheme(target, width).item for width in widths(target)}
        yield from (cls(target.name, *form) for form in product(BYTES, items, (1, 2)))

    def emit(self, target: Target) -> str:
        module = Module(target)
        f = module.driver()
        a = f.arguments(self.arguments)
        words = vector("i32", RUN)
        input_zero, weight_zero = (
            f.splat(f.emit(I32, f"trunc {word} to i32"), RUN) for word in (a.input_zero, a.weight_zero)
        )
        lanes, lane_bytes = a.width // a.parts, a.rows * self.item
        part_bytes = lanes * lane_bytes
        layer_bytes = part_bytes * a.parts
        with f.share(a.blocks) as block, f.loop(0, a.width // RUN) as run:
            panel = f.offset(a.destination, block * a.block_bytes)
            first = a.first + block * a.width + run.index * RUN
            channels = [(first + other) % a.channels for other in range(RUN)]
            sources = [f.offset(a.source, channel) for channel in channels]
            lane, part = run.index // a.parts * RUN, run.index % a.parts
            begin = f.offset(panel, a.width * 8 + part * part_bytes + lane * lane_bytes)
            total = f.constant(words, 0)
            with f.loop(0, a.output_rows * a.quads, carry=[total]) as quads:
                to = f.offset(begin, quads.index * layer_bytes * self.layers)
                is_first = f.compare("slt", quads.index, a.quads)
                with f.loop(0, a.rows, carry=quads.values) as taps:
                    offset = f.load(I64, f.at(a.table, quads.index * a.rows + taps.index, "i64"))
                    is_there = f.compare("sge", offset, 0)
                    offset = f.greatest(offset, 0)
                    bytes = f.gathered(vector("i8", 1), [f.offset(source, offset) for source in sources])
                    wide = f.emit(words, f"{'sext' if self.weights == 'i8' else 'zext'} {bytes} to {words}")
                    values = f.select(is_there, f.wrapping("sub", wide, weight_zero), 0)
                    self._store(f, values, f.offset(to, taps.index * self.item), lane_bytes, layer_bytes)
                    taps.hand_on([f.wrapping("add", taps.values[0], f.select(is_first, values, 0))])
                quads.hand_on(taps.results)
            bias = f.gathered(vector("i32", 1), [f.at(a.bias, channel, "i32") for channel in channels])
            place = f.at(panel, part * lanes + lane, "i32")
            f.store(f.wrapping("sub", bias, f.wrapping("mul", input_zero, quads.results[0])), place)
            scales = f.gathered(F32, [f.offset(a.scales, channel * a.scale_step) for channel in channels])
            f.store(scales, f.offset(place, a.width * 4))
        return module.text()

    def _store(self, f: Function, values: Value, to: Value, lane_bytes: Value, layer_bytes: Value) -> None:
        for _ in range(self.layers - 1):
            part = f.intrinsic("llvm.smax", values, f.constant(values.type, -128))
            part = f.intrinsic("llvm.smin", part, f.constant(values.type, 127))
            self._scatter(f, part, to, lane_bytes)
            values = f.wrapping("sub", values, part)
            to = f.offset(to, layer_bytes)
        self._scatter(f, values, to, lane_bytes)

    def _scatter(self, f: Function, values: Value, to: Value, lane_bytes: Value) -> None:
        type = values.type.with_element(f"i{8 * self.item}")
        weights = f.emit(type, f"trunc {values} to {type}")
        for lane in range(RUN):
            f.store(f.emit(type.scalar, f"extractelement {weights}, i32 {lane}"), f.offset(to, lane * lane_bytes))
