"""A planner that tries orders until the arena is as small as it can be: never larger than the greedy planner's.

First fit finds the best plan there is if the buffers come in the right order. Four orders are good to begin with, the
greedy planner's among them. From each, the buffers that stick out of the best arena so far go to the front, and so on,
until no more bytes are needed than are alive at once, an order comes up again, or the effort is spent. Nothing depends
on chance or time, so that a model has one plan.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate

from gossamer.planner.greedy import first_fit, greedy_order
from gossamer.planner.memory_planner import ONLINE, MemoryPlanner
from gossamer.planner.planner import BufferRequest

EFFORT = 4_000_000
"""Pairs of buffers that are compared in all, about half a second on a PC."""

ROUNDS = 200
"""Orders that are tried from each beginning."""


class SearchMemoryPlanner(MemoryPlanner):
    """Finds the lower bound for most models. It runs on a PC; a device obeys its plan if the model carries it.

    What was planned offline stays where it is, and the others get the greedy plan around it.
    """

    name = "searched"

    def _offsets(self) -> list[int]:
        online = [ONLINE] * len(self.requests)
        best = first_fit(self.requests, self.offline_offsets, greedy_order(self.requests, self.offline_offsets))
        if self.offline_offsets != online:
            return best
        bound, height = max(_alive(self.requests).values(), default=0), _height(self.requests, best)
        effort = EFFORT // (len(self.requests) ** 2 + 1)
        for order in _beginnings(self.requests):
            tried: set[tuple[int, ...]] = set()
            while bound < height and effort > 0 and len(tried) < ROUNDS and order not in tried:
                tried.add(order)
                effort -= 1
                offsets = first_fit(self.requests, online, order)
                if _height(self.requests, offsets) < height:
                    best, height = offsets, _height(self.requests, offsets)
                # Sorting is stable: both halves keep their order.
                order = tuple(sorted(order, key=lambda i: offsets[i] + self.requests[i].size < height))
        return best


def _height(requests: Sequence[BufferRequest], offsets: Sequence[int]) -> int:
    return max((offset + request.size for offset, request in zip(offsets, requests, strict=True)), default=0)


def _alive(requests: Sequence[BufferRequest]) -> dict[int, int]:
    """The bytes alive at each step at which a buffer begins or has ended."""
    change = Counter[int]()
    for request in requests:
        change[request.first_use] += request.size
        change[request.last_use + 1] -= request.size
    steps = sorted(change)
    return dict(zip(steps, accumulate(change[step] for step in steps), strict=True))


def _beginnings(requests: Sequence[BufferRequest]) -> Iterator[tuple[int, ...]]:
    by_size = greedy_order(requests, [ONLINE] * len(requests))
    alive = _alive(requests)
    yield tuple(by_size)
    yield tuple(sorted(by_size, key=lambda i: requests[i].first_use - requests[i].last_use))
    yield tuple(sorted(by_size, key=lambda i: -alive[requests[i].first_use]))
    yield tuple(sorted(by_size, key=lambda i: requests[i].first_use))
