"""What the planners of one fixed arena share: buffers in, one by one, and a `Plan` out (TFLM's MicroMemoryPlanner)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from gossamer.errors import ArenaError
from gossamer.planner.planner import BufferRequest, Placement, Plan

ONLINE = -1
"""The offline offset of a buffer that the planner is to place; any other is where the buffer has to lie, in bytes."""

MAX_BYTES = 2**31 - 1
"""Sizes and offsets are C ints on the device."""


class MemoryPlanner(ABC):
    """Gives buffers, numbered from 0 as they are added, their places in one arena.

    On a device a planner keeps its tables in the arena that it plans: ``per_buffer_bytes`` for each buffer. With
    ``preserves_all_tensors`` no two buffers share bytes, so that every tensor can be read after an invocation.
    """

    name: ClassVar[str]
    per_buffer_bytes: ClassVar[int] = 0
    preserves_all_tensors: ClassVar[bool] = False

    def __init__(self) -> None:
        self.init()

    def init(self, scratch_bytes: int | None = None) -> None:
        """Forget all buffers. ``scratch_bytes`` is the room for the planner's own tables, ``None`` without a limit."""
        self.max_buffers: int | None = None
        if scratch_bytes is not None and self.per_buffer_bytes:
            self.max_buffers = scratch_bytes // self.per_buffer_bytes
        self.requests: list[BufferRequest] = []
        self.offline_offsets: list[int] = []
        self._plan: Plan | None = None

    def add_buffer(self, size: int, first_use: int, last_use: int, offline_offset: int = ONLINE) -> int:
        """Add a buffer of ``size`` bytes that must hold from step ``first_use`` to ``last_use``; return its number.

        Nothing is rounded or aligned here. Raises `ArenaError` for one buffer too many and for what no C int holds.
        """
        number = len(self.requests)
        if self.max_buffers is not None and number >= self.max_buffers:
            raise ArenaError(f"too many buffers: the planner has room for {self.max_buffers}")
        if not 0 <= size <= MAX_BYTES:
            raise ArenaError(f"buffer {number} has {size} bytes; allowed are 0 to {MAX_BYTES}")
        if not (offline_offset == ONLINE or 0 <= offline_offset <= MAX_BYTES):
            raise ArenaError(f"buffer {number} has offline offset {offline_offset}; allowed are {ONLINE} and above")
        self.requests.append(BufferRequest(number, size, first_use, last_use))
        self.offline_offsets.append(offline_offset)
        self._plan = None
        return number

    def plan(self) -> Plan:
        """The places of all buffers, in the order in which they were added.

        Offsets planned offline are taken as they are, even where they overlap: whoever planned them knows why.
        """
        if self._plan is None:
            offsets = self._offsets()
            placements = tuple(map(Placement, offsets, self.requests))
            size = max((placement.end for placement in placements), default=0)
            self._plan = Plan(f"{self.name} plan", size, placements)
        return self._plan

    @abstractmethod
    def _offsets(self) -> Sequence[int]:
        """The offset of each of ``requests``."""
