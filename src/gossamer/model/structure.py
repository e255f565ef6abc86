"""Which bytes of a file decide what is made of it: its structure, which is all but the data of large buffers, and the
large constants whose values somebody looked at."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from zlib import crc32

import numpy as np

from gossamer.arrays import NDArray
from gossamer.model.model import Model

LARGE = 4096
"""Bytes of data that are weights. Smaller ones may be shapes, axes and other constants that decide what is made of a
model, and cost nothing to look at."""

Parts = tuple[tuple[int, int], ...]
"""Where the structure of a file lies: first bytes, and those after the last."""


def structure(model: Model) -> Parts:
    """Where the structure lies in the source of a model, in ascending order."""
    content = np.frombuffer(model.source or b"", np.uint8)
    start = content.ctypes.data
    weights = []
    for index in range(len(model.buffers)):
        data = model.buffer_data(index)
        if data is not None and data.size >= LARGE:
            place = data.ctypes.data - start
            weights.append((place, place + data.size))
    parts = []
    at = 0
    for place, end in (*sorted(weights), (content.size, content.size)):
        if at < place:
            parts.append((at, place))
        at = max(at, end)
    return tuple(parts)


def checksum(content: memoryview, parts: Iterable[tuple[int, int]]) -> int:
    """The CRC-32 of parts of a file."""
    check = 0
    for start, end in parts:
        check = crc32(content[start:end], check)
    return check


class Dependencies:
    """What everything that is kept of a file depends on: how it is stored, the ``checksum`` of its ``structure``, and
    the constants whose values were looked at (`add`). Those that kernels only read are read each time.

    ``key`` has the first two. Checksums are taken when bytes are looked at, so that `are_unchanged` can tell whether
    what was made of them may be kept.
    """

    def __init__(self, content: memoryview, identity: str, structure: Parts) -> None:
        self.structure = structure
        self.checksum = checksum(content, structure)
        self.key = f"{identity} {self.checksum}"
        self.constants: dict[tuple[int, int], int] = {}
        """The checksums of constants, by their places in the file."""
        self._content = content
        self._start = np.frombuffer(content, np.uint8).ctypes.data

    def add(self, data: NDArray[np.uint8] | None) -> None:
        """Note the bytes of a constant, before its values are looked at. What lies elsewhere was made of others."""
        if data is None or data.size < LARGE:
            return  # there is none, or it belongs to the structure
        place = data.ctypes.data - self._start
        part = (place, place + data.size)
        if place >= 0 and part[1] <= len(self._content) and part not in self.constants:
            self.constants[part] = checksum(self._content, (part,))

    def include(self, constants: Mapping[tuple[int, int], int]) -> bool:
        """Note constants that were looked at before. Whether they are what they were then, or else none is noted."""
        if not self._are(constants):
            return False
        self.constants.update(constants)
        return True

    def are_unchanged(self) -> bool:
        """Whether all bytes are still those that were looked at."""
        return checksum(self._content, self.structure) == self.checksum and self._are(self.constants)

    def _are(self, constants: Mapping[tuple[int, int], int]) -> bool:
        return all(checksum(self._content, (part,)) == check for part, check in constants.items())
