"""Sizes left open: arithmetic of polynomials, and what is decided by them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from gossamer.sizes import Later, Size, Sizes, computed, is_open, later, settled, told, whole
from gossamer.views import dense_strides


def worked_out(numbers: Sequence[Any], seed: int) -> tuple[list[Any], list[bool]]:
    """Numbers made of numbers, and what some comparisons of them say; the same ones for the same seed."""
    rng = np.random.default_rng(seed)
    found, said = list(numbers), []
    for _ in range(12):
        a, b = (found[int(at)] for at in rng.integers(0, len(found), 2))
        c = int(rng.integers(-5, 20))
        other = b if rng.integers(2) else c
        how = int(rng.integers(8))
        if how == 0:
            found.append(a + other)
        elif how == 1:
            found.append(other - a)
        elif how == 2:
            found.append(a * other)
        elif how == 3:
            found.append(a // (abs(c) + 1))
        elif how == 4:
            found.append(a % (abs(c) + 1))
        elif how == 5:
            found.append(max(a, other))
        elif how == 6 and b != 0:
            found.append(c // b + divmod(a, b)[1])
        else:
            found.append(-abs(a))
        said.append([a < other, a == other, a >= other, bool(a)][int(rng.integers(4))])
    return found, said


@pytest.mark.parametrize("seed", range(60))
def test_where_the_same_is_decided_numbers_are_those_of_integers(seed: int) -> None:
    start = [7, 12]
    sizes = Sizes(start)
    found, said = worked_out(sizes.open, seed)
    opened = [one for one in found if isinstance(one, Size)]
    numbers, holds = sizes.numbers(opened), sizes.holds()
    assert holds(*start)
    assert [one.value for one in opened] == numbers(*start)
    held = 0
    for a in range(1, 30):
        for b in (*range(1, 30, 3), 12):
            try:
                same = holds(a, b)
            except ZeroDivisionError:
                continue
            if same:
                held += 1
                wanted, decided = worked_out([a, b], seed)
                assert decided == said
                filled = iter(numbers(a, b))
                assert [next(filled) if isinstance(one, Size) else one for one in found] == wanted
    assert held


def test_what_is_the_same_for_all_numbers_is_not_noted() -> None:
    sizes = Sizes([5])
    (size,) = sizes.open
    assert size == size
    assert 2 * size - size == size
    assert size + 1 > size
    assert 6 * size // 3 == 2 * size
    assert size * size // size == size
    assert not isinstance(size - size, Size)
    assert 256 * size % 64 == 0
    assert sizes.holds()(99)
    assert not sizes.holds()(0)  # it has been divided by it


def test_quotients_are_rounded_as_integers_are() -> None:
    sizes = Sizes([5])
    (size,) = sizes.open
    assert sizes.numbers([-(-size // 4), size % 4, (4 * size + 3) // 4])(10) == [3, 2, 10]
    with pytest.raises(ZeroDivisionError):
        size // 0


NEEDED: list[Callable[[Any], object]] = [
    range,
    hash,
    float,
    int,
    lambda size: [0][size],
    lambda size: [0] * size,
    lambda size: np.zeros(size),
    lambda size: np.array([size, 1], np.int32),
    lambda size: np.full((2, size), 1),
    lambda size: np.arange(3) * size,
    lambda size: {size: 1},
    lambda size: size / 2,
    lambda size: 1 << size,
    lambda size: b"" * size,
]


@pytest.mark.parametrize("needed", NEEDED)
def test_nobody_gets_the_number_itself(needed: Callable[[Any], object]) -> None:
    sizes = Sizes([5])
    with pytest.raises(TypeError):
        needed(sizes.open[0])


def test_helpers() -> None:
    sizes = Sizes([5])
    (size,) = sizes.open
    assert whole(size) is size
    assert whole(np.int32(3)) == 3
    assert isinstance(later(np.zeros, size), Later)
    assert later(sum, (1, 2)) == 3
    strides = dense_strides((2, size, 3))
    assert strides[1:] == (3, 1)
    assert sizes.numbers(strides[:1])(7) == [21]
    assert repr(size) == "5 (s0)"
    assert is_open([1, size])
    assert not is_open([1, 2])


def halves(size: int, other: int) -> tuple[int, int]:
    return size // 2, max(range(1, other + 1))


def test_what_functions_make_of_sizes_are_variables() -> None:
    sizes = Sizes([5])
    (size,) = sizes.open
    low, high = computed(halves, size, 4)
    assert (low.value, high) == (2, 4)
    assert computed(halves, size, 4)[0] is low
    assert settled(high) == 4
    assert settled(7) == 7
    assert sizes.numbers([low + 1, computed(abs, low - 9)])(12) == [7, 3]
    assert sizes.holds()(12)  # whatever the size, 4 is 4


def test_sizes_are_settled_where_they_are_as_they_were() -> None:
    sizes = Sizes([5])
    (size,) = sizes.open
    assert settled(size // 2) == 2
    assert [sizes.holds()(number) for number in (3, 4, 5, 6)] == [False, True, True, False]


def test_decisions_are_made_elsewhere_once_sizes_have_moved() -> None:
    sizes = Sizes([5, 2])
    first, second = sizes.open
    rest = first % second
    with sizes.noting() as noted:
        assert rest == 1
    sizes.move([6, 3])
    assert (first.value, rest.value) == (6, 0)
    with sizes.noting() as later_noted:
        assert rest != 1
    assert sizes.holds(noted)(7, 2)
    assert not sizes.holds(later_noted)(7, 2)
    assert sizes.holds()(7, 2)  # nothing was noted there
    sizes.move([6, 0])  # where there is no rest, which nobody can decide by
    assert rest.value == 6


def test_keys_are_equal_polynomials() -> None:
    (size,) = Sizes([5]).open
    assert told((size * 2, "a", (1,))) == told((size + size, "a", (1,)))
    assert told(size) != told(size + 1)
    assert told((1, 2)) == (1, 2)
