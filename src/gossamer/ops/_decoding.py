"""How TFLite Micro stores constants in fewer bytes: lookup tables, pruning, Huffman codes.

Whatever is encoded is a string of bits, the most significant one of each byte first. Where there are too few of them,
or what they point to is not there, functions raise `ValueError`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.ops.op_def import Shape

Array = NDArray[Any]
Bytes = NDArray[np.uint8]

MAX_INDEX_BITS = 7


def channels_of(shape: Shape, axis: int, count: int) -> Array:
    """For each element of a tensor of this shape, flattened, the number of its channel: of ``count`` along an axis,
    which must be the first or the last; of a single one whatever the axis is."""
    size = int(np.prod(shape))
    if count <= 1:
        return np.zeros(size, np.intp)
    if axis not in (0, len(shape) - 1):
        raise ValueError(f"unsupported quantization axis {axis}, it must be the first or the last")
    if shape[axis] != count:
        raise ValueError(f"{count} scales for {shape[axis]} channels")
    return np.arange(size) % count if axis == len(shape) - 1 else np.repeat(np.arange(count), size // count)


def look_up(packed: Bytes, bits: int, table: Array, stride: int, channels: Array) -> Array:
    """The values of a table at the indices, of so many bits each, that are packed into bytes. Each channel has a table
    of its own, ``stride`` after the one before."""
    if not 1 <= bits <= MAX_INDEX_BITS:
        raise ValueError(f"indices must have 1 to {MAX_INDEX_BITS} bits, got {bits}")
    digits = np.zeros((channels.size, 8), np.uint8)
    digits[:, 8 - bits :] = _bits(packed, channels.size * bits).reshape(-1, bits)
    places = np.packbits(digits) + channels * stride
    last = int(places.max(initial=-1))
    if last >= table.size:
        raise ValueError(f"an index needs value {last} of {table.size}")
    values: Array = table[places]
    return values


def unprune(packed: Bytes, values: Array, channels: Array, zeros: Array) -> Array:
    """The values, in their order, where a bit is set; the zero of the channel elsewhere."""
    is_kept = _bits(packed, channels.size).astype(bool)
    count = int(is_kept.sum())
    if count > values.size:
        raise ValueError(f"{count} values are wanted, there are {values.size}")
    result: Array = zeros.astype(values.dtype)[channels]
    result[is_kept] = values[:count]
    return result


def decode_huffman(packed: Bytes, table: Array, first_bits: int, count: int) -> list[int]:
    """Symbols whose codes follow each other.

    Elements of a table have 16 bits or 32. The next ``first_bits`` bits are the place of one. If its top bit is set, it
    holds a symbol, and below the top bit, in 4 bits, how many of the bits that were read last belong to its code. If
    not, these are how many bits, less 1, to read next, and the rest is how far from here the part of the table begins
    in which they count.
    """
    end = packed.size * 8
    if count > end:
        raise ValueError(f"{count} symbols cannot be in {end} bits")
    width = table.dtype.itemsize * 8
    found, low = 1 << (width - 1), (1 << (width - 5)) - 1
    entries, data = table.tolist(), packed.tobytes() + bytes(8)
    symbols: list[int] = []
    at = 0
    while len(symbols) < count:
        bits, place = first_bits, 0
        while True:
            if at > end:
                raise ValueError(f"the bits end within symbol {len(symbols)}")
            window = int.from_bytes(data[at >> 3 : (at >> 3) + 4], "big")
            place += (window >> (32 - (at & 7) - bits)) & ((1 << bits) - 1)
            if place >= len(entries):
                raise ValueError(f"symbol {len(symbols)} needs element {place} of a table of {len(entries)}")
            entry = entries[place]
            number = (entry >> (width - 5)) & 15
            if entry & found:
                break
            at, bits, place = at + bits, number + 1, place + (entry & low)
        at += min(bits, number)
        symbols.append(entry & low)
    if at > end:
        raise ValueError(f"the bits end within symbol {count - 1}")
    return symbols


def _bits(packed: Bytes, count: int) -> Array:
    if count > packed.size * 8:
        raise ValueError(f"{count} bits are wanted, there are {packed.size * 8}")
    return np.unpackbits(packed[: -(-count // 8)])[:count]
