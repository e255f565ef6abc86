"""A layered drawing of a graph: every edge leads downwards, and few of them cross (Sugiyama, Tagawa and Toda 1981).

A vertex lies in the layer below the lowest of those before it. An edge over several layers passes through a bend in
each between; the edges from one vertex share their bends. Sweeps down and up sort each layer by the means of the
neighbours, then move its vertices as near to these means as their widths allow.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

GAP, BEND, GUTTER, LAYER = 24.0, 12.0, 60.0, 76.0
"""Pixels between two boxes, for a bend, between two columns, and from one layer to the next."""

TALL, SHEET = 160, 1.6
"""Layers up to which a drawing is one column, and how much wider than high the sheet of others is, about."""

_SORTS, _MOVES = 6, 8
_MOST_BENDS = 20_000
"""An edge that would take more is drawn without bends: a graph of hostile depth takes no more time for it."""


class Drawing(NamedTuple):
    """``places``: the middle of each vertex, in pixels to the right and in layers downwards. ``bends``: for edges that
    have any, what they pass through, from above."""

    places: list[tuple[float, int]]
    bends: dict[tuple[int, int], list[tuple[float, float]]]


def draw(widths: Sequence[float], edges: Sequence[tuple[int, int]]) -> Drawing:
    """Places for vertices of these widths in pixels. An edge leads from a vertex to one of a higher number."""
    count = len(widths)
    edges = [edge for edge in dict.fromkeys(edges) if edge[0] < edge[1]]
    layers = _layers(count, edges)
    wide = [width + GAP for width in widths]
    before: list[list[int]] = [[] for _ in range(count)]
    after: list[list[int]] = [[] for _ in range(count)]
    chains: dict[int, list[int]] = {}
    bent = []
    for first, last in edges:
        chain = chains.setdefault(first, [first])
        missing = range(len(chain), layers[last] - layers[first])
        if len(wide) + len(missing) - count > _MOST_BENDS:
            continue
        for _ in missing:
            number = len(wide)
            wide.append(BEND)
            layers.append(layers[chain[-1]] + 1)
            before.append([chain[-1]])
            after.append([])
            after[chain[-1]].append(number)
            chain.append(number)
        above = chain[layers[last] - layers[first] - 1]
        after[above].append(last)
        before[last].append(above)
        if above != first:
            bent.append((first, last))
    rows: list[list[int]] = [[] for _ in range(max(layers, default=-1) + 1)]
    for vertex in _depth_first(before, after):
        rows[layers[vertex]].append(vertex)
    x = _placed(rows, wide, before, after)
    places = [(round(x[vertex], 1), layers[vertex]) for vertex in range(len(wide))]
    bends: dict[tuple[int, int], list[tuple[float, float]]] = {
        (a, b): [places[n] for n in chains[a][1 : layers[b] - layers[a]]] for a, b in bent
    }
    return Drawing(places[:count], bends)


def _layers(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """The layer of each vertex; one with nothing before it lies just above the first of those behind it."""
    layers = [0] * count
    followers: dict[int, list[int]] = {}
    rooted = set()
    for first, last in edges:
        followers.setdefault(first, []).append(last)
        rooted.add(last)
    for vertex in range(count):
        for other in followers.get(vertex, ()):
            layers[other] = max(layers[other], layers[vertex] + 1)
    for vertex in range(count):
        if vertex not in rooted and vertex in followers:
            layers[vertex] = min(layers[other] for other in followers[vertex]) - 1
    return layers


def _depth_first(before: Sequence[Sequence[int]], after: Sequence[Sequence[int]]) -> list[int]:
    """All vertices, branch by branch: an order to begin with."""
    found: dict[int, None] = {}
    for root in (vertex for vertex, others in enumerate(before) if not others):
        stack = [root]
        while stack:
            vertex = stack.pop()
            if vertex not in found:
                found[vertex] = None
                stack.extend(reversed(after[vertex]))
    return list(found)


def _placed(
    rows: list[list[int]], wide: Sequence[float], before: Sequence[Sequence[int]], after: Sequence[Sequence[int]]
) -> list[float]:
    x = [0.0] * len(wide)

    def mean(near: Sequence[Sequence[int]]) -> Callable[[int], float]:
        return lambda vertex: sum(x[n] for n in near[vertex]) / len(near[vertex]) if near[vertex] else x[vertex]

    for row in rows:
        _pack(row, wide, x)
    for sweep in range(_SORTS + _MOVES):
        down = sweep % 2 == 0
        wish = mean(before if down else after)
        for row in rows if down else reversed(rows):
            wishes = {vertex: wish(vertex) for vertex in row}
            if sweep < _SORTS:
                row.sort(key=wishes.__getitem__)
            _move(row, wide, wishes, x)
    return x


def _pack(row: Sequence[int], wide: Sequence[float], x: list[float]) -> None:
    right = -sum(wide[vertex] for vertex in row) / 2
    for vertex in row:
        x[vertex] = right + wide[vertex] / 2
        right += wide[vertex]


def _move(row: Sequence[int], wide: Sequence[float], wishes: Mapping[int, float], x: list[float]) -> None:
    """The places with the least squares of distances to the wishes, in the order of the row and without overlaps:
    vertices that touch move as a block, to the mean of what they wish (pool adjacent violators)."""
    blocks: list[tuple[float, int]] = []  # the mean wish for the left end, and how many
    at, offsets = 0.0, []
    for vertex in row:
        offsets.append(at + wide[vertex] / 2)
        wish, size = wishes[vertex] - offsets[-1], 1
        while blocks and blocks[-1][0] > wish:
            other, more = blocks.pop()
            wish, size = (wish * size + other * more) / (size + more), size + more
        blocks.append((wish, size))
        at += wide[vertex]
    numbers = iter(range(len(row)))
    for wish, size in blocks:
        for _ in range(size):
            number = next(numbers)
            x[row[number]] = wish + offsets[number]


def fold(drawing: Drawing, widths: Sequence[float], edges: Iterable[tuple[int, int]]) -> Drawing:
    """A drawing of many layers in columns, read like those of a newspaper; what leads from one to the next passes
    between them."""
    ends = [(x - width / 2, x + width / 2, y) for (x, y), width in zip(drawing.places, widths, strict=True)]
    ends += [(x - BEND / 2, x + BEND / 2, int(y)) for bends in drawing.bends.values() for x, y in bends]
    layers = max((y for *_, y in ends), default=-1) + 1
    if layers <= TALL:
        return drawing
    wide = max(high - low for low, high in _extents(ends, 1)) + GUTTER
    rows = math.ceil(math.sqrt(layers * min(wide, layers * LAYER) / (SHEET * LAYER)))
    extents = _extents(ends, rows)
    starts = list(accumulate((high - low + GUTTER for low, high in extents), initial=0.0))

    def place(x: float, y: float) -> tuple[float, int]:
        column, row = divmod(int(y), rows)
        return round(starts[column] + x - extents[column][0], 1), row

    bends: dict[tuple[int, int], list[tuple[float, float]]] = {}
    for first, last in edges:
        path: list[tuple[float, float]] = []
        between = drawing.bends.get((first, last), ())
        for (x, y), (_, below) in pairwise([drawing.places[first], *between, drawing.places[last]]):
            path.append(place(x, y))
            if y // rows != below // rows:
                gutter = round(starts[int(below) // rows] - GUTTER / 2, 1)
                path += [(gutter, rows - 0.4), (gutter, -0.6)]
        if path[1:]:
            bends[first, last] = path[1:]
    return Drawing([place(*at) for at in drawing.places], bends)


def _extents(ends: Sequence[tuple[float, float, int]], rows: int) -> list[tuple[float, float]]:
    """From where to where columns of so many layers reach, before they are moved."""
    extents = [(math.inf, -math.inf)] * (max(y for *_, y in ends) // rows + 1)
    for left, right, y in ends:
        low, high = extents[y // rows]
        extents[y // rows] = min(low, left), max(high, right)
    return extents
