"""Requantization: sums of products of quantized numbers become levels of the output.

The sum of (input - input_zero) * (weight - weight_zero), exact, plus a bias, whose scale is input_scale * weight_scale,
is multiplied by ``input_scale * weight_scale / output_scale``; the output's zero point is added, and the fused
activation clamps. TFLite's kernels do it in fixed point: `FixedPointRequantization`. XNNPACK, which LiteRT runs by
default, does it in floats: `gossamer.views.Requantization`,

``clamp(rne(float32(sum) * scale) + zero_point)`` with ``scale = input_scale * weight_scale / output_scale`` in float32,
from left to right, for each output channel: its ``qs8_qc8w`` and ``qu8`` kernels with the requantization called fp32
(``src/qs8-gemm/``), and its operators' setup. The fused activation clamps to ``rne(bound / output_scale +
zero_point)``, in float32.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from gossamer.arrays import NDArray
from gossamer.dtypes import numpy_dtype, type_name
from gossamer.ops.lowering import Lowering, is_grid
from gossamer.ops.op_def import Array, PrepareContext, TensorInfo
from gossamer.quantization import (
    CLAMPS,
    QuantizedMultiplier,
    activation_range,
    integer_range,
    multiply_by_quantized_multiplier,
    multiply_by_quantized_multiplier_64,
)
from gossamer.records import record, replace
from gossamer.schema.enums import ActivationFunctionType, TensorType
from gossamer.views import Requantization, View

SUMS = Requantization(0, 0, np.ones(1, np.float32), 0, 0, 0)
"""For products of levels as they are, of which the sums are wanted."""

MOST = 256
"""Requantization scales are below it."""

BLOCK = 1 << 15
"""Sums requantized at once: their 64-bit intermediates stay in cache."""


@record(frozen=True, eq=False)
class FixedPointRequantization:
    """From accumulators to the levels of the output, by one quantized multiplier or one for each output channel.

    Accumulators are 32-bit and wrap; ``wide`` ones are 64-bit.
    """

    multipliers: NDArray[np.int64]
    shifts: NDArray[np.int64]
    output_zero: int
    low: int
    high: int
    dtype: np.dtype[Any]
    wide: bool

    def accumulators(self, sums: Array, bias: Array | None) -> NDArray[np.int64]:
        """Integer sums [..., channels], in any type, and bias."""
        total: NDArray[np.int64] = sums.astype(np.int64)
        if bias is not None:
            total += bias
        return total if self.wide else total.astype(np.int32).astype(np.int64)

    def finish(self, sums: Array, bias: Array | None) -> Array:
        """Integer sums [..., channels], in any type, -> the output."""
        multiply = multiply_by_quantized_multiplier_64 if self.wide else multiply_by_quantized_multiplier
        channels = sums.shape[-1]
        flat = sums.reshape(math.prod(sums.shape[:-1]), channels)
        result = np.empty(flat.shape, self.dtype)
        rows = max(1, BLOCK // max(1, channels))
        for row in range(0, len(flat), rows):
            accumulators = self.accumulators(flat[row : row + rows], bias)
            levels = multiply(accumulators, self.multipliers, self.shifts) + self.output_zero
            result[row : row + rows] = np.minimum(np.maximum(levels, self.low), self.high)
        return result.reshape(sums.shape)


def objection(graph: Lowering, activation: ActivationFunctionType, x: int = 0, weights: int = 1) -> str | None:
    """Why XNNPACK does not take a product of bytes, given the positions of its operands, which a bias follows; ``None``
    if it does. Then TFLite's optimized kernels compute it."""
    if activation not in CLAMPS:
        return "XNNPACK does not take such an activation"
    bias = graph.optional(max(x, weights) + 1)
    if bias is not None:
        if not (bias.quantization and is_grid(bias)):
            return "XNNPACK does not take a bias without a scale"
        if not bias.is_constant:
            return "XNNPACK does not take a bias that is only known when the model runs"
    if not (_scales(graph, x, weights) < MOST).all():
        return "XNNPACK does not take such large scales"
    return None


def _scales(graph: Lowering, x: int, weights: int) -> NDArray[np.float32]:
    image, filter = graph.input(x).quantization, graph.input(weights).quantization
    product: NDArray[np.float32] = np.float32(image.scale) * filter.scales.astype(np.float32)
    return product / np.float32(graph.output().quantization.scale)


def requantization(graph: Lowering, activation: ActivationFunctionType, x: int = 0, weights: int = 1) -> Requantization:
    """From the node's input and weights, by position, to its output; a bias follows the operands."""
    reason = objection(graph, activation, x, weights)
    if reason is not None:
        graph.refuse(reason)
    image, filter, output = graph.input(x), graph.input(weights), graph.output()
    zero_point = output.quantization.zero_point
    low, high = xnnpack_limits(output, activation)
    points = filter.quantization.zero_points
    weight_zero = int(points[0]) if points.size else 0
    return Requantization(image.quantization.zero_point, weight_zero, _scales(graph, x, weights), zero_point, low, high)


def of_sums(graph: Lowering, low: int, high: int, x: int = 0) -> Requantization:
    """The zero points of a product and the bounds of its result: for sums, which TFLite's kernels requantize."""
    points = graph.input(1).quantization.zero_points
    weight_zero = int(points[0]) if points.size else 0
    x_zero, zero_point = (one.quantization.zero_point for one in (graph.input(x), graph.output()))
    return Requantization(x_zero, weight_zero, np.ones(1, np.float32), zero_point, low, high)


def xnnpack_limits(output: TensorInfo, activation: int) -> tuple[int, int]:
    """The levels that a fused activation clamps an output to, as XNNPACK rounds them."""
    return _xnnpack_limits(output.quantization.scale, output.quantization.zero_point, output.type, activation)


@lru_cache(1024)
def _xnnpack_limits(of_scale: float, of_zero: int, type: TensorType, activation: int) -> tuple[int, int]:
    scale, zero = np.float32(of_scale), np.float32(of_zero)
    least, greatest = integer_range(type)
    low, high = (
        bound if math.isinf(real) else int(np.rint(np.clip(np.float32(real) / scale + zero, least, greatest)))
        for real, bound in zip(activation_range(activation), (least, greatest), strict=True)
    )
    return low, high


LEAST_SHIFT = -14
"""Of multipliers for which `rounded_once` is tried: of the scales of 2^-8 it finds 99 %, of 2^-12 24, of 2^-14 4."""


def rounded_once(to: QuantizedMultiplier, numbers: Requantization) -> Requantization | None:
    """The numbers with a scale and a nudge by which floats become the bytes that MultiplyByQuantizedMultiplier makes of
    sums, whatever these are; ``None`` if none are found.

    Rounded twice, a sum becomes at least k > 0 from k - 1/2 - n on, n = 2^(shift - 1), and at least k <= 0 from
    k - 1/2 + n on. So n is added to its size before it is rounded once. Floats are not exact, but they grow with the
    sum: they are right for all sums if they are for the least that becomes k, and the one before, for each k.
    """
    multiplier, shift = to
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


def byte_weights(graph: Lowering, position: int, *, computed: bool = False) -> View:
    """Weights, one to a byte. Refused if the model computes them, unless they may be ``computed``."""
    tensor = graph.input(position)
    if not tensor.is_constant and not computed:
        graph.refuse("the weights are only known when the model runs")
    if tensor.type != TensorType.UINT8 and tensor.quantization.zero_points.any():
        graph.refuse("XNNPACK does not take signed weights with a zero point")
    if tensor.type in (TensorType.INT4, TensorType.INT2):
        return graph.array(graph.known(position), TensorType.INT8)
    return graph.value(position)


def requantized(graph: Lowering, bias: View | None, numbers: Requantization, channels: int, type: TensorType) -> View:
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
    numbers: Requantization,
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
    graph: Lowering, sums: View, multipliers: Array, shifts: Array, numbers: Requantization, type: TensorType
) -> View:
    """The same of sums [N, H, W, channels] as TFLite's optimized kernels do it (``optimized_ops::Quantize``):
    ``requantup`` in whole vectors, ``requant`` in what is left. They are 8 channels, or of uint8 any 16 elements."""
    if type == TensorType.UINT8 and sums.shape[:-1] != (1, 1, 1):
        flat = graph.reshape(sums, (1, 1, 1, sums.size))
        return graph.reshape(requantized_in_vectors(graph, flat, multipliers, shifts, numbers, type), sums.shape)
    vector = 16 if type == TensorType.UINT8 else 8
    return requantized_by_channels(graph, sums, vector, multipliers, shifts, numbers, type)


def requantized_by_channels(
    graph: Lowering,
    sums: View,
    vector: int,
    multipliers: Array,
    shifts: Array,
    numbers: Requantization,
    type: TensorType,
) -> View:
    """``requantup`` in whole vectors of so many channels, ``requant`` in what is left."""
    channels = sums.shape[3]
    whole = channels // vector * vector
    multipliers, shifts = (np.broadcast_to(values, channels) for values in (multipliers, shifts))
    parts: list[View] = []
    roundings: tuple[Literal["requantup", "requant"], ...] = ("requantup", "requant")
    for rounding, first, last in zip(roundings, (0, whole), (whole, channels), strict=True):
        if first < last:
            part, of = sums.slice(3, first, last - first), slice(first, last)
            parts.append(requantized_twice(graph, rounding, part, multipliers[of], shifts[of], numbers, type))
    return parts[0] if len(parts) == 1 else graph.concat(parts, 3)


def check_int16(ctx: PrepareContext, x: TensorInfo, bias: TensorInfo | None, bias_type: int) -> bool:
    """int16 activations are symmetric. Whether sums are 64-bit: unless ``quantized_bias_type`` is int32."""
    if x.type != TensorType.INT16:
        return False
    for name, tensor in (("input", x), ("output", ctx.output())):
        zero = tensor.quantization.zero_point
        ctx.require(zero == 0, f"{name} zero point must be 0 for int16, got {zero}")
    if bias_type == TensorType.FLOAT32:  # the schema's default: not stated
        return True
    if bias_type not in (TensorType.INT32, TensorType.INT64):
        ctx.fail(f"quantized_bias_type must be int32 or int64, got {type_name(bias_type)}")
    if bias is not None and bias.type != bias_type:
        ctx.fail(f"bias must be {type_name(bias_type)} as quantized_bias_type says, got {type_name(bias.type)}")
    return bias_type == TensorType.INT64
