"""CRC-32C (Castagnoli), with which TensorFlow protects its checkpoints.

The checksum is linear over GF(2). So the data are cut into lanes whose checksums are computed side by side, two bytes
a step, and then joined in pairs: that of A before B is that of A, moved over as many zero bytes as B has, xor that of
B. Moving over zeros is a matrix of 32 x 32 bits, kept as the images of the four bytes of a register.

Long data are shortened before. The polynomial divides x^6777 + x^484 + x^100 + 1, and so the 64th power of it, whose
exponents are 64 times as large: a word of 64 bits may be taken away if it is added (xor) to those that are 6777 - 484,
6777 - 100 and 6777 words behind it. That is as many words at once as the nearest is away.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from gossamer.arrays import NDArray

POLYNOMIAL = 0x82F63B78
LANES = 4096
SHORT = 1024
"""Bytes that are not worth lanes."""
BEHIND = (6777 - 484, 6777 - 100, 6777)
"""Where a word of 64 bits is added when it is taken away, in words."""
BLOCKS = 8
"""Blocks of words that are copied at once, so that they stay in the cache."""
LONG = 32 * BEHIND[-1]
"""Bytes that are worth shortening."""


@lru_cache(maxsize=1)
def _tables() -> tuple[list[int], NDArray[np.uint32]]:
    """What a step of one byte and a step of two bytes make of the low end of the register."""
    one = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        one = np.where(one & 1, one >> 1 ^ np.uint32(POLYNOMIAL), one >> 1)
    half = np.arange(1 << 16, dtype=np.uint32)
    for _ in range(2):
        half = one[half & 255] ^ half >> 8
    return one.tolist(), half


def _apply(matrix: NDArray[np.uint32], registers: NDArray[np.uint32]) -> NDArray[np.uint32]:
    result: NDArray[np.uint32] = matrix[0][registers & 255]
    for byte in range(1, 4):
        result ^= matrix[byte][registers >> np.uint32(8 * byte) & 255]
    return result


@lru_cache(maxsize=128)
def _zeros(count: int) -> NDArray[np.uint32]:
    """The matrix of so many zero bytes: [4, 256], what each value of each byte becomes."""
    unit: NDArray[np.uint32] = np.arange(256, dtype=np.uint32) << (8 * np.arange(4, dtype=np.uint32))[:, None]
    if not count:
        return unit
    if count == 1:
        byte = np.array(_tables()[0], np.uint32)
        moved: NDArray[np.uint32] = byte[unit & 255] ^ unit >> 8
        return moved
    half = _zeros(count // 2)
    double = _apply(half, half)
    return _apply(_zeros(1), double) if count % 2 else double


def _shortened(words: NDArray[np.uint64], register: int) -> NDArray[np.uint64]:
    """Data that leave the empty register as ``words`` leave this one."""
    near, far = BEHIND[0], BEHIND[-1]
    window = np.zeros(far + BLOCKS * near, np.uint64)
    for start in range(0, words.size, BLOCKS * near):
        part = words[start : start + BLOCKS * near]
        window[far : far + part.size] = part
        if not start:
            window[far] ^= np.uint64(register)
        for place in range(0, part.size, near):
            block = window[place : min(place + near, part.size)]
            for distance in BEHIND:
                window[place + distance : place + distance + block.size] ^= block
        window[:far] = window[part.size : part.size + far].copy()
    return window[:far]


def _register(data: memoryview, register: int) -> int:
    """The register after the data."""
    if len(data) >= LONG:
        rest = len(data) % 8
        register = _register(data[:rest], register)
        short = _shortened(np.frombuffer(data[rest:], "<u8"), register)
        return _register(short.astype("<u8", copy=False).data.cast("B"), 0)
    if len(data) < SHORT:
        table = _tables()[0]
        for byte in data:
            register = table[(register ^ byte) & 255] ^ register >> 8
        return register
    lanes = min(LANES, 1 << (len(data) // 64).bit_length() - 1)
    rest = len(data) % (2 * lanes)
    register = _register(data[:rest], register)
    words = np.frombuffer(data[rest:], "<u2").reshape(lanes, -1)
    two = _tables()[1]
    registers = np.zeros(lanes, np.uint32)
    for step in range(words.shape[1]):
        registers = two[(registers ^ words[:, step]) & 0xFFFF] ^ registers >> 16
    size = 2 * words.shape[1]
    while registers.size > 1:
        registers = _apply(_zeros(size), registers[0::2]) ^ registers[1::2]
        size *= 2
    return int(_apply(_zeros(size), np.array([register], np.uint32))[0] ^ registers[0])


def crc32c(data: Buffer) -> int:
    """The checksum of the bytes: 0xE3069283 of ``b"123456789"``."""
    return _register(memoryview(data).cast("B"), 0xFFFFFFFF) ^ 0xFFFFFFFF


def joined(checksums: Sequence[int], sizes: Sequence[int]) -> int:
    """The checksum of data of which parts, one after the other, have these checksums and sizes in bytes."""
    behind: NDArray[np.int64] = np.cumsum([0, *sizes[:0:-1]], dtype=np.int64)[::-1]
    registers = np.array(checksums, np.uint32)
    for bit in range(int(behind[0]).bit_length()):
        some = behind >> bit & 1 > 0
        registers[some] = _apply(_zeros(1 << bit), registers[some])
    return int(np.bitwise_xor.reduce(registers))


def masked(checksum: int) -> int:
    """The form in which a checksum is stored next to data: rotated right by 15 bits, plus a constant."""
    return ((checksum >> 15 | checksum << 17) + 0xA282EAD8) & 0xFFFFFFFF


def unmasked(stored: int) -> int:
    """The checksum that is stored so."""
    rotated = stored - 0xA282EAD8 & 0xFFFFFFFF
    return (rotated << 15 | rotated >> 17) & 0xFFFFFFFF
