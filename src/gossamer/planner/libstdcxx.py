"""The order in which LiteRT's Linux builds visit tensors that its planner calls equal.

TFLite collects the tensors of a node in a std::unordered_set and sorts them with std::sort, which is not stable.
Tensors of one node with equal bytes, such as the two accumulators of SVDF, therefore lie in an order that TFLite's
source does not give: it follows from GNU's C++ library. Builds with another one (macOS, Windows) may swap them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import TypeVar

Item = TypeVar("Item")

# Bucket counts of std::unordered_set as it grows from empty: each at least doubled, from the library's table of primes.
_BUCKETS = (13, 29, 59, 127, 257, 541, 1109, 2357, 5087, 10273, 20753, 42043, 85229, 172933, 351061, 712697, 1447153)
# std::sort leaves runs of up to this length to a final insertion sort.
_RUN = 16


def unordered_set(values: Sequence[int]) -> list[int]:
    """The iteration order of a std::unordered_set of non-negative ints after inserting ``values``, all different."""
    order: list[int] = []
    coming = iter(values)
    for buckets in _BUCKETS:
        # A full set is rehashed: the old members are inserted again, in their order, among more buckets.
        chains: dict[int, list[int]] = {}
        for value in (*order, *islice(coming, buckets - len(order))):
            chains.setdefault(value % buckets, []).append(value)
        # A new chain starts at the front of the list, and a new value at the front of its chain.
        order = [value for chain in reversed(chains.values()) for value in reversed(chain)]
        if len(order) == len(values):
            break
    return [*order, *coming]


def sort(items: list[tuple[int, Item]]) -> None:
    """Sort by the first member, in place, leaving equals as std::sort does (introsort)."""
    segments = [(0, len(items), 2 * (len(items).bit_length() - 1))]
    while segments:
        first, last, depth = segments.pop()
        while last - first > _RUN:
            if depth == 0:
                items[first:last] = _heapsort(items[first:last])
                break
            depth -= 1
            cut = _partition(items, first, last)
            segments.append((cut, last, depth))
            last = cut
    # The final insertion sort is stable.
    items.sort(key=_key)


def _key(item: tuple[int, object]) -> int:
    return item[0]


def _heapsort(heap: list[tuple[int, Item]]) -> list[tuple[int, Item]]:
    for parent in range(len(heap) // 2 - 1, -1, -1):
        _sink(heap, parent, len(heap), heap[parent])
    for end in range(len(heap) - 1, 0, -1):
        item, heap[end] = heap[end], heap[0]
        _sink(heap, 0, end, item)
    return heap


def _sink(heap: list[tuple[int, Item]], top: int, length: int, item: tuple[int, Item]) -> None:
    # The hole at the top goes down to a leaf along the greater children, then up again to where the item belongs.
    hole = top
    while (child := 2 * hole + 2) <= length:
        if child == length or heap[child][0] < heap[child - 1][0]:
            child -= 1
        heap[hole] = heap[child]
        hole = child
    while hole > top and heap[(hole - 1) // 2][0] < item[0]:
        heap[hole] = heap[(hole - 1) // 2]
        hole = (hole - 1) // 2
    heap[hole] = item


def _partition(items: list[tuple[int, Item]], first: int, last: int) -> int:
    # The median of three becomes the pivot, at the front; a cut between the lesser and the greater is returned.
    low, middle, high = first + 1, first + (last - first) // 2, last - 1
    a, b, c = items[low][0], items[middle][0], items[high][0]
    if a < b:
        median = middle if b < c else high if a < c else low
    else:
        median = low if a < c else high if b < c else middle
    items[first], items[median] = items[median], items[first]
    pivot = items[first][0]
    while True:
        while items[low][0] < pivot:
            low += 1
        while pivot < items[high][0]:
            high -= 1
        if low >= high:
            return low
        items[low], items[high] = items[high], items[low]
        low += 1
        high -= 1
