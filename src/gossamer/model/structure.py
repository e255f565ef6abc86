"""The structure of a file, all of its bytes but the data of large buffers: who has read it knows it by a checksum."""

from __future__ import annotations

from collections.abc import Iterable
from zlib import crc32

import numpy as np

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
