"""Which tile a shape gets, among those that the target proposes."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from gossamer.targets import Target

Tile = tuple[int, int]


@cache
def proposals(target: Target, kind: str) -> tuple[Tile, ...]:
    """The tiles of the target's file, the best first."""
    tiles: tuple[Tile, ...] = import_module(f"gossamer.targets.{target.name}").TILES[kind]
    return tiles


@cache
def gemm_tile(target: Target, columns: int, channels: int, rows: int = 1) -> Tile:
    """Rows and vectors of a tile for ``rows`` rows of ``columns`` pixels."""
    vectors = -(-channels // target.lanes())
    if columns == 1:
        return 1, min(8, vectors)
    best: tuple[float, Tile] | None = None
    for mr, nv in proposals(target, "gemm"):
        if mr > columns:
            continue
        nv = min(nv, vectors)
        whole, rest = divmod(vectors, nv)
        cost = -(-columns // mr) * (whole * _cost(mr, nv) + (_cost(mr, rest) if rest else 0))
        if best is None or cost < best[0] - 1e-9:
            best = cost, (mr, nv)
    return best[1] if best else (1, min(8, vectors))


def _cost(mr: int, nv: int) -> float:
    # Cycles of one step of depth: two multiplications or two loads at a time, and the latency of a multiplication.
    return max(mr * nv / 2, (mr + nv) / 2 * (1.05 if nv == 1 else 1), 4.0) + 0.25


@cache
def depthwise_tile(target: Target, columns: int, elements: int) -> int:
    """Pixels of a row at a time: as many as divide it and leave room for the filter."""
    pixels = [p for p, _ in proposals(target, "depthwise")]
    for p in pixels:
        if columns % p == 0 and p + (elements if elements <= 9 else 5) + 2 <= target.registers:
            return p
    return 1
