"""Quantization along a dimension."""

from __future__ import annotations

import numpy as np

from gossamer.arrays import NDArray
from gossamer.ops.op_def import Context, Shape, TensorInfo
from gossamer.quantization import Quantization

Floats = NDArray[np.float32]


def require_channels(ctx: Context, name: str, tensor: TensorInfo, shape: Shape) -> None:
    """Raise unless a tensor of this shape, quantized with several scales, has one for each index along its quantized
    dimension, and as many zero points or a single one."""
    quantization = tensor.quantization
    dimension, scales = quantization.dimension, quantization.scales
    if not 0 <= dimension < len(shape):
        ctx.fail(f"{name} is quantized along dimension {dimension}, but has shape {list(shape)}")
    if scales.size != shape[dimension]:
        ctx.fail(f"{name} has {scales.size} scales for dimension {dimension} of {list(shape)}")
    if quantization.zero_points.size not in (1, scales.size):
        ctx.fail(f"{name} has {scales.size} scales and {quantization.zero_points.size} zero points")
    if not (scales > 0).all():
        ctx.fail(f"{name} needs scales above 0, got {float(scales.min())}")


def along_dimension(quantization: Quantization, rank: int) -> tuple[Floats, Floats]:
    """Scales and zero points that broadcast to a tensor of this rank; of shape [] if there is only one scale, or none,
    which is 0."""
    if not quantization.per_channel:
        return np.array(quantization.scale, np.float32), np.array(quantization.zero_point, np.float32)
    shape = [1] * rank
    shape[quantization.dimension] = -1
    return quantization.scales.reshape(shape), quantization.zero_points.reshape(shape).astype(np.float32)
