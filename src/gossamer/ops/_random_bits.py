"""Counter-based random bits (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011): Philox4x32 with 10
rounds and Threefry2x32 with 20.

Block number n is a function of the key and of n alone, so blocks are made many at a time. All arithmetic is modulo
2**32.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gossamer.arrays import NDArray

Words = NDArray[np.uint32]

_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_MASK = 0xFFFFFFFF
_BLOCKS_AT_ONCE = 1 << 14

PHILOX_WORDS = 4
THREEFRY_WORDS = 2


def philox(key: tuple[int, int], counters: Words) -> Words:
    """Blocks of four words."""
    a, b, c, d = (counters[:, place].astype(np.uint64) for place in range(PHILOX_WORDS))
    p, q = np.empty_like(a), np.empty_like(c)
    first, second = key
    for _ in range(10):  # in place: new memory takes longer than the arithmetic
        np.multiply(a, np.uint64(0xD2511F53), out=p)
        np.multiply(c, np.uint64(0xCD9E8D57), out=q)
        np.right_shift(q, _HALF, out=a)
        a ^= b
        a ^= np.uint64(first)
        np.bitwise_and(q, _LOW, out=b)
        np.right_shift(p, _HALF, out=c)
        c ^= d
        c ^= np.uint64(second)
        np.bitwise_and(p, _LOW, out=d)
        first, second = (first + 0x9E3779B9) & _MASK, (second + 0xBB67AE85) & _MASK
    return np.stack([a, b, c, d], 1).astype(np.uint32)


def threefry(key: tuple[int, int], counters: Words) -> Words:
    """Blocks of two words."""
    keys = np.array([*key, key[0] ^ key[1] ^ 0x1BD11BDA], np.uint32)
    rotations = ((13, 15, 26, 6), (17, 29, 16, 24))
    a, b = counters[:, 0] + keys[0], counters[:, 1] + keys[1]
    for step in range(5):
        for bits in rotations[step % 2]:
            a = a + b
            b = ((b << np.uint32(bits)) | (b >> np.uint32(32 - bits))) ^ a
        a = a + keys[(step + 1) % 3]
        b = b + keys[(step + 2) % 3] + np.uint32(step + 1)
    return np.stack([a, b], 1)


def counted(start: int, count: int) -> tuple[Words, Words]:
    """The low and high words of ``count`` 64-bit counters from ``start``, which wrap to 0."""
    counters = np.uint64(start) + np.arange(count, dtype=np.uint64)
    return (counters & _LOW).astype(np.uint32), (counters >> _HALF).astype(np.uint32)


def pieces(count: int, words: int) -> Iterator[tuple[int, int]]:
    """(first word, number of words) of pieces of ``count`` words, each of whole blocks, so that scratch stays small."""
    size = _BLOCKS_AT_ONCE * words
    for start in range(0, count, size):
        yield start, min(size, count - start)


class PhiloxGenerator:
    """TensorFlow's generator: Philox with a 64-bit key and a 128-bit counter of which ``seed2`` is the high half.

    It goes on where it stopped; a draw takes whole blocks. ``state``, uint64 [3], are the key and the counter, low half
    first: what others change there, too.
    """

    def __init__(self, seed: int, seed2: int) -> None:
        self.state = np.array([seed % (1 << 64), 0, seed2 % (1 << 64)], np.uint64)

    def draw(self, count: int) -> Words:
        """The next ``count`` words."""
        key = int(self.state[0])
        words = np.empty(count, np.uint32)
        for start, size in pieces(count, PHILOX_WORDS):
            blocks = -(-size // PHILOX_WORDS)
            made = philox((key & _MASK, key >> 32), self._counters(blocks))
            words[start : start + size] = made.reshape(-1)[:size]
            self.skip(blocks)
        return words

    def skip(self, blocks: int) -> None:
        """Leave out blocks."""
        low, high = (int(word) for word in self.state[1:])
        carry, self.state[1] = divmod(low + blocks, 1 << 64)
        self.state[2] = (high + carry) % (1 << 64)

    def copy(self) -> PhiloxGenerator:
        """A generator in the same state."""
        twin = PhiloxGenerator(0, 0)
        twin.state[:] = self.state
        return twin

    def _counters(self, count: int) -> Words:
        low, high = (int(word) for word in self.state[1:])
        first, second = counted(low, count)
        carried = np.arange(count) >= (1 << 64) - low
        tops = [((high + carry) % (1 << 64)) for carry in (0, 1)]
        third, fourth = (np.where(carried, tops[1] >> s & _MASK, tops[0] >> s & _MASK) for s in (0, 32))
        return np.stack([first, second, third.astype(np.uint32), fourth.astype(np.uint32)], 1)


def uniform_floats(words: Words) -> NDArray[np.float32]:
    """float32 in [0, 1): the low 23 bits are the mantissa of a number in [1, 2)."""
    from_one = ((words & np.uint32(0x7FFFFF)) | np.uint32(0x3F800000)).view(np.float32)
    numbers: NDArray[np.float32] = from_one - np.float32(1)
    return numbers


def uniform_doubles(words: Words) -> NDArray[np.float64]:
    """float64 in [0, 1) from each two words: the low 20 bits of the first and the second are the mantissa."""
    high, low = words[0::2].astype(np.uint64), words[1::2].astype(np.uint64)
    mantissa = ((high & np.uint64(0xFFFFF)) << _HALF) | low
    numbers: NDArray[np.float64] = (mantissa | np.uint64(0x3FF0000000000000)).view(np.float64) - 1.0
    return numbers


def normal_floats(words: Words) -> NDArray[np.float32]:
    """Normally distributed float32, two from each two words (Box and Muller): with u and v uniform in [0, 1), u at
    least 1e-7, ``sqrt(-2 ln u) * (sin, cos)(2 pi v)``, all in float32."""
    uniform = uniform_floats(words).reshape(-1, 2)
    u = np.maximum(uniform[:, 0], np.float32(1e-7))
    angle = (2 * np.pi * uniform[:, 1].astype(np.float64)).astype(np.float32).astype(np.float64)
    radius = np.sqrt(np.float32(-2) * np.log(u.astype(np.float64)).astype(np.float32))
    numbers: NDArray[np.float32] = np.stack([np.sin(angle), np.cos(angle)], 1).astype(np.float32) * radius[:, None]
    return numbers.reshape(-1)
