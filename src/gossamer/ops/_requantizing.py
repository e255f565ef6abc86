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


def byte_weights(graph: Lowering, position: int) -> View:
    """Weights, one to a byte."""
    tensor = graph.input(position)
    if graph.constant(position) is None:
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
