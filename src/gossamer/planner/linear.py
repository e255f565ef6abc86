"""TFLite Micro's planner that lays every buffer behind the one before, so that none is ever overwritten."""

from __future__ import annotations

from itertools import accumulate

from gossamer.errors import ArenaError
from gossamer.planner.memory_planner import ONLINE, MemoryPlanner

MAX_BUFFERS = 1024


class LinearMemoryPlanner(MemoryPlanner):
    """The planner behind ``preserve_all_tensors``. It keeps room for its table in itself, and knows no offline plan."""

    name = "linear"
    preserves_all_tensors = True

    def add_buffer(self, size: int, first_use: int, last_use: int, offline_offset: int = ONLINE) -> int:
        """As `MemoryPlanner.add_buffer`. Raises `ArenaError` for an offline offset, and for buffer 1025."""
        if offline_offset != ONLINE:
            raise ArenaError("a linear plan has no place for offsets that were planned offline")
        if len(self.requests) >= MAX_BUFFERS:
            raise ArenaError(f"too many buffers: the planner has room for {MAX_BUFFERS}")
        return super().add_buffer(size, first_use, last_use)

    def _offsets(self) -> list[int]:
        return list(accumulate((request.size for request in self.requests), initial=0))[:-1]
