"""The words that every planner shares: who asks for bytes and when, and the `Plan` that answers with offsets."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Mapping
from enum import IntEnum
from heapq import heappop, heappush
from typing import Any, NamedTuple

from gossamer.errors import ArenaError
from gossamer.records import record

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

    ``buffer`` is its number, usually a tensor index. ``shares`` is the number of another buffer, alive all the while,
    in whose bytes this one lies on purpose.
    """

    buffer: int
    size: int
    first_use: int
    last_use: int = NEVER
    shares: int | None = None


class Placement(NamedTuple):
    """A request and its first byte in the arena."""

    offset: int
    request: BufferRequest

    @property
    def end(self) -> int:
        """The byte after the last."""
        return self.offset + self.request.size

    def __str__(self) -> str:
        last = "the end" if self.request.last_use == NEVER else f"node {self.request.last_use}"
        return (
            f"buffer {self.request.buffer} (bytes {self.offset} to {self.end}, node {self.request.first_use} to {last})"
        )


@record(frozen=True)
class Plan:
    """Where the buffers of one arena lie. ``size`` is the bytes of the arena, ``alignment`` that of every offset."""

    arena: str
    size: int
    placements: tuple[Placement, ...]
    alignment: int = 1

    @property
    def offsets(self) -> dict[int, int]:
        """The offset in bytes of each buffer, by its number."""
        return {request.buffer: offset for offset, request in self.placements}

    def check(self) -> None:
        """Raise `ArenaError`, naming the buffers, unless this plan can be run.

        Every buffer must lie within the arena, be aligned, and be alone in its bytes while it lives; one that shares
        must lie within the buffer that it names, in bytes and in time.
        """
        placed = {placement.request.buffer: placement for placement in self.placements}
        if len(placed) != len(self.placements):
            raise self._error("a buffer occurs twice")
        for placement in self.placements:
            request = placement.request
            if placement.offset < 0 or placement.end > self.size:
                raise self._error(f"{placement} lies outside the arena of {self.size} bytes")
            if placement.offset % self.alignment:
                raise self._error(f"{placement} is not aligned to {self.alignment} bytes")
            if request.last_use < request.first_use:
                raise self._error(f"{placement} is freed before it is used")
            if request.shares is not None:
                owner = placed.get(request.shares)
                if owner is None or owner.request.shares is not None:
                    raise self._error(f"{placement} shares buffer {request.shares}, which has no bytes of its own")
                inside = owner.offset <= placement.offset and placement.end <= owner.end
                if not inside or not _covers(owner.request, request):
                    raise self._error(f"{placement} is not within {owner}, which it shares")
        self._check_alone()

    def _check_alone(self) -> None:
        # Buffers enter in order of first use. What is alive never overlaps, so a newcomer can only meet its neighbours.
        live: list[Placement] = []  # by offset
        leaving: list[tuple[int, Placement]] = []  # a heap, by last use
        for placement in sorted(self.placements, key=lambda placement: placement.request.first_use):
            request = placement.request
            if request.shares is not None or not request.size:
                continue
            while leaving and leaving[0][0] < request.first_use:
                live.remove(heappop(leaving)[1])
            at = bisect(live, placement)
            for other in live[max(at - 1, 0) : at + 1]:
                if placement.offset < other.end and other.offset < placement.end:
                    raise self._error(f"{other} overlaps {placement}")
            live.insert(at, placement)
            heappush(leaving, (request.last_use, placement))

    def lower_bound(self) -> int:
        """The most bytes alive at once: no planner can do with less. Shared bytes count once, padding does not."""
        change: dict[int, int] = {}
        for _, request in self.placements:
            if request.shares is None:
                change[request.first_use] = change.get(request.first_use, 0) + request.size
                change[request.last_use + 1] = change.get(request.last_use + 1, 0) - request.size
        live = most = 0
        for node in sorted(change):
            live += change[node]
            most = max(most, live)
        return most

    def describe(self, names: Mapping[int, str] | None = None) -> str:
        """The plan as a table for people, by offset; ``names`` gives names to buffer numbers."""
        rows = [("buffer", "offset", "bytes", "nodes", "")]
        for offset, request in sorted(self.placements):
            last = "end" if request.last_use == NEVER else request.last_use
            notes = [names[request.buffer]] if names and request.buffer in names else []
            if request.shares is not None:
                notes.append(f"in the bytes of {request.shares}")
            nodes = f"{request.first_use}..{last}"
            rows.append((str(request.buffer), str(offset), str(request.size), nodes, ", ".join(notes)))
        widths = [max(len(row[column]) for row in rows) for column in range(4)]
        title = (
            f"{self.arena}: {self.size} bytes for {len(self.placements)} buffers, at least {self.lower_bound()} needed"
        )
        table = ["  ".join([*map(str.rjust, row[:4], widths), row[4]]).rstrip() for row in rows]
        return "\n".join([title, *table])

    def to_json(self) -> dict[str, Any]:
        """The plan as plain values: bytes, and nodes in execution order; ``last_use`` is None for "to the end"."""
        buffers = [
            {
                "buffer": request.buffer,
                "offset": offset,
                "bytes": request.size,
                "first_use": request.first_use,
                "last_use": None if request.last_use == NEVER else request.last_use,
                "shares": request.shares,
            }
            for offset, request in self.placements
        ]
        return {
            "arena": self.arena,
            "bytes": self.size,
            "lower_bound": self.lower_bound(),
            "alignment": self.alignment,
            "buffers": buffers,
        }

    def _error(self, problem: str) -> ArenaError:
        return ArenaError(f"{self.arena}: {problem}")


def _covers(owner: BufferRequest, request: BufferRequest) -> bool:
    return owner.first_use <= request.first_use and request.last_use <= owner.last_use
