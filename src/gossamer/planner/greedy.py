"""TFLite Micro's memory planner, byte for byte: large buffers first, each into the first gap that holds it.

Source of the rules: greedy_memory_planner.cc of TFLite Micro. Buffers that were planned offline come first, in the
order in which they were added; then the others by falling size, of equal ones the last added first. Each is placed at
the lowest offset where it is alone while it lives.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Sequence
from itertools import chain
from operator import itemgetter

import numpy as np

from gossamer.planner.memory_planner import ONLINE, MemoryPlanner
from gossamer.planner.planner import BufferRequest

_Placed = tuple[int, int, int, int]  # first byte, byte after the last, first use, last use
_offset = itemgetter(0)
# From so many buffers on, those that are placed are searched on arrays.
_MANY = 1000


class GreedyMemoryPlanner(MemoryPlanner):
    """TFLite Micro's default planner."""

    name = "greedy"
    # sizeof(BufferRequirements) = 16, two ints to sort by, a ListEntry of 12 and the offset.
    per_buffer_bytes = 40

    def _offsets(self) -> list[int]:
        return first_fit(self.requests, self.offline_offsets, greedy_order(self.requests, self.offline_offsets))


def greedy_order(requests: Sequence[BufferRequest], offline_offsets: Sequence[int]) -> list[int]:
    """The buffers that are not planned offline, by falling size, of equal ones the last first."""
    online = [i for i in reversed(range(len(requests))) if offline_offsets[i] == ONLINE]
    return sorted(online, key=lambda i: -requests[i].size)


def first_fit(requests: Sequence[BufferRequest], offline_offsets: Sequence[int], order: Iterable[int]) -> list[int]:
    """The offset of each request if those of ``order`` are placed in this order, after those planned offline."""
    if len(requests) >= _MANY:
        return _first_fit_of_many(requests, offline_offsets, order)
    offsets = list(offline_offsets)
    placed: list[_Placed] = []  # by offset; of equal ones the earlier first
    for i, offset in enumerate(offsets):
        if offset != ONLINE:
            _, size, first_use, last_use, _ = requests[i]
            insort(placed, (offset, offset + size, first_use, last_use), key=_offset)
    for i in order:
        _, size, first_use, last_use, _ = requests[i]
        offset = 0
        for start, end, first, last in placed:
            if first <= last_use and first_use <= last:
                if start - offset >= size:
                    break
                if end > offset:
                    offset = end
        offsets[i] = offset
        insort(placed, (offset, offset + size, first_use, last_use), key=_offset)
    return offsets


def _first_fit_of_many(
    requests: Sequence[BufferRequest], offline_offsets: Sequence[int], order: Iterable[int]
) -> list[int]:
    # The same on arrays, or a file with very many tensors would take minutes.
    offsets = list(offline_offsets)
    placed = np.empty((4, len(requests)), np.int64)
    offline = (i for i, offset in enumerate(offline_offsets) if offset != ONLINE)
    for count, i in enumerate(chain(offline, order)):
        _, size, first_use, last_use, _ = requests[i]
        starts, ends, firsts, lasts = placed[:, :count]
        if offsets[i] == ONLINE:
            alive = np.flatnonzero((firsts <= last_use) & (first_use <= lasts))
            floors = np.concatenate([[0], np.maximum.accumulate(ends[alive])])
            gaps = np.flatnonzero(starts[alive] - floors[:-1] >= size)
            offsets[i] = int(floors[gaps[0] if gaps.size else -1])
        at = int(np.searchsorted(starts, offsets[i], "right"))
        placed[:, at + 1 : count + 1] = placed[:, at:count]
        placed[:, at] = offsets[i], offsets[i] + size, first_use, last_use
    return offsets
