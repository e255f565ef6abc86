"""Products of bytes in registers of tiles, where those suit a shape (`gossamer.codegen.kernels.tile_contract`).

Nothing of this was measured: there was no CPU with tiles. Cycles are what Intel's manual says, and which tiles are good
was found by an experiment on one (2x2, 1x4, or 4x1 where a picture has few pixels).
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from gossamer.codegen.commands import inner_products, widened_products
from gossamer.codegen.commands.byte_products import ByteContraction
from gossamer.codegen.kernels.outputs import Requantized
from gossamer.codegen.kernels.quantized_contract import STEP
from gossamer.codegen.kernels.tile_contract import DEPTH, ROWS, SUMS, TileGemm, WithTiles, configuration
from gossamer.codegen.spec import KernelSpec
from gossamer.codegen.tiles import Tile
from gossamer.programs.program import Address, Word
from gossamer.records import replace

LEAST_PIXELS = 8
"""Rows of a kernel from which tiles pay: a product of tiles takes 52 cycles, however few of their rows are used."""

LEAST_DEPTH = 64
"""Bytes of depth from which they do."""

LEAST_TAP = 16
"""Bytes of a tap from which they do: a shorter one uses little of the registers."""

_FIRST_LEVEL = 32 << 10
"""Bytes of a panel that stay in the first-level cache beside what else is there."""


class TileShape(NamedTuple):
    """``mr`` rows of tiles of ``rows`` pixels by ``nv`` vectors of channels. ``across``: each is a row of the image."""

    mr: int
    nv: int
    rows: int
    across: bool

    @property
    def pixels(self) -> int:
        """Of all rows of tiles."""
        return self.mr * self.rows


def contraction(*arguments: Any) -> ByteContraction:
    """A product with these fields: of what is widened before, with half of the multiplications or in tiles, if that is
    there and suits it."""
    product = ByteContraction(*arguments)
    if widened_products.suits(product):
        widened = widened_products.WidenedProducts(*arguments)
        if widened.is_at_hand:
            return widened
    if inner_products.suits(product):
        return inner_products.InnerProducts(*arguments)
    return TileContraction(*arguments) if product.build.extended.tiles and _suits(product) else product


def _suits(product: ByteContraction) -> bool:
    if product.output is not Requantized or product.weight_zero or product.requantization.nudge or product.depth % STEP:
        return False
    if product.weights.depth < LEAST_DEPTH or product.depth < LEAST_TAP:
        return False
    return _tile_of(product).pixels >= LEAST_PIXELS


def _tile_of(product: ByteContraction) -> TileShape:
    return tile_shape(product.rows, product.columns, product.weights.channels, product.taps, product.depth)


def blocks_of(depth: int) -> tuple[int, int]:
    """Bytes of a block of a tap, and those of it that are whole blocks: all of them if equal blocks are not more."""
    count = -(-depth // DEPTH)
    if depth % (STEP * count) == 0:
        return depth // count, depth
    return DEPTH, depth // DEPTH * DEPTH


@cache
def tile_shape(lines: int, columns: int, channels: int, taps: int, depth: int) -> TileShape:
    """Tiles for a product of so many rows of pixels that do not follow each other."""
    vectors = -(-channels // ROWS)
    best, found = float("inf"), TileShape(1, 1, 1, False)
    for nv in dict.fromkeys(min(nv, vectors) for nv in (4, 2, 1)):
        whole, rest = divmod(vectors, nv)
        for mr in range(1, SUMS // nv + 1):
            # Where rows of the image are short, a tile is all of one.
            heights = [columns] if mr <= lines and lines > 1 and columns <= ROWS else []
            for rows, across in [(rows, True) for rows in heights] + [(rows, False) for rows in range(1, ROWS + 1)]:
                if mr * rows > columns and not across:
                    continue
                calls = -(-lines // mr) if across else lines * -(-columns // (mr * rows))
                cycles = whole * _cycles(mr, nv, rows, taps, depth)
                cycles += _cycles(mr, rest, rows, taps, depth) if rest else 0
                if calls * cycles < best:
                    best, found = calls * cycles, TileShape(mr, nv, rows, across)
    return found


def _cycles(mr: int, nv: int, rows: int, taps: int, depth: int) -> float:
    # A product takes a cycle for each row, and 52 until its sums can be added to; two lines are loaded in a cycle from
    # the first-level cache, three quarters of one from the second. At the end, rows are stored and become bytes, which
    # takes fewer instructions if there are more of a row.
    weights = 8 if nv * ROWS * taps * depth <= _FIRST_LEVEL else 21
    block = max(mr * nv * rows, nv * weights + mr * rows / 2, 52)
    return taps * -(-depth // DEPTH) * block + mr * nv * rows * (5, 3.5, 4, 3)[nv - 1] + 60


class TileContraction(ByteContraction):
    """The same product in tiles. All kernels of the command have as many rows, so the last ones overlap."""

    def _tile(self) -> tuple[Tile, bool]:
        tile = self.tile = _tile_of(self)
        self.pixel_steps = (self.a_steps[2], self.c_steps[2], self.r_steps[2])
        if not tile.across:
            return (tile.mr * tile.rows, tile.nv), True
        # A row of the image is to drivers what a pixel is.
        self.rows, self.columns = 1, self.rows
        self.a_steps, self.c_steps, self.r_steps = (
            (steps[0], 0, steps[1]) for steps in (self.a_steps, self.c_steps, self.r_steps)
        )
        return (tile.mr, tile.nv), True

    def cut(self, mr: int) -> None:
        super().cut(mr)
        self.rest = 0

    def geometry(self, overlapping: bool) -> dict[str, Word]:
        return super().geometry(overlapping=True)

    def _run(self, spec: KernelSpec, barrier: bool, **arguments: Word) -> None:
        build, tile = self.build, self.tile
        block, whole = blocks_of(self.depth)
        build.command(
            WithTiles(build.extended.name),
            barrier=barrier,
            kernel=build.kernel(spec),
            block=build.block(spec.arguments, **arguments),
            configuration=build.table(configuration(tile.mr, tile.rows, block, self.depth - whole)),
        )

    def _gemm(self, mr: int, nv: int, is_last: bool, prefetch: int = 0) -> KernelSpec:
        return TileGemm(
            self.build.extended.name,
            self.tile.mr,
            nv,
            self.type,
            replace(self._requantized(), relu=False),
            self.walk == "taps",
            blocks_of(self.depth)[1] < self.depth,
            is_last and self.weights.channels % (nv * self.build.dots.lanes()) > 0,
        )

    def _shape(self) -> Address:
        block, whole = blocks_of(self.depth)
        steps = (self.a_steps[2], self.c_steps[2], self.r_steps[2])
        a_tile, c_tile, residual_tile = (step * (1 if self.tile.across else self.tile.rows) for step in steps)
        a_stride, c_stride, residual_stride = self.pixel_steps
        words = self._words() | {"a_stride": a_stride, "c_stride": c_stride, "residual_stride": residual_stride}
        return self.build.block(
            TileGemm.arguments,
            **TileGemm.arguments.chosen(words),
            rows=self.tile.rows,
            a_tile=a_tile,
            c_tile=c_tile,
            residual_tile=residual_tile,
            block=block,
            whole=whole,
        )

    @property
    def _zero(self) -> int:
        return self.requantization.x_zero
