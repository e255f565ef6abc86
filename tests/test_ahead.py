from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ahead import Ahead
from gossamer.sizes import Sizes, computed


def _tile(size: int, most: int) -> tuple[int, int]:
    return (size % 3, most) if size < most else (size % 5, size)


@pytest.mark.parametrize("seed", range(4))
def test_it_is_what_holds_for_each(seed: int) -> None:
    random = np.random.default_rng(seed)
    given = random.integers(2, 9, 2).tolist()
    sizes = Sizes(given)
    a, b = sizes.open
    with sizes.noting() as decided:
        answers: list[Any] = [a + b < 40, a * b != 60, (a + 3) // 4 <= 3, b > 1, a != 100]
        tile, most = computed(_tile, a, 11)
        answers.append(most < 30)
    assert len(answers) == 6
    steps = random.integers(0, 3, (2, 2))
    points = np.array([[0, 0], [1, 0], [0, 1], *random.integers(0, 12, (40, 2)).tolist()])
    holds = sizes.holds(decided)
    rows = (given + points @ steps).tolist()
    assert Ahead(sizes, decided)(given, steps, points).tolist() == [holds(*row) for row in rows]
    numbers = [a + 2 * b, 7, a * b, b // 2, tile]
    known = [sizes.numbers(numbers)(*row) for row in rows]
    grown = [np.array(known[0]) + point @ (np.array(known[1:3]) - known[0]) for point in points]
    wanted = [holds(*row) and one == more.tolist() for row, one, more in zip(rows, known, grown, strict=True)]
    assert Ahead(sizes, decided, numbers)(given, steps, points).tolist() == wanted


def test_what_cannot_be_worked_out_does_not_hold() -> None:
    sizes = Sizes([4])
    (a,) = sizes.open
    with sizes.noting() as decided:
        assert 12 // (6 - a) == 6
    points = np.arange(4).reshape(-1, 1)
    assert not Ahead(sizes, decided)([4], np.array([[1]]), points).any()
