"""PNG files of 16 bits, of which Pillow decodes only gray ones (PNG specification, second edition, 2003)."""

from __future__ import annotations

import struct
import zlib

import numpy as np

from gossamer.flex.kernels import Array, Call
from gossamer.flex.kernels._checks import checked_shape

_CHANNELS = {0: 1, 2: 3, 4: 2, 6: 4}


def deep_png(call: Call, content: bytes) -> Array:
    """uint16 [height, width, channels] of a file of 16 bits without interlacing; checksums are not looked at."""
    header, data, at = b"", [], 8
    while at + 8 <= len(content):
        size, kind = int.from_bytes(content[at : at + 4], "big"), content[at + 4 : at + 8]
        if kind == b"IHDR":
            header = content[at + 8 : at + 8 + size]
        elif kind == b"IDAT":
            data.append(content[at + 8 : at + 8 + size])
        at += size + 12
    call.require(len(header) >= 13, "the PNG has no header")
    width, height, _, colour, _, _, interlaced = struct.unpack(">IIBBBBB", header[:13])
    call.require(not interlaced and colour in _CHANNELS, "PNGs of 16 bits must not be interlaced here")
    step = 2 * _CHANNELS[colour]
    checked_shape(call, [height, width, step])
    needed = height * (width * step + 1)
    try:
        raw = zlib.decompressobj().decompress(b"".join(data), needed)
    except zlib.error as error:
        call.fail(f"the PNG cannot be decoded ({error})")
    call.require(len(raw) == needed and needed, f"the PNG has {len(raw)} bytes of {needed}")
    rows = np.frombuffer(raw, np.uint8).reshape(height, -1)
    result = np.zeros((height, width, step), np.uint8)
    above = np.zeros((width, step), np.uint8)
    for n, row in enumerate(rows):
        call.poll()
        call.require(row[0] <= 4, f"a row of the PNG has filter {row[0]}")
        above = result[n] = _unfiltered(int(row[0]), row[1:].reshape(width, step), above)
    return result.view(">u2").astype(np.uint16)


def _unfiltered(filter: int, row: Array, above: Array) -> Array:
    """A row [pixels, bytes] without its filter: none, left, above, the mean of both, or Paeth's choice."""
    if filter < 2:
        return np.cumsum(row, 0, dtype=np.uint8) if filter else row
    if filter == 2:
        return row + above
    step = row.shape[1]
    over = [0] * step + above.reshape(-1).tolist()
    found = [0] * step
    for n, value in enumerate(row.reshape(-1).tolist()):
        left, up = found[n], over[n + step]
        guess = (left + up) // 2 if filter == 3 else _paeth(left, up, over[n])
        found.append((value + guess) & 255)
    return np.array(found[step:], np.uint8).reshape(row.shape)


def _paeth(left: int, up: int, corner: int) -> int:
    """Of the three the nearest to ``left + up - corner``."""
    a, b, c = abs(up - corner), abs(left - corner), abs(left + up - 2 * corner)
    return left if a <= b and a <= c else up if b <= c else corner
