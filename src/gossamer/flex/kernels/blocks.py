"""Blocks of space moved to the batch or to the channels, and back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gossamer.flex.kernels import Array, Call, Shape, kernel
from gossamer.flex.kernels._checks import require_least_rank, require_rank
from gossamer.flex.node import FlexNode


@kernel("SpaceToBatchND")
def space_to_batch_nd(call: Call, x: Array, block_shape: Array, paddings: Array) -> Array:
    """The positions inside blocks of the padded spatial dimensions become batches."""
    blocks, margins = _checked(call, x, block_shape, paddings)
    if not blocks:
        return x
    spatial = len(blocks)
    x = np.pad(x, [(0, 0), *margins, *[(0, 0)] * (x.ndim - 1 - spatial)])
    batch, sizes, rest = x.shape[0], x.shape[1 : spatial + 1], x.shape[spatial + 1 :]
    for size, block in zip(sizes, blocks, strict=True):
        call.require(size % block == 0, f"padded size {size} is no multiple of block size {block}")
    counts = [size // block for size, block in zip(sizes, blocks, strict=True)]
    cut = x.reshape(batch, *[one for pair in zip(counts, blocks, strict=True) for one in pair], *rest)
    order = [*range(2, 2 * spatial + 1, 2), 0, *range(1, 2 * spatial, 2), *range(2 * spatial + 1, cut.ndim)]
    return cut.transpose(order).reshape(batch * math.prod(blocks), *counts, *rest)


@kernel("BatchToSpaceND")
def batch_to_space_nd(call: Call, x: Array, block_shape: Array, crops: Array) -> Array:
    """The inverse, with ``crops`` cut off."""
    blocks, margins = _checked(call, x, block_shape, crops)
    if not blocks:
        return x
    spatial = len(blocks)
    batch, sizes, rest = x.shape[0], x.shape[1 : spatial + 1], x.shape[spatial + 1 :]
    count = math.prod(blocks)
    call.require(batch % count == 0, f"batch {batch} is no multiple of {count}")
    cut = x.reshape(*blocks, batch // count, *sizes, *rest)
    inner = [axis for n in range(spatial) for axis in (spatial + 1 + n, n)]
    joined = cut.transpose([spatial, *inner, *range(2 * spatial + 1, cut.ndim)])
    whole = [size * block for size, block in zip(sizes, blocks, strict=True)]
    joined = joined.reshape(batch // count, *whole, *rest)
    for size, (before, behind) in zip(whole, margins, strict=True):
        call.require(before + behind <= size, f"crops {before} and {behind} are more than the size {size}")
    kept = [slice(before, size - behind) for size, (before, behind) in zip(whole, margins, strict=True)]
    return joined[(slice(None), *kept)]


@kernel("SpaceToBatch")
def space_to_batch(call: Call, x: Array, paddings: Array) -> Array:
    """`space_to_batch_nd` with square blocks."""
    require_rank(call, "input", x, 4)
    return space_to_batch_nd(call, x, np.full(2, call.attributes.int("block_size")), paddings)


@kernel("BatchToSpace")
def batch_to_space(call: Call, x: Array, crops: Array) -> Array:
    """`batch_to_space_nd` with square blocks."""
    require_rank(call, "input", x, 4)
    return batch_to_space_nd(call, x, np.full(2, call.attributes.int("block_size")), crops)


def _checked(call: Call, x: Array, block_shape: Array, margins: Array) -> tuple[list[int], list[list[int]]]:
    blocks: list[int] = block_shape.reshape(-1).tolist()
    require_least_rank(call, "input", x, 1 + len(blocks))
    call.require(all(block >= 1 for block in blocks), f"block_shape must be positive, got {blocks}")
    call.require(
        margins.shape == (len(blocks), 2), f"paddings must have shape [{len(blocks)}, 2], got {list(margins.shape)}"
    )
    call.require(np.all(margins >= 0), f"paddings must not be negative, got {margins.tolist()}")
    sizes = [size + int(pair.sum()) for size, pair in zip(x.shape[1:], margins, strict=False)]
    call.require(math.prod(sizes) <= 1 << 30, f"padded size {sizes} is too large")
    return blocks, margins.tolist()


def _channels_last(call: Call, x: Array) -> tuple[Array, bool]:
    """The operand as NHWC, and whether it was."""
    require_rank(call, "input", x, 4)
    format = call.attributes.text("data_format")
    call.require(format in ("NHWC", "NCHW"), f"data_format {format} is for GPUs; allowed are NHWC and NCHW")
    return (x, True) if format == "NHWC" else (x.transpose(0, 2, 3, 1), False)


def _depth_shape(node: FlexNode, shapes: Sequence[Shape]) -> list[Shape]:
    (shape,) = shapes
    block = node.attributes.int("block_size")
    format = node.attributes.text("data_format")
    if len(shape) != 4 or format == "NCHW_VECT_C":
        raise ValueError(f"input must have 4 dimensions in NHWC or NCHW, got shape {list(shape)} in {format}")
    n, *hwc = shape if format == "NHWC" else (shape[0], shape[2], shape[3], shape[1])
    height, width, depth = hwc
    if node.op == "SpaceToDepth":
        if height % block or width % block:
            raise ValueError(f"height {height} and width {width} must be multiples of {block}")
        height, width, depth = height // block, width // block, depth * block * block
    else:
        if depth % (block * block):
            raise ValueError(f"depth {depth} must be a multiple of {block * block}")
        height, width, depth = height * block, width * block, depth // (block * block)
    return [(n, height, width, depth) if format == "NHWC" else (n, depth, height, width)]


@kernel("SpaceToDepth", shape=_depth_shape)
def space_to_depth(call: Call, x: Array) -> Any:
    """The positions inside square blocks become channels."""
    _depth_shape(call.node, [x.shape])
    x, last = _channels_last(call, x)
    n, height, width, depth = x.shape
    b = call.attributes.int("block_size")
    cut = x.reshape(n, height // b, b, width // b, b, depth).transpose(0, 1, 3, 2, 4, 5)
    result = cut.reshape(n, height // b, width // b, b * b * depth)
    return result if last else result.transpose(0, 3, 1, 2)


@kernel("DepthToSpace", shape=_depth_shape)
def depth_to_space(call: Call, x: Array) -> Any:
    """The inverse."""
    _depth_shape(call.node, [x.shape])
    x, last = _channels_last(call, x)
    n, height, width, depth = x.shape
    b = call.attributes.int("block_size")
    cut = x.reshape(n, height, width, b, b, depth // (b * b)).transpose(0, 1, 3, 2, 4, 5)
    result = cut.reshape(n, height * b, width * b, depth // (b * b))
    return result if last else result.transpose(0, 3, 1, 2)
