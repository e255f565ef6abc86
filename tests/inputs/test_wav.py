"""WAV files of every kind."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest

from gossamer.errors import InputError
from gossamer.inputs.wav import is_wav, read_wav


def riff(*chunks: tuple[bytes, bytes], cut: int = 0) -> bytes:
    """A file of chunks; the last says that it has ``cut`` bytes more than there are."""
    body = b""
    for number, (name, content) in enumerate(chunks, 1):
        size = len(content) + (cut if number == len(chunks) else 0)
        body += name + struct.pack("<I", size) + content + b"\0" * (len(content) % 2)
    return b"RIFF" + struct.pack("<I", 4 + len(body)) + b"WAVE" + body


def form(kind: int, channels: int, bits: int, rate: int = 16000) -> tuple[bytes, bytes]:
    width = channels * bits // 8
    return b"fmt ", struct.pack("<HHIIHH", kind, channels, rate, rate * width, width, bits)


@pytest.mark.parametrize(
    ("kind", "bits", "raw", "expected"),
    [
        (1, 8, np.array([0, 128, 255], np.uint8), [-1, 0, 127 / 128]),
        (1, 16, np.array([-(2**15), 0, 2**14], "<i2"), [-1, 0, 0.5]),
        (1, 24, np.frombuffer(b"\x00\x00\x80\x00\x00\x00\xff\xff\x7f", np.uint8), [-1, 0, 1 - 2**-23]),
        (1, 32, np.array([-(2**31), 0, 2**30], "<i4"), [-1, 0, 0.5]),
        (3, 32, np.array([-1.5, 0, 0.25], "<f4"), [-1.5, 0, 0.25]),
        (3, 64, np.array([-1, 0, 0.1], "<f8"), [-1, 0, 0.1]),
    ],
)
def test_samples(kind: int, bits: int, raw: Any, expected: list[float]) -> None:
    data = (b"data", raw.tobytes())
    samples, rate = read_wav(riff(form(kind, 1, bits), data), "a.wav")
    assert (rate, samples.dtype, samples.tolist()) == (16000, np.float64, [[value] for value in expected])
    extensible = form(0xFFFE, 1, bits)[1] + struct.pack("<HHIH14s", 22, bits, 4, kind, b"")
    samples, _ = read_wav(riff((b"LIST", b"odd"), (b"fmt ", extensible), (b"fact", b"1234"), data), "a.wav")
    assert samples.tolist() == [[value] for value in expected]


def test_channels_and_what_is_cut_off() -> None:
    data = np.arange(6, dtype="<i2") << 12
    samples, _ = read_wav(riff(form(1, 2, 16), (b"data", data.tobytes()[:-2]), cut=0xF0000000), "a.wav")
    assert samples.tolist() == [[0, 0.125], [0.25, 0.375]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (riff(form(1, 1, 16)), "a damaged WAV file, without a format or without samples"),
        (riff((b"data", b"12")), "a damaged WAV file"),
        (riff(form(1, 0, 16), (b"data", b"12")), "a damaged WAV file"),
        (riff(form(1, 1, 16), (b"data", b"")), "the file holds no samples"),
        (riff(form(1, 1, 16), (b"data", b"1")), "the file holds no samples"),
        (riff(form(6, 1, 8), (b"data", b"12")), "samples of WAV format 6 with 8 bits; integers .format 1. of 8, 16"),
    ],
)
def test_what_cannot_be_read(content: bytes, message: str) -> None:
    assert is_wav(content)
    with pytest.raises(InputError, match=rf"a\.wav: {message}"):
        read_wav(content, "a.wav")
