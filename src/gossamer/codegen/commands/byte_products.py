"""Products of integers as tiles, and what the kinds of them have in common; those of bytes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from functools import cached_property
from math import prod
from typing import Any, ClassVar

import numpy as np

from gossamer.codegen.commands import Build
from gossamer.codegen.commands.contract import SKIPPED
from gossamer.codegen.commands.tiled import Matrix, Tiled, moved, packing
from gossamer.codegen.dots import Byte, adds_pairs, has_halves, offset, order, takes_signs
from gossamer.codegen.expression import parameters_of
from gossamer.codegen.graph import Kernel
from gossamer.codegen.kernels.contract import DEPTH_BLOCK, LINE, UNROLL, ContractPanels, ContractState, panels_of
from gossamer.codegen.kernels.dynamic import HEADER, ZERO_POINT
from gossamer.codegen.kernels.outputs import Dequantized, Output, Requantized, Sums
from gossamer.codegen.kernels.quantized_contract import (
    STEP,
    QuantizedGemm,
    QuantizedPack,
    Walk,
    panel_bytes,
)
from gossamer.codegen.spec import KernelSpec
from gossamer.codegen.tiles import Tile, quantized_tiles
from gossamer.programs.program import Address, Word
from gossamer.records import field, record
from gossamer.schema.enums import TensorType
from gossamer.views import Late, Requantization, View

Becomes = type[Output]
"""What sums become: `Requantized`, `Sums` or `Dequantized`."""

STREAMED = 400 << 10
"""Bytes of weights from which they are streamed, panel by panel, instead of read anew for each tile."""

STREAMED_FEW = 64 << 10
"""The same where there are no more pixels than channels, which are then less to read anew: weights that come from the
third-level cache are fetched a panel ahead (128 x 256 x 1024: 149 us, else 153; the products alone take 142, on Zen 4).
"""


def byte_of(view: View) -> Byte:
    """The type of a view of bytes."""
    return "u8" if view.type == TensorType.UINT8 else "i8"


def epilogue_operands(node: Kernel, build: Build) -> tuple[View | None, Address | None]:
    """The residual among the operands of an epilogue of bytes, and a table of the addresses of all others."""
    tables = parameters_of(node.epilogue)
    residual = next((view for number, view in enumerate(node.extras, 1) if number not in tables), None)
    if not tables:
        return residual, None
    return residual, build.table([build.address(node.extras[number - 1]) for number in sorted(tables)])


@record
class QuantizedContraction(Tiled):
    """c = output(bias + a weights) of integers: what its products and its output are, its kinds say."""

    weights: Matrix

    @abstractmethod
    def _gemm(self, mr: int, nv: int, is_last: bool, prefetch: int = 0) -> KernelSpec:
        """A microkernel; ``is_last``: of the last panel."""

    @abstractmethod
    def _packed(self) -> Address:
        """The panels, packed once for all kernels that read them so."""

    @abstractmethod
    def _panel_bytes(self, nv: int) -> int:
        """Of a panel of so many vectors."""

    @property
    def vector_bytes(self) -> int:
        """Bytes of a vector of channels, with what belongs to these."""
        return self._panel_bytes(1)

    @abstractmethod
    def _shape(self) -> Address:
        """The argument block of microkernels."""

    @abstractmethod
    def _outward(self) -> dict[str, Word]:
        """What drivers are told of bias, c and residual: the channels of a panel are so many bytes of them."""

    def _of_zeros(self) -> dict[str, Word]:
        """What `ContractState` is told, if it is worth asking in each turn of a loop if the row is zeros."""
        return {}

    b_image: int = field(default=0, init=False)
    """Bytes from the panels of one image to those of the next; 0: they share them."""
    _turns: int = field(default=0, init=False)
    """Of the loop over the depth of a tile, each of which may fetch some of the next panel."""

    def _settle(self, tile: Tile, may_stream: bool = True) -> None:
        self._may_stream = may_stream
        mr, self.nv = tile
        self.cut(mr)
        self.panels = panels_of(self.weights.channels, self.nv, self.build.dots.lanes())

    def _kernels(self, choice: tuple[Tile, bool]) -> Iterator[KernelSpec]:
        """The microkernels for a tile, if weights may be streamed."""
        self._settle(*choice)
        for mr in (self.mr, self.rest or self.mr) if self._is_streamed else (self.mr,):
            if self.panels.whole:
                yield self._gemm(mr, self.nv, False)
            if self.panels.rest_nv:
                yield self._gemm(mr, self.panels.rest_nv, True)

    def multiply(self, place: Address | None = None, barrier: bool = True) -> None:
        """The command of the product; ``place``: where weights have been prepared for this run."""
        build, streamed = self.build, self._is_streamed
        common: dict[str, Word] = {
            **self.geometry(overlapping=not streamed),
            **self._outward(),
            "b": self._packed() if place is None else place,
            "b_image": self.b_image,
            "panels": self.panels.whole,
            "panel_bytes": self._panel_bytes(self.nv),
        }
        shape = self._shape()
        if streamed:
            self._run(
                ContractPanels(build.target.name),
                barrier,
                **common,
                blocks=self._block(shape, self.nv, False) if self.panels.whole else 0,
                ragged_blocks=self._block(shape, self.panels.rest_nv, True) if self.panels.rest_nv else 0,
                block_count=1,
                **self._tasks(),
            )
            return
        last = self.panels.rest_nv
        kernel = build.kernel(self._gemm(self.mr, self.nv, False)) if self.panels.whole else 0
        ragged_kernel = build.kernel(self._gemm(self.mr, last, True)) if last else 0
        common |= {
            **dict.fromkeys(("kernel", "smaller_kernel"), kernel),
            "shape": shape,
            **dict.fromkeys(("ragged_kernel", "smaller_ragged_kernel"), ragged_kernel),
            "ragged_shape": shape,
        }
        driver, zeros = self.driver(), self._of_zeros()
        if zeros:
            driver = ContractState(build.target.name)
            common |= zeros
        self._run(driver, barrier, **self.panelwise(driver.arguments.chosen(common), self.weights.bytes))

    @property
    def _is_streamed(self) -> bool:
        """Whether all tiles go by a panel before the next."""
        few = prod(self.shape) <= self.weights.channels
        return self._may_stream and self.tiles > 1 and self.weights.bytes >= (STREAMED_FEW if few else STREAMED)

    def _tasks(self) -> dict[str, Word]:
        """How threads share what is streamed: if it is much, by panels, so that none reads all of them."""
        if self.weights.bytes >= STREAMED:
            return {"panel_tasks": self.tiles, "tile_tasks": 1}
        return {"panel_tasks": 1, "tile_tasks": self.panels.whole + (self.panels.rest_nv > 0)}

    def _run(self, spec: KernelSpec, barrier: bool, **arguments: Word) -> None:
        self.build.command(spec, barrier=barrier, **arguments)

    def _block(self, shape: Address, nv: int, is_last: bool) -> Address:
        """All of the depth, and the panel behind it, whose lines the tiles fetch."""
        build, size, turns = self.build, self._panel_bytes(nv), self._turns
        prefetch = -(-size // LINE // (self.tiles * turns)) if turns else 0
        kernel = build.kernel(self._gemm(self.mr, nv, is_last, prefetch))
        return build.table(
            DEPTH_BLOCK.words(
                kernel=kernel,
                last_kernel=build.kernel(self._gemm(self.rest, nv, is_last, prefetch)) if self.rest else kernel,
                shape=shape,
                a_offset=0,
                b_offset=0,
                next_stride=prefetch * LINE * turns,
                next_offset=size if prefetch else 0,
            )
        )


@record
class ByteContraction(QuantizedContraction):
    """c = output(bias + a weights), of bytes: requantized, or the sums, or dequantized.

    ``offsets`` are those of the taps, ``view`` tells the type of the weights. What is dequantized brings its grid, in
    each row or in a ``header``; its bias is float32.
    """

    view: View
    bias: Address
    scales: Address
    requantization: Requantization
    offsets: list[int]
    type: Byte
    parameters: Address | None
    output: Becomes = Requantized
    header: Address | None = None
    has_biases: bool = True
    """Otherwise all panels have that of the first."""

    is_widened: ClassVar[bool] = False
    """Whether elements of a have 16 bits."""

    def __post_init__(self) -> None:
        weights = self.weights
        self.flatten(not weights.image)
        self.unsigned = byte_of(self.view) == "u8"
        self.weight_zero = self.requantization.weight_zero - 128 * self.unsigned
        self.taps, self.depth = len(self.offsets), weights.depth // len(self.offsets)
        if self.depth % STEP == 0:
            # Taps that follow each other in the weights are one, as long as whole steps make up each of them.
            self.walk: Walk = "taps" if self.taps > 1 else ""
            self.short = 0
            self.steps, self.table, self.tap_depth = weights.depth // STEP, self.offsets, self.depth
            self.packed_taps, self.packed_depth = 1, weights.depth
        else:
            self.walk, self.short = "steps", self.depth if self.depth < STEP else 0
            last = max(self.depth - STEP, 0)
            inside = [*range(0, self.depth - STEP + 1, STEP), last]
            self.table = [tap + at for tap in self.offsets for at in inside]
            self.steps, self.tap_depth = len(self.table), STEP
            self.packed_taps, self.packed_depth = self.taps, self.depth
        self._turns = 0 if self.walk == "steps" else self.steps // UNROLL
        self._settle(*self._tile())
        self.matrices = self.images if weights.image else 1
        size = self._panel_bytes(self.panels.vectors)
        self.b_image = size if weights.image else 0
        self.packed_bytes = self.matrices * size

    def _panel_bytes(self, nv: int) -> int:
        return panel_bytes(self.build.dots.lanes(), nv, self.steps)

    def _tile(self) -> tuple[Tile, bool]:
        build = self.build
        for half in dict.fromkeys((self._suits_half(), False)):
            self._has_half = half
            tiles = quantized_tiles(build.dots, self.columns, self.weights.channels, self.steps, half)
            if build.dots.dot and self.is_of_turns(self.weights):  # otherwise nobody waits for weights
                tiles = self.kept(tiles, self.weights.channels, build.dots.lanes())
            choice = build.first(self.choices(tiles), self._kernels)
            if not half or build.has(*self._kernels(choice)):
                break
        return choice

    @property
    def is_ready(self) -> bool:
        """Whether the weights are, when a run begins, as the product reads them."""
        return self.weights.is_constant

    def prepare(self, place: Address, barrier: bool) -> None:
        """The command that brings weights into panels."""
        self.build.command(self._pack(), barrier=barrier, **self._packing(place))

    def _of_zeros(self) -> dict[str, Word]:
        build, weights, driver = self.build, self.weights, ContractState(self.build.target.name)
        if not (self.is_of_turns(weights) and weights.bytes >= SKIPPED and build.has(driver)) or (
            self.output,
            self.header,
            self.walk,
        ) != (Dequantized, None, ""):
            return {}
        # Levels of zeros are their zero point, the greatest level. Whatever their scale is, nothing comes of them.
        zero = 127 if self.type == "i8" else 255
        header = np.zeros(HEADER // 4, np.float32)
        return {
            "zeros": self.bias,
            "empty": build.block(self.output.arguments, **self.output.arguments.chosen({**self._words(), "depth": 0})),
            "row": moved(build.constant(header), HEADER),
            "first": moved(self.a.start, ZERO_POINT - HEADER),
            "first_word": zero,
            "words": self.depth // 4,
            "word": zero * 0x01010101,
        }

    def _outward(self) -> dict[str, Word]:
        words = 4 * self.nv * self.build.dots.lanes()
        bytes = words // 4 if self.output is Requantized else words
        outside = self.output is Dequantized
        return {
            "bias": self.bias if outside else 0,
            "panel_bias": words * self.has_biases if outside else 0,
            "panel_c": bytes,
            "panel_residual": bytes,
        }

    def _gemm(self, mr: int, nv: int, is_last: bool, prefetch: int = 0) -> KernelSpec:
        return QuantizedGemm(
            self.build.dots.name,
            mr,
            nv,
            self.type,
            self._made(mr > 1 and self._is_together(nv)),
            self.walk,
            self.short,
            is_last and self.weights.channels % (nv * self.build.dots.lanes()) > 0,
            self.weight_zero != 0,
            prefetch,
            is_last and self._has_half,
            self._by_sign,
            self.is_widened,
            self._is_narrow,
        )

    def _made(self, together: bool = False) -> Output:
        """What the microkernel makes of sums."""
        if self.output is Dequantized:
            return Dequantized(self.epilogue, self.header is not None)
        return Sums() if self.output is Sums else self._requantized(together)

    def _requantized(self, together: bool = False) -> Requantized:
        numbers = self.requantization
        least, greatest = (-128, 127) if self.type == "i8" else (0, 255)
        return Requantized(
            self.epilogue,
            (numbers.low, numbers.high) != (least, greatest),
            bool(np.max(numbers.scales) >= 1),
            numbers.nudge != 0,
            numbers.zero_point == least,
            together,
        )

    def _is_together(self, nv: int) -> bool:
        """Whether a panel has all channels of a pixel, and those of the next one follow."""
        strides = {self.c_steps[2], self.r_steps[2]} if self.residual else {self.c_steps[2]}
        return (
            self.output is Requantized
            and nv < 3
            and strides == {nv * self.build.dots.lanes()} == {self.weights.channels}
        )

    @property
    def _by_sign(self) -> bool:
        """Whether products are those of magnitudes, as the weights of all tiles are packed."""
        return takes_signs(self.build.dots, self.type, self.mr)

    @cached_property
    def _is_narrow(self) -> bool:
        """Whether no weight is -128, as quantizers make them, where that makes a difference. A step that has been
        filled up has zero points, too."""
        buffer = self.view.buffer
        if not adds_pairs(self.build.dots) or self.weight_zero == -128 or isinstance(buffer, Late):
            return False
        array = buffer.array
        return array is not None and bool(array.min() > np.iinfo(array.dtype).min)

    _has_half: bool = field(default=False, init=False)

    def _suits_half(self) -> bool:
        """Whether the last vector of channels is at most half full, and this is made use of."""
        lanes, numbers = self.build.dots.lanes(), self.requantization
        return (
            has_halves(self.build.dots)
            and self.columns > 1  # a single row waits for its weights
            and 0 < self.weights.channels % lanes <= lanes // 2
            and self.output is Requantized
            and not (self.weight_zero or numbers.nudge or np.max(numbers.scales) >= 1)
        )

    def _shape(self) -> Address:
        layout = self.output.arguments
        return self.build.block(layout, **layout.chosen(self._words()))

    def _words(self) -> dict[str, Word]:
        numbers, tail = self.requantization, self.panels.tail
        if self.output is not Dequantized:
            tail = self.weights.channels - self.panels.whole * self.nv * self.build.dots.lanes()
        return {
            **self.depth_words(self.tap_depth, self.table, tail),
            "zero_point": numbers.zero_point,
            "low": numbers.low,
            "high": numbers.high,
            "weight_zero": self.weight_zero,
            "nudge": int(np.float32(numbers.nudge).view(np.int32)),
            "parameters": 0 if self.parameters is None else self.parameters,
            "header": 0 if self.header is None else self.header,
        }

    def _packed(self) -> Address:
        build, weights = self.build, self.weights
        key: Any = (weights, self.nv, self.bias, self.scales, self._zero, self.output, self._pack())
        known = build.packed(key)
        if known is None:
            known = build.weights(self.packed_bytes, key)
            build.pack(self._pack(), reads=weights.bytes, **self._packing(known))
        return known

    @property
    def _zero(self) -> int:
        """The zero point of a, as it is multiplied; -1 leaves the sums of the weights where the bias would be."""
        if self.output is Dequantized:
            return -1
        return offset(self.build.dots, self.type, self.requantization.x_zero)

    def _pack(self) -> QuantizedPack:
        return QuantizedPack(self.build.dots.name, self.unsigned, self.weights.by_depth, by_sign=self._by_sign)

    def _packing(self, place: Address) -> dict[str, Word]:
        weights, outside = self.weights, self.output is Dequantized
        return packing(self.build, weights, self.nv, self.panels, place, self.matrices) | {
            "bias": self.build.constant(np.zeros(1, np.int32)) if outside else self.bias,
            "scales": self.scales,
            "bias_step": 0 if outside else 4,
            "scale_step": 4 * (self.requantization.scales.size > 1),
            "taps": self.packed_taps,
            "depth": self.packed_depth,
            "order": self._order(self.nv, False),
            "rest_order": self._order(self.panels.rest_nv, self._has_half),
            "offset": self._zero,
            "weight_zero": self.weight_zero,
            "destination_image": self.b_image,
        }

    def _order(self, nv: int, half: bool) -> Word:
        lanes = self.build.dots.lanes()
        pairs = (
            [(lanes * v, 4) for v in range(nv)] if self.output is not Requantized else order(lanes, nv, half and nv > 0)
        )
        words = [word for pair in pairs for word in pair]
        return self.build.table(words) if words else 0
