"""The words that every planner shares: who asks for bytes and when, and the `Plan` that answers with offsets."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from heapq import heappop, heappush
from typing import Any, NamedTuple

from gossamer.errors import ArenaError

NEVER = 2**31 - 1
"""A node that does not come: the last use of a buffer that is kept to the end, the first use of one never written."""


class AllocationType(IntEnum):
    """Who owns the memory of a tensor, with the numbers of TFLite's TfLiteAllocationType."""

    MEM_NONE = 0
    MMAP_RO = 1
    ARENA_RW = 2
    ARENA_RW_PERSISTENT = 3
    DYNAMIC = 4
    PERSISTENT_RO = 5
    CUSTOM = 6
    VARIANT_OBJECT = 7
    NON_CPU = 8


class BufferRequest(NamedTuple):
    """A buffer of ``size`` bytes that must hold from node ``first_use`` to node ``last_use``, both included.

    ``index`` is the name of the buffer, usually a tensor index. ``shares`` names a buffer, alive all the while, in
    whose bytes this one lies on purpose.
    """

    index: int
    size: int
    first_use: int
    last_use: int = NEVER
    shares: int | None = None


@dataclass(frozen=True)
class Plan:
    """Where the buffers of one arena lie: ``offsets[i]`` is the first byte of ``requests[i]``, ``size`` all bytes."""

    arena: str
    size: int
    requests: tuple[BufferRequest, ...]
    offsets: tuple[int, ...]
    alignment: int = 1

    def offset(self, index: int) -> int:
        """The offset in bytes of the buffer called ``index``; `KeyError` if the plan does not hold it."""
        for request, offset in zip(self.requests, self.offsets):
            if request.index == index:
                return offset
        raise KeyError(index)

    def check(self) -> None:
        """Raise `ArenaError`, naming the buffers, unless this plan can be run.

        Every buffer must lie within the arena, be aligned, and be alone in its bytes while it lives; one that shares
        must lie within the buffer that it names, in bytes and in time.
        """
        if len(self.offsets) != len(self.requests):
            raise ArenaError(f"{self.arena}: {len(self.requests)} buffers but {len(self.offsets)} offsets")
        placed = {request.index: (request, offset) for request, offset in zip(self.requests, self.offsets)}
        if len(placed) != len(self.requests):
            raise ArenaError(f"{self.arena}: a buffer occurs twice in the plan")
        for request, offset in placed.values():
            if offset < 0 or offset + request.size > self.size:
                raise ArenaError(f"{self._span(request, offset)} lies outside the {self.size} bytes of the arena")
            if offset % self.alignment:
                raise ArenaError(f"{self._span(request, offset)} is not aligned to {self.alignment} bytes")
            if request.last_use < request.first_use:
                raise ArenaError(f"{self._span(request, offset)} is freed before it is used")
            if request.shares is not None:
                if request.shares not in placed:
                    raise ArenaError(f"{self._span(request, offset)} shares buffer {request.shares}, which has no place")
                owner, start = placed[request.shares]
                within = start <= offset and offset + request.size <= start + owner.size
                alive = owner.first_use <= request.first_use and request.last_use <= owner.last_use
                if owner.shares is not None or not within or not alive:
                    raise ArenaError(f"{self._span(request, offset)} is not within {self._span(owner, start)}")
        self._check_alone()

    def _check_alone(self) -> None:
        # Buffers enter in order of first use. What is alive never overlaps, so only the neighbours of a newcomer can.
        live: list[tuple[int, int, int]] = []  # (offset, end, position), by offset
        leaving: list[tuple[int, tuple[int, int, int]]] = []  # a heap of (last use, the same)
        order = sorted(
            (request.first_use, position)
            for position, request in enumerate(self.requests)
            if request.shares is None and request.size
        )
        for first_use, position in order:
            while leaving and leaving[0][0] < first_use:
                live.remove(heappop(leaving)[1])
            offset = self.offsets[position]
            entry = (offset, offset + self.requests[position].size, position)
            at = bisect(live, entry)
            for other in live[max(at - 1, 0) : at + 1]:
                if entry[0] < other[1] and other[0] < entry[1]:
                    first, second = sorted((other[2], position))
                    raise ArenaError(
                        f"{self._span(self.requests[first], self.offsets[first])} overlaps "
                        f"{self._span(self.requests[second], self.offsets[second])}"
                    )
            live.insert(at, entry)
            heappush(leaving, (self.requests[position].last_use, entry))

    def lower_bound(self) -> int:
        """The most bytes alive at once: no planner can do with less. Shared bytes count once, padding does not."""
        change: dict[int, int] = {}
        for request in self.requests:
            if request.shares is None:
                change[request.first_use] = change.get(request.first_use, 0) + request.size
                change[request.last_use + 1] = change.get(request.last_use + 1, 0) - request.size
        live = most = 0
        for node in sorted(change):
            live += change[node]
            most = max(most, live)
        return most

    def describe(self, names: Mapping[int, str] | Sequence[str] = ()) -> str:
        """The plan as a table for people, by offset and time; ``names`` gives names to buffer indices."""
        rows = [("buffer", "offset", "bytes", "nodes", "")]
        for offset, request in sorted(zip(self.offsets, self.requests)):
            last = "end" if request.last_use == NEVER else str(request.last_use)
            notes = [] if request.shares is None else [f"in the bytes of {request.shares}"]
            known = request.index in names if isinstance(names, Mapping) else request.index < len(names)
            if known:
                notes.insert(0, names[request.index])
            nodes = f"{request.first_use}..{last}"
            rows.append((str(request.index), str(offset), str(request.size), nodes, ", ".join(notes)))
        widths = [max(map(len, column)) for column in zip(*rows)]
        lines = [f"{self.arena}: {self.size} bytes for {len(self.requests)} buffers; at least {self.lower_bound()} needed"]
        for row in rows:
            cells = [cell.rjust(width) for cell, width in zip(row[:4], widths)]
            lines.append("  ".join([*cells, row[4]]).rstrip())
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """The plan as plain values: bytes, and nodes in execution order; ``last_use`` is None for "to the end"."""
        return {
            "arena": self.arena,
            "bytes": self.size,
            "lower_bound": self.lower_bound(),
            "alignment": self.alignment,
            "buffers": [
                {
                    "index": request.index,
                    "offset": offset,
                    "bytes": request.size,
                    "first_use": request.first_use,
                    "last_use": None if request.last_use == NEVER else request.last_use,
                    "shares": request.shares,
                }
                for request, offset in zip(self.requests, self.offsets)
            ],
        }

    def _span(self, request: BufferRequest, offset: int) -> str:
        last = "the end" if request.last_use == NEVER else f"node {request.last_use}"
        return (
            f"{self.arena}: buffer {request.index} (bytes {offset} to {offset + request.size}, "
            f"node {request.first_use} to {last})"
        )
