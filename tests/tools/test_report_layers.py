"""The layered drawing of a graph."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from gossamer.tools._report.layers import BEND, GAP, GUTTER, TALL, draw, fold
from tests.conftest import seeds


def test_nothing_is_drawn_of_nothing() -> None:
    assert draw([], []) == ([], {})


def test_a_chain_is_a_straight_line() -> None:
    assert draw([50, 90, 70], [(0, 1), (1, 2)]) == ([(0.0, 0), (0.0, 1), (0.0, 2)], {})


def test_branches_lie_side_by_side_and_meet_again() -> None:
    """A diamond, 100 pixels wide: from 0 over 1 and 2 to 3."""
    apart = (100 + GAP) / 2
    drawing = draw([100] * 4, [(0, 1), (0, 2), (1, 3), (2, 3)])
    assert drawing.places == [(0.0, 0), (-apart, 1), (apart, 1), (0.0, 2)]
    assert drawing.bends == {}


def test_a_long_edge_passes_beside_what_it_skips() -> None:
    drawing = draw([100] * 4, [(0, 1), (1, 2), (2, 3), (0, 3)])
    assert [y for _, y in drawing.places] == [0, 1, 2, 3]
    ((edge, bends),) = drawing.bends.items()
    assert edge == (0, 3)
    assert [y for _, y in bends] == [1, 2]
    for (x, _), vertex in zip(bends, (1, 2), strict=True):
        assert abs(x - drawing.places[vertex][0]) >= (100 + GAP + BEND) / 2


def test_a_source_lies_just_above_the_first_that_needs_it() -> None:
    drawing = draw([100] * 5, [(0, 1), (1, 2), (3, 4), (2, 4)])
    assert drawing.places[3][1] == drawing.places[4][1] - 1


@pytest.mark.parametrize("seed", seeds(6, 60))
def test_boxes_never_overlap_and_edges_lead_down(seed: int) -> None:
    choose = random.Random(seed)
    count = choose.randrange(2, 150)
    widths = [choose.uniform(60, 250) for _ in range(count)]
    edges = [
        (a, b)
        for b in range(1, count)
        for a in {choose.randrange(max(0, b - 12), b) for _ in range(choose.randrange(4))}
    ]
    drawing = draw(widths, edges)
    assert draw(widths, edges) == drawing
    rows: dict[int, list[tuple[float, float]]] = {}
    for (x, y), width in zip(drawing.places, widths, strict=True):
        rows.setdefault(y, []).append((x - width / 2, x + width / 2))
    for row in rows.values():
        assert all(right < left for (_, right), (left, _) in pairwise(sorted(row)))
    for first, last in edges:
        between = range(drawing.places[first][1] + 1, drawing.places[last][1])
        assert drawing.places[last][1] > drawing.places[first][1]
        assert [y for _, y in drawing.bends.get((first, last), [])] == list(between)


def test_edges_of_a_hostile_depth_have_no_bends() -> None:
    """Each of 200 inputs is needed at the end of a chain of 1,000: 200,000 bends would be."""
    count = 1200
    chain = [(n, n + 1) for n in range(200, count - 1)]
    drawing = draw([100] * count, [*((n, 201) for n in range(200)), *chain, *((n, count - 1) for n in range(200))])
    assert sum(map(len, drawing.bends.values())) < 200_000
    assert len(drawing.places) == count


def test_a_tall_drawing_is_folded_into_columns() -> None:
    """A chain of 400 with an edge around every tenth: columns beside each other, and edges between them."""
    count = 400
    edges = [(n, n + 1) for n in range(count - 1)] + [(n, n + 3) for n in range(0, count - 3, 10)]
    drawing = draw([100] * count, edges)
    folded = fold(drawing, [100] * count, edges)
    rows = max(y for _, y in folded.places) + 1
    assert count > TALL
    assert 20 < rows < count / 2
    assert [y for _, y in folded.places] == [n % rows for n in range(count)]
    columns = [[x for x, _ in folded.places[at : at + rows]] for at in range(0, count, rows)]
    assert all(max(one) + 100 + GUTTER <= min(other) + 1e-6 for one, other in pairwise(columns))
    inside, across = (0, 1), (rows - 1, rows)
    assert inside not in folded.bends
    (gutter, below), (same, above) = folded.bends[across]
    assert (gutter, below, above) == (same, rows - 0.4, -0.6)
    assert max(columns[0]) + 50 < gutter < min(columns[1]) - 50


def test_a_low_drawing_is_one_column() -> None:
    drawing = draw([100] * 3, [(0, 1), (1, 2), (0, 2)])
    assert fold(drawing, [100] * 3, [(0, 1), (1, 2), (0, 2)]) is drawing
