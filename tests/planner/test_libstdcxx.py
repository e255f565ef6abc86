"""The expected orders were printed by programs compiled with g++ 12."""

from __future__ import annotations

import pytest

from gossamer.planner import libstdcxx


@pytest.mark.parametrize(
    ("inserted", "visited"),
    [
        ([], []),
        ([5, 54, 55], [55, 54, 5]),
        ([0, 13, 26, 1, 14], [14, 1, 26, 13, 0]),
        # 13 buckets are full, so 29
        (list(range(0, 42, 3)), [39, 0, 3, 6, 9, 12, 15, 18, 21, 24, 27, 30, 33, 36]),
        # and 59
        (
            [7 * i % 40 for i in range(31)],
            [10, 3, 37, 8, 4, 30, 1, 23, 16, 9, 35, 6, 2, 28, 21]
            + [14, 7, 36, 0, 29, 11, 18, 25, 32, 39, 13, 20, 27, 34, 15, 22],
        ),
    ],
)
def test_unordered_set(inserted: list[int], visited: list[int]) -> None:
    assert libstdcxx.unordered_set(inserted) == visited


def test_sort_is_stable_up_to_sixteen() -> None:
    items = [(i % 3, i) for i in range(16)]
    libstdcxx.sort(items)
    assert [i for _, i in items] == [0, 3, 6, 9, 12, 15, 1, 4, 7, 10, 13, 2, 5, 8, 11, 14]


def test_sort_swaps_equals_beyond() -> None:
    items = [(i * i % 7, i) for i in range(40)]
    libstdcxx.sort(items)
    # fmt: off
    assert [i for _, i in items] == [
        0, 35, 28, 7, 21, 14, 1, 36, 34, 29, 27, 22, 20, 15, 13, 6, 8, 39, 38, 3,
        4, 32, 31, 25, 24, 10, 11, 18, 17, 23, 26, 9, 5, 30, 19, 33, 2, 37, 16, 12,
    ]
    # fmt: on


def test_sort_turns_to_heapsort_after_too_many_partitions() -> None:
    # Musser's sequence, halved to make equals: the median of three is a bad pivot each time.
    keys = [(i + 1 if i % 2 == 0 else 60 + i) // 2 for i in range(60)] + [i + 1 for i in range(60)]
    items = [(key, i) for i, key in enumerate(keys)]
    libstdcxx.sort(items)
    # fmt: off
    assert [i for _, i in items] == [
        0, 60, 2, 61, 4, 62, 6, 63, 8, 64, 10, 65, 12, 14, 66, 16, 67, 18, 68, 69,
        20, 22, 70, 24, 71, 72, 26, 28, 73, 30, 74, 75, 32, 76, 34, 77, 36, 38, 78, 79,
        40, 80, 42, 44, 81, 46, 82, 83, 48, 50, 84, 85, 52, 86, 54, 87, 56, 88, 58, 1,
        89, 90, 3, 91, 5, 92, 7, 93, 9, 94, 11, 95, 13, 15, 96, 97, 17, 98, 19, 99,
        21, 100, 23, 25, 101, 27, 102, 29, 103, 31, 104, 33, 105, 35, 106, 107, 37, 39, 108, 41,
        109, 43, 110, 45, 111, 47, 112, 113, 49, 51, 114, 53, 115, 116, 55, 117, 57, 59, 118, 119,
    ]
    # fmt: on
