"""`contract`: convolutions and fully connected layers as tiles of a matrix product.

Operands are an NHWC image, weights [O, h, w, C / groups], a bias [O] and perhaps a scale for each channel of the image,
by which the weights are multiplied first; settings a `Geometry`. Weights that the model computes are dense.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from gossamer.codegen.commands import KNOWN, Build
from gossamer.codegen.commands.tiled import (
    ALIGNMENT,
    Matrix,
    Pixels,
    Tiled,
    matrix,
    moved,
    multiply,
    packed,
    packed_bytes,
    packing,
    rounded_up,
    tap_offsets,
)
from gossamer.codegen.expression import IDENTITY, operand_count
from gossamer.codegen.graph import Kernel
from gossamer.codegen.kernels.bf16_rows import Bf16Rows, row_bytes
from gossamer.codegen.kernels.contract import (
    DEPTH_BLOCK,
    GROUP_PANEL,
    LINE,
    UNROLL,
    ContractGroups,
    ContractPanels,
    ContractSingle,
    ContractState,
    Gemm,
    panels_of,
)
from gossamer.codegen.kernels.contract24 import Gemm24, Pack24, header_bytes, lines_of, narrowed, narrows
from gossamer.codegen.kernels.dot import MAX_ROWS, Dot, rows_of_weights
from gossamer.codegen.kernels.elementwise import Map, operands_of
from gossamer.codegen.kernels.pack import Pack
from gossamer.codegen.kernels.private import Private
from gossamer.codegen.layout import item_bytes
from gossamer.codegen.spec import KernelSpec
from gossamer.codegen.tiles import Tile, cut_evenly, gemm_tiles, last_vector
from gossamer.programs.program import SCRATCH, Address, Word
from gossamer.records import record, replace
from gossamer.sizes import computed
from gossamer.views import Geometry, View

STREAMED = 400 << 10
"""Bytes of weights from which they are streamed, panel by panel, instead of read anew for each tile."""

STREAMED_DOT = 1 << 20
"""Bytes of weights of 16 bits from which two to four rows are dot products, and the weights not packed.

Those of one row always are, and so are weights that are computed. Floats that are constant are packed, but for one row
of one or two vectors of channels: so few sums would wait for each other. Measured on Zen 4, dot products over packed
floats. One row, AVX2 and AVX-512: depth 16 and 1024 channels 2.5 and 1.9, 64 and 500 1.28 and 1.2, 256 and 256 1.1 and
1.0, 256 and 24 0.94 and 1.0, 4096 and 10 (AVX2) 0.6. Two and four rows, AVX-512: 1 MB 1.29 and 1.1, 4 MB 1.23 and 1.08,
16 MB 2.6 and 2.3, six times 4 MB 3.0 and 3.1, 64 MB 1.5 and 1.9."""

REPEATED = 32 << 20
"""Bytes of weights below which one row is no dot product in a loop, where weights are packed once for all turns.

Measured on Zen 4 with AVX-512, turns of an LSTM: 40 us instead of 44 with 64 units, 13.5 a turn instead of 17 with 256,
whose weights have 1 MB, 44 instead of 56 with 512, 200 instead of 340 with 1024."""

SKIPPED = 16 << 10
"""Bytes of weights from which they are not read for a row of zeros, in the turns of a loop."""

BLOCK_BYTES = 512 << 10
"""Bytes of a panel that may stay in the cache while tiles go by; larger ones are cut into blocks of depth."""

BLOCK_DEPTH = 512
"""Elements of depth x vectors in a block."""

BF16_DEPTH = 16
"""Depth from which rows are worth being rounded to bfloat16, for more than a vector of channels."""

BF16_WEIGHTS = 1 << 10
"""Weights from which they are: with fewer, it takes longer than the product.

Measured on Zen 4 with one thread, float32 over bfloat16: depth 16 and 32 channels, 4 rows 0.63, 64 rows 1.24; 32 and
32, 4 rows 0.86, 16 rows 1.40; 64 and 64, 1 row 1.66, 64 rows 1.71; 1024 and 1000, 14 rows 1.99."""

BF16_BYTES = 256 << 10
"""Of rounded rows, which stay in the second-level cache beside the weights."""


class Group(NamedTuple):
    """A group of channels of a convolution: the first one of the result, of what pixels it is made, and of which
    weights."""

    first: int
    a: Pixels
    c: Pixels
    residual: Pixels | None
    weights: View
    offsets: list[int]
    """Of the taps, in bytes."""


def groups_of(node: Kernel, build: Build, geometry: Geometry, residual: View | None) -> list[Group]:
    """The groups of a convolution of operand 0 with operand 1."""
    x, weights = node.operands[:2]
    strides, step, item = build.strides(x), item_bytes(x.buffer), item_bytes(node.y.buffer)
    groups = x.shape[3] // weights.shape[3]
    share = weights.shape[0] // groups
    before = geometry.before[0] * strides[1] + geometry.before[1] * strides[2]
    steps = (strides[0], geometry.stride[0] * strides[1], geometry.stride[1] * strides[2])
    offsets = tap_offsets(weights.shape[1:], geometry.dilation, strides[1:3], step)

    def pixels(view: View, first: int) -> Pixels:
        return Pixels(moved(build.address(view), item * first), build.strides(view)[:3])

    return [
        Group(
            first,
            Pixels(moved(build.address(x), step * group * weights.shape[3] - before), steps),
            pixels(node.y, first),
            None if residual is None else pixels(residual, first),
            weights.slice(0, first, share) if groups > 1 else weights,
            offsets,
        )
        for group, first in enumerate(range(0, weights.shape[0], share))
    ]


def commands(node: Kernel, build: Build) -> None:
    """One command for each group of channels."""
    residual = node.extras[0] if operand_count(node.epilogue) > 1 else None
    depth = node.operands[1].shape[3]
    # Computed weights may be integers, whose sums are to be exact.
    make = contraction if node.operands[1].is_constant else Contraction
    contractions = [
        make(
            build,
            node.epilogue,
            node.y.shape[:3],
            group.a,
            group.c,
            group.residual,
            matrix(build, group.weights),
            moved(build.address(node.operands[2]), 4 * group.first),
            group.offsets,
            (moved(build.address(node.operands[3]), 4 * number * depth), depth) if node.arity > 3 else None,
        )
        for number, group in enumerate(groups_of(node, build, node.settings, residual))
    ]
    if len(contractions) == 1 and contractions[0].is_private:
        contractions[0].multiply_alone()
        return
    multiply(contractions, build)
    if all(one.is_streamed for one in contractions):
        build.by_channel.add(node.y.buffer)


@record
class Contraction(Tiled):
    """c = epilogue(bias + a weights).

    ``offsets`` are those of the taps, which share the depth of the weights (see `gossamer.codegen.kernels.contract`).
    ``scale``: numbers by which the steps of depth are multiplied before, and how many of them until they repeat.
    """

    weights: Matrix
    bias: Address
    offsets: list[int]
    scale: tuple[Address, int] | None = None

    def __post_init__(self) -> None:
        weights, target = self.weights, self.build.target
        self.flatten(not weights.image)
        self.depth = weights.depth // len(self.offsets)
        self.is_dot = self._suits_dot()
        a_stride = self.a_steps[2] * (self.columns > 1)
        tiles = gemm_tiles(target, self.columns, weights.channels, weights.depth, a_stride, evenly=True)
        if self.is_of_turns(weights):
            tiles = self.kept(tiles, weights.channels, target.lanes())
        self._settle(self.build.first(self.choices(tiles), self._kernels))
        packed_matrix = packed_bytes(self.build, weights, self.panels)
        self.b_image = packed_matrix if weights.image else 0
        self.packed_bytes = rounded_up(packed_matrix * (self.images if weights.image else 1), ALIGNMENT)

    def _suits_dot(self) -> bool:
        weights, lanes = self.weights, self.build.target.lanes()
        single = self.rows == 1 and (self.images == 1 or weights.image != 0) and len(self.offsets) == 1
        # Weights that are read once or hardly more, and lie as dot products want them, are not packed.
        is_often = self.build.is_repeated and weights.is_constant and weights.bytes < REPEATED
        if weights.is_constant and weights.item == 4:
            few = self.columns == 1 and weights.channels <= 2 * lanes
        else:
            few = self.columns == 1 or (
                self.columns <= MAX_ROWS and (weights.bytes >= STREAMED_DOT or not weights.is_constant)
            )
        return single and few and weights.is_dense and self.scale is None and not is_often

    def _settle(self, choice: tuple[Tile, bool]) -> None:
        (mr, self.nv), self._may_stream = choice
        self.panels = panels_of(self.weights.channels, self.nv, self.build.target.lanes())
        self.cut(mr)

    def _kernels(self, choice: tuple[Tile, bool]) -> Iterator[Gemm]:
        """The microkernels for a tile, if weights may be streamed."""
        self._settle(choice)
        forms: list[dict[str, Any]] = [{}]
        if self._streams and len(self._pieces()) > 1:
            forms = [{"epilogue": 0}, {"epilogue": 0, "accumulate": True}, {"accumulate": True}]
        for mr in (self.mr, self._cut()[1]):
            for form in forms:
                if self.panels.whole:
                    yield self._gemm(mr, self.nv, False, **form)
                if self.panels.rest_nv:
                    yield self._gemm(mr, self.panels.rest_nv, True, **form)

    @property
    def is_ready(self) -> bool:
        """Whether the weights are, when a run begins, as the product reads them."""
        return self.is_dot or (self.weights.is_constant and self.scale is None)

    @property
    def is_private(self) -> bool:
        """Whether every thread multiplies the weights by their scale, for itself.

        It is less work than to read what others have written: 480x80 weights take a thread 7 us, two threads 13.
        """
        return self.scale is not None and self.weights.is_constant and not self.is_streamed

    @property
    def is_streamed(self) -> bool:
        """Whether threads share panels of the weights."""
        return not self.is_dot and (self.weights.bytes > STREAMED or self.tiles == 1)

    @property
    def _streams(self) -> bool:
        """Whether all tiles go by a panel before the next. The last of them may need kernels that are not at hand."""
        return self.is_streamed and self.tiles > 1 and self._may_stream

    @property
    def vector_bytes(self) -> int:
        """Bytes of the weights of a vector of channels."""
        return 4 * self.build.target.lanes() * self.weights.depth

    def _panel_bytes(self, nv: int) -> int:
        """From a panel of so many vectors to the next."""
        return 4 * nv * self.build.target.lanes() * self.weights.depth

    def _cut(self) -> tuple[int, int, int]:
        """How a row is cut (`cut_evenly`)."""
        return computed(cut_evenly, self.build.target, self.columns, self.mr, self.nv, not self._streams)

    def multiply_alone(self) -> None:
        """The commands of a private product."""
        thread = self.build.scratch(self.packed_bytes)
        place = Address(SCRATCH)
        self._multiply_weights(self._packed(), place, barrier=False, thread=thread)
        self.multiply(place, True, thread)

    def prepare(self, place: Address, barrier: bool) -> None:
        """Commands that bring weights into panels, or panels to their scale."""
        weights, source = self.weights, place
        if weights.is_constant:
            source = self._packed()
        else:
            arguments = packing(self.build, weights, self.nv, self.panels, place, self.images if weights.image else 1)
            spec = Pack(self.build.target.name, weights.by_depth)
            self.build.command(spec, barrier=barrier or self.scale is not None, **arguments)
        if self.scale is not None:
            self._multiply_weights(source, place, barrier)

    def multiply(self, place: Address | None, barrier: bool, thread: int = 0) -> None:
        """The command of the product; ``place``: where weights have been prepared for this run, for all threads or, so
        many bytes apart, for each ``thread``."""
        build, weights = self.build, self.weights
        if self.is_dot:
            self._dot(barrier)
            return
        lanes = build.target.lanes()
        streamed = self._streams
        large, smaller, last = self._cut()
        common: dict[str, Word] = {
            **self.geometry(overlapping=not streamed),
            "large_tiles": large,
            "last_column": last,
            "b": self._packed() if place is None else place,
            "bias": self.bias,
            "b_image": self.b_image,
            "panels": self.panels.whole,
            "panel_bytes": self._panel_bytes(self.nv),
            **dict.fromkeys(("panel_bias", "panel_c", "panel_residual"), 4 * self.nv * lanes),
        }
        if streamed:
            pieces = self._pieces()
            build.command(
                ContractPanels(build.target.name),
                barrier=barrier,
                **common,
                blocks=self._blocks(pieces, self.nv, False) if self.panels.whole else 0,
                ragged_blocks=self._blocks(pieces, self.panels.rest_nv, True) if self.panels.rest_nv else 0,
                block_count=len(pieces),
                panel_tasks=self.tiles,
                tile_tasks=1,
            )
            return
        shape = self._shape(self.depth, self.offsets)
        common |= {"shape": shape, "ragged_shape": shape}
        driver = self.driver()
        if place is None and self._may_be_zeros:
            driver = ContractState(build.target.name)
            common |= {
                "zeros": self._of_zeros(common),
                "empty": self._shape(0, self.offsets),
                **dict.fromkeys(("row", "first"), self.a.start),
                "first_word": 0,
                "words": self.depth,
                "word": 0,
            }
        common |= self._panel_kernels(self.mr)
        common |= {f"smaller_{name}": word for name, word in self._panel_kernels(smaller).items()}
        self._command(driver, barrier, "b", thread, **self.panelwise(driver.arguments.chosen(common), weights.bytes))

    @property
    def _may_be_zeros(self) -> bool:
        """Whether it is worth asking in each turn of a loop if the row is nothing but zeros."""
        build, weights = self.build, self.weights
        return (
            self.is_of_turns(weights)
            and weights.bytes >= SKIPPED
            and len(self.offsets) == 1
            and self.bias.base in KNOWN
            and build.has(ContractState(build.target.name), *filter(None, self._gemms(self.mr, epilogue=IDENTITY)))
        )

    def _of_zeros(self, words: Mapping[str, Word]) -> Address:
        """What weights make of a row of zeros, with the bias: zeros, unless they are no numbers."""
        build, key = self.build, (self.weights, self.nv, self.bias)
        known = build.packed(key)
        if known is None:
            known = build.weights(4 * self.weights.channels, key)
            row = build.constant(np.zeros(self.depth, np.float32))
            driver = ContractSingle(build.target.name)
            kernels = self._panel_kernels(self.mr, epilogue=IDENTITY)
            words = {**words, "a": row, "c": known, "residual": 0, **kernels}
            build.repack(driver, **driver.arguments.chosen(words))
        return known

    def _panel_kernels(self, mr: int, **form: Any) -> dict[str, Word]:
        """What makes tiles of so many rows in whole panels, and in the last one."""
        whole, last = (0 if kernel is None else self.build.kernel(kernel) for kernel in self._gemms(mr, **form))
        return {"kernel": whole, "ragged_kernel": last}

    def _gemms(self, mr: int, **form: Any) -> tuple[Gemm | None, Gemm | None]:
        last = self.panels.rest_nv
        return (
            self._gemm(mr, self.nv, False, **form) if self.panels.whole else None,
            self._gemm(mr, last, True, **form) if last else None,
        )

    def _packed(self) -> Address:
        return packed(self.build, self.weights, self.nv, self.panels, self.images if self.weights.image else 1)

    def _command(
        self, spec: KernelSpec, barrier: bool, private: str, thread: int, alone: bool = False, /, **arguments: Word
    ) -> None:
        """A command, one pointer of which is into memory that threads have for themselves, if that has any bytes."""
        build = self.build
        if not thread:
            build.command(spec, barrier=barrier, **arguments)
            return
        build.command(
            Private(build.target.name),
            barrier=barrier,
            kernel=build.kernel(spec),
            block=build.block(spec.arguments, **arguments),
            words=len(spec.arguments),
            position=[argument.name for argument in spec.arguments].index(private),
            scratch_thread=thread,
            alone=int(alone),
        )

    def _multiply_weights(self, source: Address, place: Address, barrier: bool, thread: int = 0) -> None:
        scale, count = self.scale or (source, 1)
        build, lanes, depth = self.build, self.build.target.lanes(), self.weights.depth
        whole, rest = self.panels.whole, self.panels.rest_nv
        parts = [part for part in ((0, whole, self.nv), (whole, 1, rest)) if part[1] and part[2]]
        for first, panels, vectors in parts:
            start, row = 4 * first * self.nv * lanes * depth, 4 * vectors * lanes
            self._command(
                Map(build.target.name, ("mul", 0, 1), "vs"),
                barrier and first == parts[-1][0],
                "y",
                thread,
                True,
                y=moved(place, start),
                rows=panels * (depth // count),
                columns=count,
                count=vectors * lanes,
                block=vectors * lanes,
                blocks=1,
                y_row=row * count,
                y_column=row,
                **operands_of((moved(source, start), row * count, row), (scale, 0, 4)),
            )

    def _dot(self, barrier: bool) -> None:
        build, weights, rows = self.build, self.weights, self.columns
        matrices = (self.images, self.a_steps[0], weights.image, self.c_steps[0], self.r_steps[0])
        build.repeat(
            Dot(
                build.target.name, rows, rows_of_weights(build.target, rows, weights.bytes), self.epilogue, weights.type
            ),
            [matrices] if self.images > 1 else [],
            ("x", "w", "y", "residual"),
            barrier=barrier,
            x=self.a.start,
            w=weights.start,
            bias=self.bias,
            y=self.c.start,
            residual=self.residual.start if self.residual else 0,
            channels=weights.channels,
            depth=weights.depth,
            x_row=self.a_steps[2],
            w_row=weights.item * weights.depth,
            y_row=self.c_steps[2],
            residual_row=self.r_steps[2],
        )

    def _gemm(self, mr: int, nv: int, is_last: bool, **form: Any) -> Gemm:
        """A microkernel; ``is_last``: of the last panel, whose last vector may not be full."""
        target = self.build.target
        ragged, half = last_vector(target, self.panels.tail) if is_last else (False, False)
        form = {"conv": len(self.offsets) > 1, "epilogue": self.epilogue} | form
        return Gemm(target.name, mr, nv, ragged=ragged, half=half, **form)

    def _shape(self, depth: int, offsets: list[int]) -> Address:
        return self.build.block(Gemm.arguments, **self.depth_words(depth, offsets, self.panels.tail))

    def _pieces(self) -> list[tuple[int, int, int]]:
        """Blocks of depth as (tap, start, size); one with tap -1 is all of it."""
        panel = self._panel_bytes(self.nv)
        single = len(self.offsets) == 1
        if panel <= BLOCK_BYTES and not single:
            return [(-1, 0, self.depth)]
        count = -(-self.depth // (BLOCK_DEPTH // self.nv)) if panel > BLOCK_BYTES else 1
        step = rounded_up(-(-self.depth // count), UNROLL)
        return [
            (tap, start, min(step, self.depth - start))
            for tap in range(len(self.offsets))
            for start in range(0, self.depth, step)
        ]

    def _blocks(self, pieces: list[tuple[int, int, int]], nv: int, is_last: bool) -> Address:
        build, lanes = self.build, self.build.target.lanes()
        words: list[Word] = []
        for number, (tap, start, size) in enumerate(pieces):
            turns = max(1, size // UNROLL)
            # The lines of the next block, shared among the tiles and the turns of their loops.
            prefetch = 0 if tap < 0 else -(-4 * size * nv * lanes // LINE // (self.tiles * turns))
            form: dict[str, Any] = {"accumulate": number > 0, "prefetch": prefetch}
            if tap >= 0:
                form["conv"] = False
            if number < len(pieces) - 1:
                form["epilogue"] = 0
            words += DEPTH_BLOCK.words(
                kernel=build.kernel(self._gemm(self.mr, nv, is_last, **form)),
                last_kernel=build.kernel(self._gemm(self._cut()[1], nv, is_last, **form)),
                shape=self._shape(size, self.offsets if tap < 0 else [0]),
                a_offset=0 if tap < 0 else self.offsets[tap] + 4 * start,
                b_offset=0 if tap < 0 else 4 * (tap * self.depth + start) * nv * lanes,
                next_stride=prefetch * LINE * turns,
                next_offset=4 * size * nv * lanes if prefetch else 0,
            )
        return build.table(words)


class Bf16Contraction(Contraction):
    """The same product with pairs of bfloat16 in the place of floats, to which the rows of tiles are rounded first."""

    def __post_init__(self) -> None:
        build, weights = self.build, self.weights
        self.flatten(not weights.image)
        self.is_dot = False
        self.depth, self.pairs = weights.depth // len(self.offsets), -(-weights.depth // 2)
        self.row = row_bytes(weights.depth)
        tiles = gemm_tiles(build.target, self.columns, weights.channels, self.pairs, self.row)
        self._settle(build.first(((tile, False) for tile in tiles), self._kernels))
        matrix = self._panel_bytes(self.panels.vectors)
        self.b_image = matrix if weights.image else 0
        self.packed_bytes = matrix * (self.images if weights.image else 1)

    @property
    def is_streamed(self) -> bool:
        """Whether threads share panels of the weights, which they do only where all rows are one group."""
        return False

    def _panel_bytes(self, nv: int) -> int:
        return 4 * nv * self.build.target.lanes() * self.pairs

    def _kernels(self, choice: tuple[Tile, bool]) -> Iterator[Gemm]:
        self._settle(choice)
        for mr in (self.mr, self.rest or self.mr):
            if self.panels.whole:
                yield self._gemm(mr, self.nv, False)
            if self.panels.rest_nv:
                yield self._gemm(mr, self.panels.rest_nv, True)

    def _gemm(self, mr: int, nv: int, is_last: bool, **form: Any) -> Gemm:
        gemm = super()._gemm(mr, nv, is_last, conv=False, weights="bf16", prefetch=1, **form)
        return replace(gemm, isa=self._isa)

    @property
    def _isa(self) -> str:
        return self.build.bf16.name if self.build.bf16 is not None else ""

    @property
    def _pack(self) -> KernelSpec:
        return Pack(self._isa, self.weights.by_depth, self.weights.type, "bf16")

    def _packing(self, place: Address) -> dict[str, Word]:
        images = self.images if self.weights.image else 1
        words = packing(self.build, self.weights, self.nv, self.panels, place, images)
        return words | {"destination_image": self.b_image}

    def _packed(self) -> Address:
        build, key = self.build, (self.weights, self.nv, "bf16")
        known = build.packed(key)
        if known is None:
            known = build.weights(self.packed_bytes, key)
            build.pack(self._pack, reads=self.weights.bytes, **self._packing(known))
        return known

    def prepare(self, place: Address, barrier: bool) -> None:
        """The command that brings weights into panels."""
        self.build.command(self._pack, barrier=barrier, **self._packing(place))

    def multiply(self, place: Address | None, barrier: bool, thread: int = 0) -> None:
        """The command of the product."""
        build, channels = self.build, 4 * self.nv * self.build.target.lanes()
        rows, taps = Bf16Rows(self._isa), build.table(self.offsets)
        words: dict[str, Word] = {"depth": self.depth, "taps": len(self.offsets), "tap_offsets": taps}
        build.command(
            ContractGroups(build.target.name, many=False),
            barrier=barrier,
            **self.geometry(overlapping=False),
            **self.groups(rows, words, self.row, BF16_BYTES),
            input=build.kernel(rows),
            b=self._packed() if place is None else place,
            b_image=self.b_image,
            bias=self.bias,
            panels=self.panels.whole,
            panel_bytes=self._panel_bytes(self.nv),
            panel=self._panel(self.nv, False) if self.panels.whole else 0,
            ragged_panel=self._panel(self.panels.rest_nv, True) if self.panels.rest_nv else 0,
            **dict.fromkeys(("panel_bias", "panel_c", "panel_residual"), channels),
            # A line in every turn, in as many tiles as it takes, or the next power of 2.
            next_tiles=1 << (UNROLL * self.nv - 1).bit_length(),
            next_stride=LINE * (self.pairs // UNROLL),
        )

    def _panel(self, nv: int, is_last: bool) -> Address:
        """What makes a panel."""
        build = self.build
        words = self.depth_words(self.pairs, [0], self.panels.tail) | {"a_stride": self.row}
        return build.table(
            GROUP_PANEL.words(
                kernel=build.kernel(self._gemm(self.mr, nv, is_last)),
                smaller_kernel=build.kernel(self._gemm(self.rest or self.mr, nv, is_last)),
                shape=build.block(Gemm.arguments, **words),
            )
        )


class Contraction24(Contraction):
    """The same product of one row, with weights of 24 bits in the panels that may have them."""

    def _suits_dot(self) -> bool:
        return False

    def kept(self, tiles: Iterator[Tile], channels: int, lanes: int) -> Iterator[Tile]:
        """All as they are: sums of fewer vectors wait for each other."""
        return tiles

    def _panel_bytes(self, nv: int) -> int:
        return header_bytes(self.build.target.lanes(), nv)

    def _gemm(self, mr: int, nv: int, is_last: bool, **form: Any) -> KernelSpec:  # type: ignore[override]
        form = {"epilogue": self.epilogue} | form
        ragged = is_last and self.panels.tail < self.build.target.lanes()
        return Gemm24(self._isa, nv, ragged=ragged, **form)

    @property
    def _isa(self) -> str:
        dots = self.build.dots
        return dots.name if narrows(dots) else dots.plain.name

    def kernels(self) -> Iterator[KernelSpec]:
        """What it needs."""
        yield from filter(None, self._gemms(self.mr))
        yield Pack24(self._isa)

    def _packed(self) -> Address:
        build, weights, panels = self.build, self.weights, self.panels
        key = (weights, self.nv, "i24")
        known = build.packed(key)
        if known is None:
            headers = panels.whole * self._panel_bytes(self.nv)
            headers += self._panel_bytes(panels.rest_nv) if panels.rest_nv else 0
            known = build.weights(headers + packed_bytes(build, weights, panels), key)
            floats = moved(known, headers)
            words = packing(build, weights, self.nv, panels, floats)
            build.pack(Pack(build.target.name, weights.by_depth), reads=weights.bytes, **words)
            build.repack(
                Pack24(self._isa),
                weights=floats,
                headers=known,
                depth=weights.depth,
                nv=self.nv,
                panels=panels.whole,
                rest_nv=panels.rest_nv,
            )
        return known


def contraction(*arguments: Any) -> Contraction:
    """The product of these arguments of `Contraction`; of bfloat16 where that is allowed, and quicker; with weights of
    24 bits where they are waited for."""
    product = Contraction(*arguments)
    if product.build.bf16 is not None and _suits_bf16(product):
        return Bf16Contraction(*arguments)
    if _suits_24_bits(product):
        narrow = Contraction24(*arguments)
        if product.build.has(*narrow.kernels()):
            return narrow
    return product


def _suits_24_bits(product: Contraction) -> bool:
    """Whether it is of one row, and of constants that do not stay in the first-level cache.

    Vectors of channels that are not full, and panels of fewer than four, must not take more bytes than dot products
    read; and a single sum would wait for itself.
    """
    build, weights, panels = product.build, product.weights, product.panels
    lines = panels.whole * lines_of(product.nv) + lines_of(panels.rest_nv)
    return (
        weights.is_constant
        and weights.item == 4
        and weights.bytes >= narrowed(build.dots)
        and product.scale is None
        and product.images * product.rows * product.columns == len(product.offsets) == 1
        and 1 < lines <= weights.channels / build.target.lanes()
    )


def _suits_bf16(product: Contraction) -> bool:
    weights, lanes = product.weights, product.build.target.lanes()
    # What a run computes is rounded when it is packed; where it would not be packed, it is read once.
    packs = weights.is_constant or not product.is_dot
    large = (
        weights.depth >= BF16_DEPTH and weights.channels > lanes and weights.channels * weights.depth >= BF16_WEIGHTS
    )
    return product.scale is None and packs and large
