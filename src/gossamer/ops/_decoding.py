"""How TFLite Micro stores constants in fewer bytes: lookup tables, pruning, Huffman codes.

Whatever is encoded is a string of bits, the most significant one of each byte first.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.ops.op_def import Context, TensorInfo

Array = NDArray[Any]
Bytes = NDArray[np.uint8]

MAX_INDEX_BITS = 7


def channels_of(ctx: Context, tensor: TensorInfo) -> Array:
    """For each element of a tensor, flattened, the number of its channel: along the first dimension or the last one, by
    the dimension that is quantized. All are in channel 0 if there is one scale or none."""
    count, rank = int(np.prod(tensor.shape)), len(tensor.shape)
    if not is_affine(tensor):
        return np.zeros(count, np.intp)
    scales, axis = tensor.quantization.scales.size, tensor.quantization.dimension
    allowed = (0, rank - 1) if scales > 1 else (0,)
    ctx.require(axis in allowed, f'"{tensor.name}": unsupported quantization axis {axis}, it must be the first or last')
    if scales == 1:
        return np.zeros(count, np.intp)
    size = tensor.shape[axis]
    ctx.require(size == scales, f'"{tensor.name}" has {scales} scales for {size} channels')
    return np.arange(count) % size if axis == rank - 1 else np.repeat(np.arange(size), count // size)


def is_affine(tensor: TensorInfo) -> bool:
    """Whether TFLite Micro takes the tensor for quantized."""
    return tensor.quantization.scales.size > 0 and tensor.quantization.zero_points.size > 0


def look_up(ctx: Context, packed: Bytes, bits: int, table: Array, stride: int, channels: Array) -> Array:
    """The values of a table at the indices, of so many bits each, that are packed into bytes. Each channel has a table
    of its own, ``stride`` after the one before."""
    ctx.require(1 <= bits <= MAX_INDEX_BITS, f"indices must have 1 to {MAX_INDEX_BITS} bits, got {bits}")
    digits = _bits(ctx, packed, channels.size * bits).reshape(-1, bits)
    places = digits @ (1 << np.arange(bits)[::-1]) + channels * stride
    last = int(places.max(initial=-1))
    ctx.require(last < table.size, f"an index needs value {last} of {table.size}")
    return table[places]


def unprune(ctx: Context, packed: Bytes, values: Array, channels: Array, zeros: Array) -> Array:
    """The values, in their order, where a bit is set; the zero of the channel elsewhere."""
    is_kept = _bits(ctx, packed, channels.size).astype(bool)
    count = int(is_kept.sum())
    ctx.require(count <= values.size, f"{count} values are wanted, there are {values.size}")
    result: Array = zeros.astype(values.dtype)[channels]
    result[is_kept] = values[:count]
    return result


def decode_huffman(ctx: Context, packed: Bytes, table: Array, first_bits: int, count: int) -> list[int]:
    """Symbols whose codes follow each other.

    Elements of a table have 16 bits or 32. The next ``first_bits`` bits are the place of one. If its top bit is set, it
    holds a symbol, and below the top bit, in 4 bits, how many of the bits that were read last belong to its code. If
    not, these are how many bits, less 1, to read next, and the rest is how far from here the part of the table begins
    in which they count.
    """
    end = packed.size * 8
    ctx.require(count <= end, f"{count} symbols cannot be in {end} bits")
    width = table.dtype.itemsize * 8
    found, low = 1 << (width - 1), (1 << (width - 5)) - 1
    entries, data = table.tolist(), packed.tobytes() + bytes(8)
    symbols, at = [], 0
    while len(symbols) < count:
        bits, place = first_bits, 0
        while True:
            ctx.require(at <= end, f"the bits end within symbol {len(symbols)}")
            start = at >> 3
            window = int.from_bytes(data[start : start + 4], "big")
            place += (window >> (32 - (at & 7) - bits)) & ((1 << bits) - 1)
            ctx.require(place < len(entries), f"symbol {len(symbols)} needs element {place} of a table of {len(entries)}")
            entry = entries[place]
            number = (entry >> (width - 5)) & 15
            if entry & found:
                break
            at, bits, place = at + bits, number + 1, place + (entry & low)
        at += min(bits, number)
        symbols.append(entry & low)
    ctx.require(at <= end, f"the bits end within symbol {count - 1}")
    return symbols


def _bits(ctx: Context, packed: Bytes, count: int) -> Array:
    ctx.require(count <= packed.size * 8, f"{count} bits are wanted, there are {packed.size * 8}")
    return np.unpackbits(packed[: -(-count // 8)])[:count].astype(np.intp)
