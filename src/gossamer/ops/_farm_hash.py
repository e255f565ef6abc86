"""FarmHash's Fingerprint64 (Geoff Pike, Google), over many keys of one length at a time.

The function is part of the format of models that hash: it never changes. All arithmetic is modulo 2**64.
"""

from __future__ import annotations

import numpy as np

from gossamer.arrays import NDArray
from gossamer.ops.op_def import Array

Words = NDArray[np.uint64]

_K0 = np.uint64(0xC3A5C85C97CB3127)
_K1 = np.uint64(0xB492B66FBE98F273)
_K2 = np.uint64(0x9AE16A3B2F90404F)
_SEED = 81
_MASK = (1 << 64) - 1


def fingerprint64(keys: NDArray[np.uint8]) -> Words:
    """The fingerprint of every row of ``keys`` [n, bytes]."""
    length = keys.shape[1]
    if length < 4:
        return _0_to_3(keys)
    if length > 64:
        return _long(keys)
    multiplier = _K2 + _word(2 * length)
    if length > 32:
        return _33_to_64(keys, multiplier)
    if length > 16:
        return _17_to_32(keys, multiplier)
    return _4_to_16(keys, multiplier)


def signs_of_hashes(seeds: NDArray[np.float32], rows: NDArray[np.uint8], weights: Array | None) -> NDArray[np.bool_]:
    """For each seed of a vector, whether the sum over rows of weights (1 if left out) times hashes is more than 0: in
    float64, of the fingerprints of the seed's bytes and the row's as integers with a sign."""
    keys = np.empty((seeds.size, rows.shape[0], 4 + rows.shape[1]), np.uint8)
    keys[:, :, :4] = seeds.view(np.uint8).reshape(-1, 1, 4)
    keys[:, :, 4:] = rows
    hashes = fingerprint64(keys.reshape(-1, keys.shape[2])).view(np.int64).astype(np.float64)
    terms = hashes.reshape(keys.shape[:2])
    if weights is not None:
        terms = terms * weights
    scores: NDArray[np.float64] = terms.cumsum(1)[:, -1]
    return np.greater(scores, 0)


def _word(value: int) -> np.uint64:
    word: np.uint64 = np.uint64(value & _MASK)
    return word


def _fetch(keys: NDArray[np.uint8], start: int, size: int = 8) -> Words:
    """A little-endian word of every key."""
    word: Words = np.ascontiguousarray(keys[:, start : start + size]).view(f"<u{size}")[:, 0].astype(np.uint64)
    return word


def _rotate(value: Words, bits: int) -> Words:
    rotated: Words = (value >> np.uint64(bits)) | (value << np.uint64(64 - bits))
    return rotated


def _mix(value: Words) -> Words:
    mixed: Words = value ^ (value >> np.uint64(47))
    return mixed


def _joined(u: Words, v: Words, multiplier: Words | np.uint64) -> Words:
    a = _mix((u ^ v) * multiplier)
    joined: Words = _mix((v ^ a) * multiplier) * multiplier
    return joined


def _0_to_3(keys: NDArray[np.uint8]) -> Words:
    length = keys.shape[1]
    if not length:
        return np.full(len(keys), _K2)
    first, middle, last = (keys[:, place].astype(np.uint64) for place in (0, length >> 1, length - 1))
    y, z = first + (middle << np.uint64(8)), _word(length) + (last << np.uint64(2))
    return _mix((y * _K2) ^ (z * _K0)) * _K2


def _4_to_16(keys: NDArray[np.uint8], multiplier: np.uint64) -> Words:
    length = keys.shape[1]
    if length >= 8:
        a, b = _fetch(keys, 0) + _K2, _fetch(keys, length - 8)
        return _joined(_rotate(b, 37) * multiplier + a, (_rotate(a, 25) + b) * multiplier, multiplier)
    a, b = _fetch(keys, 0, 4), _fetch(keys, length - 4, 4)
    return _joined(_word(length) + (a << np.uint64(3)), b, multiplier)


def _17_to_32(keys: NDArray[np.uint8], multiplier: np.uint64) -> Words:
    length = keys.shape[1]
    a, b = _fetch(keys, 0) * _K1, _fetch(keys, 8)
    c, d = _fetch(keys, length - 8) * multiplier, _fetch(keys, length - 16) * _K2
    return _joined(_rotate(a + b, 43) + _rotate(c, 30) + d, a + _rotate(b + _K2, 18) + c, multiplier)


def _33_to_64(keys: NDArray[np.uint8], multiplier: np.uint64) -> Words:
    length = keys.shape[1]
    a, b = _fetch(keys, 0) * _K2, _fetch(keys, 8)
    c, d = _fetch(keys, length - 8) * multiplier, _fetch(keys, length - 16) * _K2
    y = _rotate(a + b, 43) + _rotate(c, 30) + d
    z = _joined(y, a + _rotate(b + _K2, 18) + c, multiplier)
    e, f = _fetch(keys, 16) * multiplier, _fetch(keys, 24)
    g = (y + _fetch(keys, length - 32)) * multiplier
    h = (z + _fetch(keys, length - 24)) * multiplier
    return _joined(_rotate(e + f, 43) + _rotate(g, 30) + h, e + _rotate(f + a, 18) + g, multiplier)


def _long(keys: NDArray[np.uint8]) -> Words:
    count, length = keys.shape
    y_seed = _SEED * int(_K1) + 113
    x: Words = np.full(count, _word(_SEED * int(_K2))) + _fetch(keys, 0)
    y: Words = np.full(count, _word(y_seed))
    z: Words = _mix(np.full(count, _word(y_seed * int(_K2) + 113))) * _K2
    zero: Words = np.zeros(count, np.uint64)
    v = w = (zero, zero)
    end = (length - 1) // 64 * 64  # 1 to 64 bytes are left behind it
    for start in range(0, end, 64):
        x = _rotate(x + y + v[0] + _fetch(keys, start + 8), 37) * _K1
        y = _rotate(y + v[1] + _fetch(keys, start + 48), 42) * _K1
        x = x ^ w[1]
        y = y + v[0] + _fetch(keys, start + 40)
        z = _rotate(z + w[0], 33) * _K1
        v = _weak(keys, start, v[1] * _K1, x + w[0])
        w = _weak(keys, start + 32, z + w[1], y + _fetch(keys, start + 16))
        x, z = z, x
    multiplier = _K1 + ((z & np.uint64(0xFF)) << np.uint64(1))
    start = length - 64
    w = (w[0] + _word((length - 1) & 63), w[1])
    v = (v[0] + w[0], v[1])
    w = (w[0] + v[0], w[1])
    nine = np.uint64(9)
    x = _rotate(x + y + v[0] + _fetch(keys, start + 8), 37) * multiplier
    y = _rotate(y + v[1] + _fetch(keys, start + 48), 42) * multiplier
    x = x ^ (w[1] * nine)
    y = y + v[0] * nine + _fetch(keys, start + 40)
    z = _rotate(z + w[0], 33) * multiplier
    v = _weak(keys, start, v[1] * multiplier, x + w[0])
    w = _weak(keys, start + 32, z + w[1], y + _fetch(keys, start + 16))
    x, z = z, x
    return _joined(_joined(v[0], w[0], multiplier) + _mix(y) * _K0 + z, _joined(v[1], w[1], multiplier) + x, multiplier)


def _weak(keys: NDArray[np.uint8], start: int, a: Words, b: Words) -> tuple[Words, Words]:
    """Two words from the 32 bytes at ``start`` and two seeds."""
    first, second, third, fourth = (_fetch(keys, start + offset) for offset in (0, 8, 16, 24))
    a = a + first
    b = _rotate(b + a + fourth, 21)
    total = a + second + third
    return total + fourth, b + _rotate(total, 44) + a
