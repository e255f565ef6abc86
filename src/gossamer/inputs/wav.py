"""WAV files: samples as integers of 8, 16, 24 or 32 bits, or as floats of 32 or 64, with any number of channels.

The standard library's module ``wave`` reads no floats, and before Python 3.12 no extensible format, which recorders and
editors write.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.errors import InputError

_PCM, _FLOAT, _EXTENSIBLE = 1, 3, 0xFFFE
_FORMAT = struct.Struct("<HHIIHH")
"""Of the chunk ``fmt ``: format, channels, rate, bytes in a second, bytes in a frame, bits in a sample."""


def is_wav(content: bytes) -> bool:
    """Whether this is the beginning of a WAV file."""
    return content[:4] == b"RIFF" and content[8:12] == b"WAVE"


def read_wav(content: bytes, where: str) -> tuple[NDArray[np.float64], int]:
    """The samples [N, channels], integers divided by their greatest magnitude, and the rate in hertz.

    A chunk that says it goes on behind the end of the file ends there, as in what a program wrote into a pipe. Raises
    `InputError` for damaged files and for samples that are compressed.
    """
    kind = channels = rate = bits = 0
    position = 12
    while position + 8 <= len(content):
        name, size = struct.unpack_from("<4sI", content, position)
        body = content[position + 8 : position + 8 + size]
        if name == b"fmt " and len(body) >= _FORMAT.size:
            kind, channels, rate, _, _, bits = _FORMAT.unpack_from(body)
            if kind == _EXTENSIBLE and len(body) >= 26:
                (kind,) = struct.unpack_from("<H", body, 24)
        elif name == b"data":
            if not channels or not rate:
                break
            return _samples(body, kind, channels, bits, where), rate
        position += 8 + size + size % 2
    raise InputError(f"{where}: a damaged WAV file, without a format or without samples.")


def _samples(raw: bytes, kind: int, channels: int, bits: int, where: str) -> NDArray[np.float64]:
    if (kind, bits) not in ((_PCM, 8), (_PCM, 16), (_PCM, 24), (_PCM, 32), (_FLOAT, 32), (_FLOAT, 64)):
        raise InputError(
            f"{where}: samples of WAV format {kind} with {bits} bits; integers (format {_PCM}) of 8, 16, 24 or 32 bits "
            f"and floats (format {_FLOAT}) of 32 or 64 can be read."
        )
    width = bits // 8
    numbers = np.frombuffer(raw, np.uint8)[: len(raw) // (width * channels) * width * channels]
    if not numbers.size:
        raise InputError(f"{where}: the file holds no samples.")
    values: NDArray[Any]
    if kind == _FLOAT:
        values = numbers.view(f"<f{width}").astype(np.float64)
    elif width == 1:
        values = (numbers.astype(np.float64) - 128) / 128
    elif width == 3:
        padded = np.zeros((len(numbers) // 3, 4), np.uint8)
        padded[:, 1:] = numbers.reshape(-1, 3)
        values = padded.view("<i4").reshape(-1) / 2.0**31
    else:
        values = numbers.view(f"<i{width}") / 2.0 ** (8 * width - 1)
    return values.reshape(-1, channels)
