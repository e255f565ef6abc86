"""Which tile a shape gets, among those that the target proposes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from math import gcd
from typing import Any

from gossamer.codegen.dots import is_paired
from gossamer.sizes import computed, settled
from gossamer.targets import Target

Tile = tuple[int, int]

PAGE = 4096
"""Bytes after which addresses meet in the first-level cache."""

WINOGRAD_BYTES = 576 << 10
"""Bytes that the second-level cache (1 MB on Zen 4, 2 MB on newer Intels) has for what is between transformations."""

QUANTIZED_WINOGRAD_BYTES = 64 << 10
"""The same of bytes: there is so little to do that the first-level cache should have most of it."""

STRASSEN_BYTES = 576 << 10
"""Bytes that it has for sums of pixels, beside the pixels."""

STRASSEN_PAIRS = range(24, 64 + 1)
"""Pairs of pixels at a time: with fewer, weights are read too often (128 pixels at once are 3 % quicker than twice 64);
more are up to 2 % slower, for their sums leave the cache."""

TWICE_ROWS = 8
"""Rows of a tile where products are made of seven: it is not the products alone that have to stay in the first-level
cache, but the sums of their factors."""


DEPTHWISE_CHANNELS = 64
"""Channels of a block of a depthwise convolution: their rows stay in the first-level cache for the rows behind.

Measured on Zen 4, 3x3 or 5x5: 14x14x512 26 us instead of 31 (AVX-512 19 and 23), 14x14x672 118 and 133 (91 and 94)."""

DEPTHWISE_BYTES = 1 << 20
"""Bytes of an image up to which it comes from the second-level cache. What is larger is read as it lies in memory."""


def last_vector(target: Target, tail: int) -> tuple[bool, bool]:
    """Whether the microkernel of the last panel, in whose last vector ``tail`` channels are, is (ragged, half)."""
    return computed(_last_vector, target, tail)


def _last_vector(target: Target, tail: int) -> tuple[bool, bool]:
    lanes = target.lanes()
    half = target.vector_bits == 512 and tail <= lanes // 2
    return tail != (lanes // 2 if half else lanes), half


@cache
def proposals(target: Target, kind: str) -> tuple[Tile, ...]:
    """The tiles of the target's file, or of the file of one that it extends, the best first."""
    for member in target.family():
        tiles: tuple[Tile, ...] | None = getattr(import_module(f"gossamer.targets.{member.name}"), "TILES", {}).get(
            kind
        )
        if tiles is not None:
            return tiles
    raise KeyError(kind)


@cache
def quantized_tile(target: Target, columns: int, channels: int, steps: int, half: bool = False) -> Tile:
    """As `gemm_tile`, of bytes: ``steps`` of four of depth. ``half``: of the last vector of channels, half is there."""
    vectors = -(-channels // target.lanes())
    best, tile = float("inf"), (1, min(4, vectors))
    for mr, nv in proposals(target, "quantized_gemm"):
        if mr > columns:
            continue
        nv = min(nv, vectors)
        whole, rest = divmod(vectors, nv)
        if half and not rest:
            whole, rest = whole - 1, nv
        cycles = whole * _quantized_cycles(target, mr, nv, steps)
        cycles += _quantized_cycles(target, mr, rest, steps, half) if rest else 0
        cost = -(-columns // mr) * cycles
        if cost < best - 1e-9:
            best, tile = cost, (mr, nv)
    return tile


def _quantized_cycles(target: Target, mr: int, nv: int, steps: int, half: bool = False) -> float:
    if target.vector_bits == 128:
        return steps * _quantized_instructions(target, mr, nv) + 7 * mr * nv + 35
    # A step as in `_cycles`; then a vector of sums takes some cycles to become bytes, fewer if there are more of a row.
    step = max(mr * (nv - half / 2), (mr + nv) * (1.2 if nv == 1 else 1), 8) / 2 + 0.1
    if is_paired(target):
        # Two multiplications and two additions for every vector of sums keep all units busy, whatever the tile; weights
        # are widened in every step, rows four steps at a time.
        step = max(mr * nv + nv / 2 + mr / 8, 2)
    return steps * step + mr * nv * (2.0, 1.2, 1.4, 1.0)[min(nv, 4) - 1] + 6


def _quantized_instructions(target: Target, mr: int, nv: int) -> float:
    # AArch64 has not been timed: what counts there is how many instructions there are, of the loop and of what stands
    # before and behind it. Rows are loaded four steps at a time, weights two vectors.
    if is_paired(target):
        return 3 * mr * nv + 2.5 * mr + 6
    return mr * nv + nv / 2 + mr / 4 + 1.25


def quantized_tiles(target: Target, columns: int, channels: int, steps: int, half: bool = False) -> Iterator[Tile]:
    """The tile of `quantized_tile`, then all others: those that waste least first."""
    mr, nv = computed(quantized_tile, target, columns, channels, steps, half)
    yield mr, settled(nv)
    yield from _in_order(_quantized_order, target, columns, channels, steps)


@cache
def _quantized_order(target: Target, columns: int, channels: int, steps: int) -> tuple[Tile, ...]:
    vectors = -(-channels // target.lanes())

    def cost(tile: Tile) -> float:
        whole, rest = divmod(vectors, tile[1])
        cycles = whole * _quantized_cycles(target, *tile, steps)
        return -(-columns // tile[0]) * (cycles + (_quantized_cycles(target, tile[0], rest, steps) if rest else 0))

    return tuple(sorted(_all_tiles(target, "quantized_gemm", columns, vectors), key=cost))


def _in_order(order: Callable[..., tuple[Tile, ...]], *arguments: Any) -> Iterator[Tile]:
    """The tiles that a function of these arguments tells, some of which may be open."""
    for number in range(settled(computed(_count, order, *arguments))):
        mr, nv = computed(_at, order, number, *arguments)
        yield mr, settled(nv)  # other panels are other commands


def _count(order: Callable[..., tuple[Tile, ...]], *arguments: Any) -> int:
    return len(order(*arguments))


def _at(order: Callable[..., tuple[Tile, ...]], number: int, *arguments: Any) -> Tile:
    return order(*arguments)[number]


def inner_products_tiles(target: Target, columns: int, channels: int, steps: int) -> Iterator[Tile]:
    """Tiles of bytes with half of the multiplications, the best first; the last one of a row has what is left."""
    return _in_order(_inner_products_order, target, columns, channels, steps)


@cache
def _inner_products_order(target: Target, columns: int, channels: int, steps: int) -> tuple[Tile, ...]:
    vectors = -(-channels // target.lanes())

    def cycles(mr: int, nv: int) -> float:
        # Four additions and products for every vector of sums in every step of four, or two loads at a time; then it
        # becomes bytes.
        step = max(1.06 * mr * nv, mr + 2 * nv) + 0.2
        return steps * step + mr * nv * (2.0, 1.2)[nv > 1] + mr + 8

    def cost(tile: Tile) -> float:
        mr, nv = tile
        panels, rest = divmod(vectors, nv)
        large, smaller = cut_in_two(columns, mr)
        return sum(
            count * (panels * cycles(rows, nv) + (cycles(rows, rest) if rest else 0))
            for rows, count in ((mr, large), (smaller, -(-columns // mr) - large))
            if rows
        )

    tiles = proposals(target, "inner_products")
    return tuple(sorted(((mr, nv) for mr, nv in tiles if mr <= columns and nv <= vectors), key=cost))


WIDENED_ROWS = (12, 8, 4, 2, 1)
"""Of tiles of one vector of channels whose pixels have been widened to 16 bits before."""


@cache
def widened_rows(columns: int) -> int:
    """Rows of such a tile, which begins and ends in the time of two."""
    return min((rows for rows in WIDENED_ROWS if rows <= columns), key=lambda rows: -(-columns // rows) * (rows + 2))


def cut_in_two(columns: int, mr: int) -> tuple[int, int]:
    """How rows of so many columns are cut into tiles of ``mr``: how many these are, and how many columns those behind
    have (0: there are none). One column is not left alone, for which all weights are read: others give it some."""
    tiles, rest = divmod(columns, mr)
    if rest == 1 and tiles >= mr - 2:
        return tiles - (mr - 2), mr - 1
    return tiles, rest


def gemm_tiles(
    target: Target, columns: int, channels: int, depth: int, a_stride: int = 0, evenly: bool = False
) -> Iterator[Tile]:
    """The tile of `gemm_tile`, then all others: those that waste least first."""
    mr, nv = computed(gemm_tile, target, columns, channels, depth, a_stride, evenly)
    yield mr, settled(nv)
    yield from _in_order(_gemm_order, target, columns, channels, depth, a_stride, evenly)


@cache
def _gemm_order(
    target: Target, columns: int, channels: int, depth: int, a_stride: int, evenly: bool
) -> tuple[Tile, ...]:
    vectors = -(-channels // target.lanes())
    return tuple(
        sorted(
            _all_tiles(target, "gemm", columns, vectors),
            key=lambda tile: _cost(target, tile, columns, channels, depth, a_stride, evenly),
        )
    )


@cache
def _all_tiles(target: Target, kind: str, columns: int, vectors: int) -> tuple[Tile, ...]:
    """What is proposed, and what is left of it where there are fewer pixels or channels."""
    return tuple([(mr, nv) for mr, nv in closed_tiles(target, kind) if mr <= columns and nv <= vectors])


@cache
def closed_tiles(target: Target, kind: str) -> tuple[Tile, ...]:
    """The tiles of the target's file, with fewer vectors and, as the last ones of a row, with fewer pixels."""
    found = {(1, nv) for nv in range(1, 5)}
    for mr, nv in proposals(target, kind):
        found |= {(mr, fewer) for fewer in range(1, nv + 1)}
    return tuple(sorted(found))


@cache
def few_tiles(target: Target, kind: str) -> tuple[Tile, ...]:
    """A few of them, for any number of pixels and channels: the best of one and of two vectors, and smaller ones."""
    best = [next((mr for mr, vectors in proposals(target, kind) if vectors == nv), 4) for nv in (1, 2)]
    return tuple(sorted({(mr, nv) for nv in (1, 2) for mr in (1, 4, *best[nv - 1 :])}))


def fewer_rows(target: Target, mr: int, nv: int) -> int:
    """Rows of the smaller tiles among which rows are cut evenly: one less, or as many if there is no such kernel."""
    return mr - 1 if (mr - 1, nv) in closed_tiles(target, "gemm") else mr


@cache
def gemm_tile(target: Target, columns: int, channels: int, depth: int, a_stride: int = 0, evenly: bool = False) -> Tile:
    """Rows and vectors of a tile, for rows of ``columns`` pixels ``a_stride`` bytes apart, and so much depth.

    The last tile of a row and the last panel of channels may be cut off; the tile that wastes least wins. ``evenly``:
    rows are cut into tiles of `fewer_rows`, too.
    """
    return _best_tile(target, columns, channels, depth, a_stride, evenly)[1]


def cut_evenly(target: Target, columns: int, mr: int, nv: int, overlapping: bool) -> tuple[int, int, int]:
    """How rows of so many columns are cut into tiles of ``mr``: the large ones, the size of those behind, and the
    column behind which none begins.

    Those behind are of `fewer_rows`, if the last tile would not fit and a row has some of both; else there is one,
    which has what is left; or all are large, and the last one overlaps the one before.
    """
    tiles, fewer = -(-columns // mr), fewer_rows(target, mr, nv)
    smaller = tiles * mr - columns
    if fewer < mr and 0 < smaller < tiles:
        return tiles - smaller, fewer, columns
    if overlapping:
        return tiles, mr, max(columns - mr, 0)
    return columns // mr, columns % mr or mr, columns


@cache
def winograd_group(target: Target, planes: int, tiles: int, depth: int, channels: int) -> int:
    """How many tiles of a Winograd convolution are transformed at a time: as `gemm_tile` likes them, and so many that
    what is between the transformations stays in the second-level cache, beside the weights of a plane."""
    most = min(tiles, max(1, WINOGRAD_BYTES // (4 * planes * (depth + channels))))
    return _group(target, range(1, most + 1), tiles, depth, channels, 4 * depth, 1.02)


@cache
def quantized_winograd_group(tiles: int, tile_bytes: int, least: int = 1) -> int:
    """How many tiles of a Winograd convolution of bytes are transformed at a time, as evenly as may be: ``tile_bytes``
    of each are between the transformations. ``least`` are worth reading the weights."""
    groups = -(-tiles // max(least, QUANTIZED_WINOGRAD_BYTES // tile_bytes))
    return -(-tiles // groups)


@cache
def strassen_group(target: Target, pairs: int, depth: int, channels: int, a_stride: int) -> int:
    """How many pairs of pixels, of so much depth and so many channels in a quarter, Strassen's algorithm multiplies at
    a time: as `gemm_tile` likes them, and so many that their four sums stay in the second-level cache."""
    least = min(pairs, STRASSEN_PAIRS[0])
    most = max(least, min(pairs, STRASSEN_PAIRS[-1], STRASSEN_BYTES // (4 * 4 * depth)))
    return _group(target, range(least, most + 1), pairs, depth, channels, a_stride, 1.005)


@cache
def strassen_tile(
    target: Target, group: int, groups: int, channels: int, depth: int, a_stride: int, most: int = 1 << 30
) -> Tile:
    """As `gemm_tile`, for pixels that are cut evenly, but of tiles that are as quick one whose panels two threads can
    share evenly. It has at most so many rows."""
    best, tile = _best_tile(target, group, channels, depth, a_stride, evenly=True)
    vectors = channels // target.lanes()
    costs = {tile: best} if tile[0] <= most else {}
    for mr, nv in proposals(target, "gemm"):
        if mr <= min(group, most) and nv <= vectors:
            costs[mr, nv] = _cost(target, (mr, nv), group, channels, depth, a_stride, evenly=True)
    choices = {tile: cost for tile, cost in costs.items() if cost <= 1.03 * min(costs.values())}

    def larger_share(tile: Tile) -> int:
        whole, rest = divmod(vectors, tile[1])
        panels = ([tile[1]] * whole + [rest] * bool(rest)) * groups
        first = sum(panels[: len(panels) // 2])
        return max(first, vectors * groups - first)

    return min(choices, key=lambda tile: (larger_share(tile), choices[tile]))


def _group(target: Target, sizes: range, rows: int, depth: int, channels: int, a_stride: int, at_most: float) -> int:
    """The largest group of rows that takes at most so many times as long as the best one."""
    costs = {size: -(-rows // size) * _best_tile(target, size, channels, depth, a_stride)[0] for size in sizes}
    return max(size for size, cost in costs.items() if cost <= at_most * min(costs.values()))


def _best_tile(
    target: Target, columns: int, channels: int, depth: int, a_stride: int, evenly: bool = False
) -> tuple[float, Tile]:
    """The best tile after its cost in cycles, for one row of pixels; ``evenly``: it is cut into tiles of `fewer_rows`,
    too."""
    vectors = -(-channels // target.lanes())
    # A row at a time, which needs a load for every multiplication, where there are no more rows.
    best = (2.0 * columns * vectors * depth, (1, min(8, vectors)))
    for tile, cycles, saved, conflicts in _costs(target, channels, depth, a_stride, evenly):
        mr = tile[0]
        if mr > columns:
            continue
        cost = _tiled(columns, mr, cycles, saved, evenly) * conflicts
        if cost < best[0] - 1e-9:
            best = cost, tile
    return best


@cache
def _costs(
    target: Target, channels: int, depth: int, a_stride: int, evenly: bool
) -> tuple[tuple[Tile, float, float, float], ...]:
    """Of each tile that is proposed, whatever the number of columns: cycles for all channels, how many of them a
    smaller tile saves (if there are any), and `_conflicts`."""
    vectors = -(-channels // target.lanes())
    tiles = [(mr, min(nv, vectors)) for mr, nv in proposals(target, "gemm")]
    return tuple([(tile, *_of_tile(target, tile, channels, depth, a_stride, evenly)) for tile in tiles])


def _of_tile(
    target: Target, tile: Tile, channels: int, depth: int, a_stride: int, evenly: bool
) -> tuple[float, float, float]:
    cycles = _panels(target, tile, channels, depth)
    smaller = (fewer_rows(target, *tile), tile[1])
    saved = cycles - _panels(target, smaller, channels, depth) if evenly else 0.0
    return cycles, saved, _conflicts(tile[0], a_stride)


def _cost(
    target: Target, tile: Tile, columns: int, channels: int, depth: int, a_stride: int, evenly: bool = False
) -> float:
    cycles, saved, conflicts = _of_tile(target, tile, channels, depth, a_stride, evenly)
    return _tiled(columns, tile[0], cycles, saved, evenly) * conflicts


def _tiled(columns: int, mr: int, cycles: float, saved: float, evenly: bool) -> float:
    """Cycles of so many columns in tiles, of which those with a row less save some."""
    count = -(-columns // mr)
    smaller = count * mr - columns
    # Tiles of two sizes that save less than this beside one that fits have not been quicker: 56x56x128 to 128 takes
    # 1.01 times as long with both targets of x86, 28x28x240 to 40 1.2 times with AVX-512.
    unfit = 1.01 if evenly and smaller else 1
    return (count * cycles - (smaller * saved if smaller < count else 0)) * unfit


def _panels(target: Target, tile: Tile, channels: int, depth: int) -> float:
    """Cycles of a tile for all channels."""
    mr, nv = tile
    vectors = -(-channels // target.lanes())
    _, half = _last_vector(target, channels - (vectors - 1) * target.lanes())
    whole, rest = divmod(vectors, nv)
    if half and not rest:
        whole, rest = whole - 1, nv
    return whole * _cycles(target, mr, nv, depth) + (_cycles(target, mr, rest, depth, half) if rest else 0)


def _cycles(target: Target, mr: int, nv: int, depth: int, half: bool = False) -> float:
    if target.vector_bits == 128:
        # Instructions, as in `_quantized_instructions`.
        return depth * (mr * nv + nv / 2 + mr / 4 + 1.25) + 5 * mr * nv + 50
    # A step of depth is two multiplications or two loads at a time, and the latency of a multiplication: with AVX2 this
    # is what tiles take on Zen 4 within some percent. From tile to tile, each row costs some cycles more.
    return depth * _step(mr, nv, half) + (2 * mr if nv > 1 else 3)


@cache
def _step(mr: int, nv: int, half: bool) -> float:
    sums = mr * (nv - half / 2)
    return max(sums / 2, (mr + nv) / 2 * (1.05 if nv == 1 else 1), 4.25) + (0.25 if sums < 12 else 0.15)


def _conflicts(mr: int, a_stride: int) -> float:
    # Rows that are a multiple of 4096 bytes apart share 8 lines of the first-level cache (12 on newer Intels). On Zen
    # 4, at a depth of 1024, 9 rows do not suffer, 12 take 1.15 times as long, 14 1.7 times.
    together = mr / (PAGE // gcd(a_stride, PAGE)) if a_stride else 0
    return 1 + max(0, together - 9) * 0.1


@cache
def depthwise_tile(target: Target, columns: int) -> int:
    """Pixels of a row at a time.

    The last ones overlap those before, so that many which waste none may be better than few.
    """
    choices = [pixels for pixels, _ in proposals(target, "depthwise") if pixels <= columns]
    # Each is some percent slower than the one before it.
    costs = {pixels: -(-columns // pixels) * pixels * (1 + 0.03 * rank) for rank, pixels in enumerate(choices)}
    return min(costs, key=lambda pixels: costs[pixels])


@cache
def depthwise_block(channels: int, image_bytes: int) -> int:
    """Channels that are filtered in all rows before the others, where the image has so many bytes: whole lines."""
    if image_bytes > DEPTHWISE_BYTES:
        return channels
    blocks = -(-channels // DEPTHWISE_CHANNELS)
    return -(-channels // blocks // 16) * 16
