"""Memory besides the arena for tensors that are decompressed (MicroContext::SetDecompressionMemory)."""

from __future__ import annotations

import numpy as np

from gossamer.micro.abi import align_up
from gossamer.micro.allocator import Memory
from gossamer.micro.arena import ALIGNMENT


class DecompressionMemory:
    """A region of bytes from which every operator takes anew what fits. Tensors of different operators lie over each
    other: each is decompressed for the operator that takes it."""

    def __init__(self, region: int | Memory) -> None:
        self.region = np.zeros(region, np.uint8) if isinstance(region, int) else region
        self.used = 0

    def allocate(self, size: int) -> Memory | None:
        """So many bytes, or ``None`` if they do not fit."""
        start = align_up(self.used, ALIGNMENT)
        if start + size > self.region.size:
            return None
        self.used = start + size
        return self.region[start : start + size]

    def reset(self) -> None:
        """Begin again."""
        self.used = 0
