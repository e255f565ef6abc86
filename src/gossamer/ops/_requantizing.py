"""Quantised convolutions and products as XNNPACK computes them, which is what LiteRT runs by default.

``clamp(rne(float32(sum) * scale) + zero_point)`` with ``scale = input_scale * weight_scale / output_scale`` in float32,
from left to right, for each output channel; the sum, of int32, is exact. From XNNPACK's ``qs8_qc8w`` and ``qu8``
kernels with the requantization called fp32 (``src/qs8-gemm/``), and from its operators' setup. The fused activation
clamps to ``rne(bound / output_scale + zero_point)``, in float32.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from gossamer.dtypes import numpy_dtype
from gossamer.ops.lowering import Lowering, is_grid
from gossamer.ops.op_def import Array
from gossamer.quantization import activation_range, integer_range
from gossamer.records import replace
from gossamer.schema.enums import ActivationFunctionType, TensorType
from gossamer.views import Requantizing, View

CLAMPS = (
    ActivationFunctionType.NONE,
    ActivationFunctionType.RELU,
    ActivationFunctionType.RELU_N1_TO_1,
    ActivationFunctionType.RELU6,
)
"""Fused activations that XNNPACK takes."""

MOST = 256
"""Requantization scales are below it."""


def requantizing(graph: Lowering, activation: ActivationFunctionType, x: int = 0, weights: int = 1) -> Requantizing:
    """From the node's input and weights, by position, to its output; a bias follows the operands."""
    if activation not in CLAMPS:
        graph.refuse("XNNPACK does not take such an activation")
    bias = graph.optional(max(x, weights) + 1)
    if bias is not None and not (bias.quantization and is_grid(bias)):
        graph.refuse("XNNPACK does not take a bias without a scale")
    image, filter, output = graph.input(x), graph.input(weights), graph.output()
    zero_point = output.quantization.zero_point
    scale = np.float32(output.quantization.scale)
    scales = np.float32(image.quantization.scale) * filter.quantization.scales.astype(np.float32) / scale
    least, greatest = integer_range(output.type)
    low, high = (
        bound
        if math.isinf(real)
        else int(np.rint(np.clip(np.float32(real) / scale + np.float32(zero_point), least, greatest)))
        for real, bound in zip(activation_range(activation), (least, greatest), strict=True)
    )
    points = filter.quantization.zero_points
    if not (scales < MOST).all():
        graph.refuse("XNNPACK does not take such large scales")
    return Requantizing(
        image.quantization.zero_point, int(points[0]) if points.size else 0, scales, zero_point, low, high
    )


LEAST_SHIFT = -14
"""Of multipliers for which `rounded_once` is tried: of the scales of 2^-8 it finds 99 %, of 2^-12 24, of 2^-14 4."""


def rounded_once(multiplier: int, shift: int, numbers: Requantizing) -> Requantizing | None:
    """The numbers with a scale and a nudge by which floats become the bytes that MultiplyByQuantizedMultiplier makes of
    sums, whatever these are; ``None`` if none are found.

    Rounded twice, a sum becomes at least k > 0 from k - 1/2 - n on, n = 2^(shift - 1), and at least k <= 0 from
    k - 1/2 + n on. So n is added to its size before it is rounded once. Floats are not exact, but they grow with the
    sum: they are right for all sums if they are for the least that becomes k, and the one before, for each k.
    """
    if multiplier <= 0 or not LEAST_SHIFT <= shift < 0:
        return None
    levels = np.arange(numbers.low + 1, numbers.high + 1) - numbers.zero_point
    halves = (levels << -shift) - (1 << (-shift - 1)) + (levels <= 0)
    least = -((-(halves << 31) + (1 << 30)) // multiplier)
    sums = np.stack([least, least - 1]).astype(np.float32).astype(np.float64)
    real = np.float32(math.ldexp(multiplier, shift - 31))
    for part in range(8):
        nudge = math.ldexp(64 + part, shift - 7)
        for ulps in (0, 1, -1, 2, -2, 3, -3):
            scale = real + ulps * np.spacing(real)
            # What double precision holds exactly, as it has to be for the one rounding of fma.
            rounded = np.rint((sums * np.float64(scale) + np.copysign(nudge, sums)).astype(np.float32))
            if (rounded[0] >= levels).all() and (rounded[1] < levels).all():
                return replace(numbers, scales=np.array([scale], np.float32), nudge=nudge)
    return None


def byte_weights(graph: Lowering, position: int) -> View:
    """Weights, one to a byte."""
    tensor = graph.input(position)
    if not tensor.is_constant:
        graph.refuse("the weights are only known when the model runs")
    if tensor.type != TensorType.UINT8 and tensor.quantization.zero_points.any():
        graph.refuse("XNNPACK does not take signed weights with a zero point")
    if tensor.type == TensorType.INT4:
        return graph.array(graph.known(position), TensorType.INT8)
    return graph.value(position)


def requantized(graph: Lowering, bias: View | None, numbers: Requantizing, channels: int, type: TensorType) -> View:
    """The constant that sums of nothing and a bias become: [channels]."""
    array = np.zeros(channels, np.int32) if bias is None else bias.buffer.array
    if array is None:
        graph.refuse("the bias is only known when the model runs")
    sums = array.reshape(-1)
    levels = np.rint(sums.astype(np.float32) * numbers.scales) + np.float32(numbers.zero_point)
    return graph.array(np.clip(levels, numbers.low, numbers.high).astype(numpy_dtype(type)), type)


def requantized_twice(
    graph: Lowering,
    rounding: Literal["requant", "requantup"],
    sums: View,
    multipliers: Array,
    shifts: Array,
    numbers: Requantizing,
    type: TensorType,
) -> View:
    """Sums as TFLite's kernels bring them to bytes, by 32-bit multipliers, rounded twice: ``requant``, the reference
    kernels (MultiplyByQuantizedMultiplier); ``requantup``, ruy, halves upwards both times."""
    each = [
        graph.array(values.astype(np.int32).reshape(-1 if values.size > 1 else ())) for values in (multipliers, shifts)
    ]
    bounds = graph.parameters(numbers.zero_point, numbers.low, numbers.high)
    return graph.map(("limit", (rounding, 0, 1, 2), 3), sums, *each, bounds, type=type)


def requantized_in_vectors(
    graph: Lowering, sums: View, multipliers: Array, shifts: Array, numbers: Requantizing, type: TensorType
) -> View:
    """The same of sums [N, H, W, channels] as TFLite's optimized kernels do it (``optimized_ops::Quantize``):
    ``requantup`` in whole vectors, ``requant`` in what is left. They are 8 channels, or of uint8 any 16 elements."""
    if type == TensorType.UINT8 and sums.shape[:-1] != (1, 1, 1):
        flat = graph.reshape(sums, (1, 1, 1, sums.size))
        return graph.reshape(requantized_in_vectors(graph, flat, multipliers, shifts, numbers, type), sums.shape)
    channels, vector = sums.shape[3], 16 if type == TensorType.UINT8 else 8
    whole = channels // vector * vector
    multipliers, shifts = (np.broadcast_to(values, channels) for values in (multipliers, shifts))
    parts: list[View] = []
    roundings: tuple[Literal["requantup", "requant"], ...] = ("requantup", "requant")
    for rounding, first, last in zip(roundings, (0, whole), (whole, channels), strict=True):
        if first < last:
            part, of = sums.slice(3, first, last - first), slice(first, last)
            parts.append(requantized_twice(graph, rounding, part, multipliers[of], shifts[of], numbers, type))
    return parts[0] if len(parts) == 1 else graph.concat(parts, 3)
