"""Integers as sums of others, and what is known of them."""

from __future__ import annotations

from gossamer.affine import Affine, Ranges
from gossamer.schema import TensorType
from gossamer.views import Buffer

FIRST, SECOND = ((Buffer((), TensorType.INT32), 0) for _ in range(2))
i, n = (Affine(0, {element: 1}) for element in (FIRST, SECOND))


def test_sums() -> None:
    assert i + 3 - i == Affine(3)
    assert (i + n) * 2 - n == Affine(0, {FIRST: 2, SECOND: 1})
    assert (i * 0).is_constant
    assert not (i - n).is_constant


def test_ranges() -> None:
    ranges = Ranges({FIRST: 2}, [i - n + 1])  # 2 <= i < n
    assert ranges.greatest(i * -1) == -2
    assert ranges.greatest(i) is None
    assert ranges.greatest(i - n) == -1
    assert ranges.greatest(n * -1) == -3
    assert ranges.within({}, [n - 10]).greatest(n) == 10
    assert ranges.asked == {FIRST, SECOND}


def test_limits_of_elements() -> None:
    ranges = Ranges({FIRST: 2})
    assert ranges.greatest(i - n, {FIRST: (None, 7), SECOND: (3, None)}) == 4
    assert ranges.greatest(n - i, {FIRST: (0, None), SECOND: (None, 9)}) == 7
    assert ranges.greatest(n - i, {FIRST: (4, None), SECOND: (None, 9)}) == 5


def test_what_is_asked_within_is_asked() -> None:
    ranges = Ranges()
    assert ranges.within({SECOND: 0}, ()).greatest(n) is None
    assert ranges.asked == {SECOND}
