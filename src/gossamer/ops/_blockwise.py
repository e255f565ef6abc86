"""Blockwise quantization: weights of 4 or 2 bits with a float16 scale for each block of a row.

LiteRT takes the scales from a tensor [rows, blocks], whatever its shape, and never looks at zero points: here others
than 0 are errors.
"""

from __future__ import annotations

import numpy as np

from gossamer.arrays import NDArray
from gossamer.ops.op_def import PrepareContext, TensorInfo
from gossamer.quantization import Blocks


def require_blocks(ctx: PrepareContext, name: str, tensor: TensorInfo) -> Blocks:
    """The blocks of a matrix [rows, columns], which has as many as it needs."""
    blocks = tensor.quantization.blocks
    rows, columns = tensor.shape
    if blocks is None:
        ctx.fail(f"{name}: the scales of its blocks, and their zero points if there are any, must be stored in the model")
    ctx.require(blocks.scales.dtype == np.float16, f"{name}: the scales of its blocks must be float16")
    ctx.require(
        blocks.size > 0 and columns % blocks.size == 0,
        f"{name} has rows of {columns} elements, which are not made of whole blocks of {blocks.size}",
    )
    ctx.require(
        blocks.scales.size * blocks.size == rows * columns,
        f"{name} {list(tensor.shape)} needs a scale for each block of {blocks.size} elements, got {blocks.scales.size}",
    )
    ctx.require(
        blocks.zero_points is None or not blocks.zero_points.any(), f"{name}: the zero points of its blocks must be 0"
    )
    return blocks


def block_scales(blocks: Blocks, rows: int) -> NDArray[np.float32]:
    """The scales as float32: [rows, blocks]."""
    scales: NDArray[np.float32] = blocks.scales.astype(np.float32).reshape(rows, -1)
    return scales
