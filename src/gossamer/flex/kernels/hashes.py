"""Hashes of strings and of tensors. All arithmetic is modulo 2**64."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from gossamer.arrays import NDArray
from gossamer.flex.kernels import Array, Call, kernel, like_first
from gossamer.ops._farm_hash import fingerprint64

Words = NDArray[np.uint64]
Keys = NDArray[np.uint8]

MURMUR_SEED = 0xDECAFCAFFE
"""The seed of TensorFlow's Hash64."""

FARMHASH = b"farmhash64"

_MULTIPLIER = np.uint64(0xC6A4A7935BD1E995)


@kernel("StringToHashBucketFast", shape=like_first)
def bucket_fast(call: Call, input: Array) -> Array:
    """FarmHash's Fingerprint64, modulo the number of buckets."""
    return _buckets(call, input, fingerprint64)


@kernel("StringToHashBucket", shape=like_first)
def bucket(call: Call, input: Array) -> Array:
    """MurmurHash64A, modulo the number of buckets."""
    return _buckets(call, input, murmur64)


@kernel("StringToHashBucketStrong", shape=like_first)
def bucket_strong(call: Call, input: Array) -> Array:
    """SipHash-2-4 with the key in the attribute, modulo the number of buckets."""
    key = call.attributes.ints("key")
    call.require(len(key) == 2, f"key must have 2 elements, got {len(key)}")
    return _buckets(call, input, lambda keys: siphash(keys, key))


@kernel("Fingerprint")
def fingerprint(call: Call, data: Array, method: Array) -> Array:
    """FarmHash's Fingerprint64 of each slice along the first dimension, as 8 bytes; of several strings, that of their
    fingerprints."""
    call.require(method.item() == FARMHASH, f"method must be {FARMHASH!r}, got {method.item()!r}")
    call.require(data.ndim, "data must have a dimension")
    rows = data.reshape(data.shape[0], -1) if data.size else data.reshape(data.shape[0], 0)
    if data.dtype == object:
        found = _hashed(rows.reshape(-1).tolist(), fingerprint64)
        if rows.shape[1] == 1:
            return _bytes(found, len(rows))
        return _bytes(fingerprint64(_bytes(found, len(rows))), len(rows))
    content = np.ascontiguousarray(rows).view(np.uint8).reshape(len(rows), -1)
    return _bytes(fingerprint64(content), len(rows))


def murmur64(keys: Keys) -> Words:
    """Austin Appleby's MurmurHash64A of every row [n, bytes]."""
    count, length = keys.shape
    state: Words = np.full(count, np.uint64(MURMUR_SEED) ^ np.uint64(length) * _MULTIPLIER)
    whole = length // 8 * 8
    for word in np.ascontiguousarray(keys[:, :whole]).view("<u8").reshape(count, whole // 8).T:
        mixed = word * _MULTIPLIER
        mixed = (mixed ^ (mixed >> np.uint64(47))) * _MULTIPLIER
        state = (state ^ mixed) * _MULTIPLIER
    if whole < length:
        state = (state ^ _tail(keys, whole)) * _MULTIPLIER
    state = (state ^ (state >> np.uint64(47))) * _MULTIPLIER
    return state ^ (state >> np.uint64(47))


def siphash(keys: Keys, key: Sequence[int]) -> Words:
    """SipHash-2-4 (Aumasson and Bernstein) of every row [n, bytes], with a key of two 64-bit words."""
    count, length = keys.shape
    low, high = [np.uint64(word % (1 << 64)) for word in key]
    a, b, c, d = (
        np.full(count, word ^ np.uint64(start))
        for word, start in (
            (low, 0x736F6D6570736575),
            (high, 0x646F72616E646F6D),
            (low, 0x6C7967656E657261),
            (high, 0x7465646279746573),
        )
    )
    whole = length // 8 * 8
    words = list(np.ascontiguousarray(keys[:, :whole]).view("<u8").reshape(count, whole // 8).T)
    for word in [*words, _tail(keys, whole) | np.uint64((length & 0xFF) << 56)]:
        d = d ^ word
        for _ in range(2):
            a, b, c, d = _round(a, b, c, d)
        a = a ^ word
    c = c ^ np.uint64(0xFF)
    for _ in range(4):
        a, b, c, d = _round(a, b, c, d)
    return a ^ b ^ c ^ d


def _round(a: Words, b: Words, c: Words, d: Words) -> tuple[Words, Words, Words, Words]:
    a, c = a + b, c + d
    b, d = _rotated(b, 13) ^ a, _rotated(d, 16) ^ c
    a = _rotated(a, 32)
    c, a = c + b, a + d
    b, d = _rotated(b, 17) ^ c, _rotated(d, 21) ^ a
    return a, b, _rotated(c, 32), d


def _rotated(word: Words, bits: int) -> Words:
    rotated: Words = (word << np.uint64(bits)) | (word >> np.uint64(64 - bits))
    return rotated


def _tail(keys: Keys, start: int) -> Words:
    """The last bytes, fewer than 8, as a little-endian number."""
    padded = np.zeros((len(keys), 8), np.uint8)
    padded[:, : keys.shape[1] - start] = keys[:, start:]
    return padded.view("<u8")[:, 0].astype(np.uint64)


def _hashed(items: Sequence[bytes], function: Callable[[Keys], Words]) -> Words:
    """What a function of keys of one length makes of any strings."""
    places: dict[int, list[int]] = {}
    for at, item in enumerate(items):
        places.setdefault(len(item), []).append(at)
    found = np.empty(len(items), np.uint64)
    for length, which in places.items():
        content = b"".join([items[at] for at in which])
        found[which] = function(np.frombuffer(content, np.uint8).reshape(len(which), length))
    return found


def _buckets(call: Call, input: Array, function: Callable[[Keys], Words]) -> Array:
    count = np.uint64(call.attributes.int("num_buckets"))
    return (_hashed(input.reshape(-1).tolist(), function) % count).astype(np.int64).reshape(input.shape)


def _bytes(words: Words, rows: int) -> Keys:
    return np.ascontiguousarray(words.astype("<u8")).view(np.uint8).reshape(rows, -1)
