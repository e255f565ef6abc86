"""Products of bytes with half of the multiplications, where those suit (`gossamer.codegen.kernels.inner_products`)."""

from __future__ import annotations

from typing import get_args

from gossamer.codegen.commands.byte_products import ByteContraction, byte_of
from gossamer.codegen.dots import crosses
from gossamer.codegen.kernels.contract import GROUP_PANEL, ContractGroups
from gossamer.codegen.kernels.inner_products import (
    OF_LINES,
    TOGETHER,
    Block,
    InnerProductGemm,
    InnerProductRows,
    panel_bytes,
    places_of,
    row_bytes,
)
from gossamer.codegen.kernels.outputs import Dequantized, Requantized
from gossamer.codegen.kernels.quantized_contract import STEP, QuantizedPack
from gossamer.codegen.spec import KernelSpec
from gossamer.codegen.tiles import Tile, cut_in_two, inner_products_tiles
from gossamer.programs.program import Address, Word
from gossamer.records import replace

LEAST_PIXELS = 4
"""From which weights may be read that have twice as many bytes."""

LEAST_PIXELS_OF_COMPUTED = 16
"""From which weights that a run computes may be written so."""

TILE = 4
"""Rows of the largest tile. A line that consists of such tiles, or has fewer pixels, is not joined with the next."""

GROUP_BYTES = 256 << 10
"""Of widened rows, which stay in the second-level cache beside the weights."""


def suits(product: ByteContraction) -> bool:
    """Whether a product is quicker so."""
    if not crosses(product.build.dots) or product.output is Dequantized:
        return False
    weights = product.weights
    if weights.channels <= product.build.dots.lanes():
        return False  # a vector of sums for eight pixels has bytes as quickly, and rows need not be widened
    pixels = product.rows * product.columns * (1 if weights.image else product.images)
    return pixels >= (LEAST_PIXELS if weights.is_constant else LEAST_PIXELS_OF_COMPUTED)


class InnerProducts(ByteContraction):
    """The same product with half of the multiplications.

    Where the lines of an image follow each other, and those of the result have gaps between them (a border), they are
    one row all the same, which is cut into tiles as such.
    """

    line = 0
    """Pixels of such a line; 0: there are none."""

    def flatten(self, across_images: bool = True) -> None:
        """Join rows and images."""
        super().flatten(across_images)
        columns, (_, a_row, a_column) = self.columns, self.a_steps
        is_cut = columns > TILE and columns % TILE > 0
        if self.rows == 1 or not is_cut or a_row != columns * a_column or not self._has_lines:
            return
        self.line = columns
        self.gaps = {
            f"{name}_gap": row - columns * column
            for name, (_, row, column) in (("c", self.c_steps), ("residual", self.r_steps))
        }
        self.rows, self.columns = 1, self.rows * columns
        self.a_steps, self.c_steps, self.r_steps = (
            (image, 0, column) for image, _, column in (self.a_steps, self.c_steps, self.r_steps)
        )

    @property
    def _has_lines(self) -> bool:
        """Whether microkernels for lines are at hand."""
        spec = InnerProductGemm(self.build.dots.name, TILE, 2, byte_of(self.view), self._made(), lines=True)
        return self.output is Requantized and self.build.has(spec, replace(spec, ragged=True))

    def _is_together(self, nv: int) -> bool:
        return not self.line and super()._is_together(nv)

    def _panel_bytes(self, nv: int) -> int:
        return panel_bytes(self.build.dots.lanes(), nv, self.steps)

    def _tile(self) -> tuple[Tile, bool]:
        # Rows have no taps: the depth of all of them is one.
        self.steps = -(-self.weights.depth // STEP)
        self.packed_taps, self.packed_depth = 1, self.weights.depth
        tiles = inner_products_tiles(self.build.dots, self.columns, self.weights.channels, self.steps)
        return self.build.first(((tile, True) for tile in tiles), self._kernels)

    def cut(self, mr: int) -> None:
        """Cut rows into tiles of so many pixels, and smaller ones behind."""
        super().cut(mr)
        self.large_tiles, self.rest = cut_in_two(self.columns, mr)

    @property
    def _is_streamed(self) -> bool:
        """Whether the last tiles of rows have kernels of their own."""
        return True

    def _gemm(self, mr: int, nv: int, is_last: bool, prefetch: int = 0) -> KernelSpec:
        return InnerProductGemm(
            self.build.dots.name,
            mr,
            nv,
            self.type,
            self._made(mr > 1 and self._is_together(nv)),
            is_last and self.weights.channels % (nv * self.build.dots.lanes()) > 0,
            self.line != 0,
        )

    def _pack(self) -> QuantizedPack:
        return replace(super()._pack(), wide=True, by_sign=False)

    def multiply(self, place: Address | None = None, barrier: bool = True) -> None:
        """The command of the product."""
        build, row = self.build, row_bytes(self.steps)
        blocks: tuple[Block, ...] = get_args(Block)
        whole = [block for block in blocks if self.offsets == [0] and self.depth % block == 0 and block >= STEP]
        block = next(block for block in whole or blocks if block <= self.depth)
        rows = InnerProductRows(build.dots.name, self.type, block, bool(whole))
        wide, places = places_of(block, self.offsets, self.depth)
        words: dict[str, Word] = {
            "depth": self.weights.depth,
            "together": max(1, TOGETHER // row),
            "wide_blocks": len(wide) // 2,
            "wide_places": build.table(wide) if wide else 0,
            "blocks": len(places) // 2,
            "places": build.table(places),
        }
        groups = self.groups(rows, words, row, GROUP_BYTES)
        geometry = self.geometry(overlapping=False) | {"large_tiles": self.large_tiles}
        if self.line:
            geometry |= dict.fromkeys(("c_column", "residual_column"), 0)  # microkernels know where pixels are
        build.command(
            ContractGroups(build.target.name),
            barrier=barrier,
            **geometry,
            **self._outward(),
            b=self._packed() if place is None else place,
            b_image=self.b_image,
            panels=self.panels.whole,
            panel_bytes=self._panel_bytes(self.nv),
            panel=self._panel(self.nv, False) if self.panels.whole else 0,
            ragged_panel=self._panel(self.panels.rest_nv, True) if self.panels.rest_nv else 0,
            input=build.kernel(rows),
            **groups,
            **dict.fromkeys(("next_tiles", "next_stride"), 0),
        )

    def _panel(self, nv: int, is_last: bool) -> Address:
        """What makes a panel."""
        build, layout = self.build, OF_LINES if self.line else self.output.arguments
        words = self._words() | {"depth": STEP * self.steps, "taps": 1, "a_stride": row_bytes(self.steps)}
        if self.line:
            words |= {"line": self.line, **self.gaps}
        return build.table(
            GROUP_PANEL.words(
                kernel=build.kernel(self._gemm(self.mr, nv, is_last)),
                smaller_kernel=build.kernel(self._gemm(self.rest or self.mr, nv, is_last)),
                shape=build.block(layout, **layout.chosen(words)),
            )
        )
