"""Quantized convolutions: the checks and the requantizing epilogue that all of them share.

A convolution sums (input - input_zero) * (filter - filter_zero) over what the window meets, adds the bias (whose scale
is input_scale * filter_scale), and brings the sum to the output's scale by a fixed-point multiplier:
``output_zero + sum * input_scale * filter_scale / output_scale``, clamped to the fused activation. Sums and bias are
32-bit and wrap; with int16 inputs they are 64-bit, unless ``quantized_bias_type`` says int32. Multipliers are made in
double precision, one for each filter scale, except for uint8, where float32(input_scale * filter_scale) is divided.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.dtypes import numpy_dtype, type_name
from gossamer.ops._convolution import exact_type
from gossamer.ops._elementwise import quantized_limits, require_scale
from gossamer.ops.op_def import PrepareContext, TensorInfo
from gossamer.quantization import (
    integer_range,
    multiply_by_quantized_multiplier,
    multiply_by_quantized_multiplier_64,
    quantize_multipliers,
)
from gossamer.records import record
from gossamer.schema.enums import TensorType

Array = NDArray[Any]

# Sums requantized at once: their 64-bit intermediates stay in cache.
BLOCK = 1 << 15

BIAS_TYPES = {
    TensorType.FLOAT32: (TensorType.FLOAT32,),
    TensorType.UINT8: (TensorType.INT32,),
    TensorType.INT8: (TensorType.INT32,),
    TensorType.INT16: (TensorType.INT64, TensorType.INT32),
}


@record(frozen=True, eq=False)
class Requantization:
    """From integer operands to accumulators, and from these to the integers of the output."""

    multipliers: NDArray[np.int64]
    shifts: NDArray[np.int64]
    input_zero: int
    largest_input: int
    filter_zero: int
    output_zero: int
    low: int
    high: int
    dtype: np.dtype[Any]
    wide: bool

    def operands(self, x: Array, filter: Array, output_axis: int) -> tuple[Array, Array]:
        """Input and filter less their zero points, the input in a type in which the sums are exact."""
        if self.filter_zero:
            filter = filter.astype(np.int64) - self.filter_zero
        kind = exact_type(self.largest_input, filter, output_axis)
        x = x.astype(kind)
        if self.input_zero:
            x -= kind(self.input_zero)
        return x, filter

    def finish(self, sums: Array, bias: Array | None) -> Array:
        """Integer sums [..., channels], in any type, -> the output."""
        channels = sums.shape[-1]
        flat = sums.reshape(-1, channels)
        result = np.empty(flat.shape, self.dtype)
        rows = max(1, BLOCK // channels)
        for row in range(0, len(flat), rows):
            block = flat[row : row + rows].astype(np.int64)
            if bias is not None:
                block += bias
            if self.wide:
                block = multiply_by_quantized_multiplier_64(block, self.multipliers, self.shifts)
            else:
                wrapped = block.astype(np.int32)
                block = multiply_by_quantized_multiplier(wrapped, self.multipliers, self.shifts)
            block += self.output_zero
            result[row : row + rows] = np.minimum(np.maximum(block, self.low), self.high)
        return result.reshape(sums.shape)


def requantization(
    ctx: PrepareContext,
    x: TensorInfo,
    filter: TensorInfo,
    bias: TensorInfo | None,
    channels: int,
    activation: int,
    *,
    wide: bool = False,
) -> Requantization:
    """The epilogue of a convolution to ``channels`` outputs. Raises through ``ctx`` for scales that TFLite refuses."""
    output = ctx.output()
    input_scale = np.float64(require_scale(ctx, "input", x))
    output_scale = np.float64(require_scale(ctx, "output", output))
    scales = check_filter_scales(ctx, filter, channels)
    with np.errstate(all="ignore"):
        if x.type == TensorType.UINT8:
            product = np.float32(input_scale) * np.float32(scales[0])
            if bias is not None:
                exact_product = input_scale * np.float64(scales[0])
                error = abs(exact_product - bias.quantization.scale) / output_scale
                if not error <= 0.02:
                    ctx.fail(
                        f"bias scale {bias.quantization.scale:g} must be input scale x filter scale = "
                        f"{exact_product:g}, to 0.02 of the output scale {output_scale:g}"
                    )
            ctx.require(product >= 0, f"input scale x filter scale must not be negative, got {product:g}")
            reals = np.array([np.float64(product) / output_scale])
        else:
            reals = input_scale * scales.astype(np.float64) / output_scale
    multipliers, shifts = quantize_multipliers(reals)
    low, high = quantized_limits(ctx, activation)
    zero = x.quantization.zero_point
    least, greatest = integer_range(x.type)
    return Requantization(
        multipliers,
        shifts,
        input_zero=zero,
        largest_input=max(abs(least - zero), abs(greatest - zero)),
        filter_zero=filter.quantization.zero_point if x.type == TensorType.UINT8 else 0,
        output_zero=output.quantization.zero_point,
        low=low,
        high=high,
        dtype=numpy_dtype(output.type),
        wide=wide,
    )


def check_filter_scales(ctx: PrepareContext, filter: TensorInfo, channels: int) -> NDArray[np.float32]:
    """The scales of a quantized filter: one, or one for each output channel, along the dimension they belong to."""
    quantization = filter.quantization
    count, dimension = quantization.scales.size, quantization.dimension
    ctx.require(quantization, f"filter must be quantized: it is {type_name(filter.type)} without a scale")
    ctx.require(count in (1, channels), f"filter has {count} scales, must have 1 or {channels} (one a channel)")
    if count > 1:
        ctx.require(
            filter.type in (TensorType.INT8, TensorType.INT4),
            f"a {type_name(filter.type)} filter must have a single scale, got {count}",
        )
        ctx.require(
            0 <= dimension < len(filter.shape) and filter.shape[dimension] == channels,
            f"filter {list(filter.shape)} is quantized along dimension {dimension}, "
            f"which must be that of the {channels} output channels",
        )
    return quantization.scales


def check_types(
    ctx: PrepareContext, x: TensorInfo, filter: TensorInfo, filter_types: Mapping[TensorType, Sequence[TensorType]]
) -> None:
    """The filter has a type that goes with the input's, the output has the input's."""
    allowed = filter_types[x.type]
    if filter.type not in allowed:
        names = " or ".join(type_name(t) for t in allowed)
        ctx.fail(f"filter must be {names} with {type_name(x.type)} input, got {type_name(filter.type)}")
    output = ctx.output()
    if output.type != x.type:
        ctx.fail(f"output must be {type_name(x.type)} like the input, got {type_name(output.type)}")


def check_bias(ctx: PrepareContext, bias: TensorInfo, input_type: TensorType, channels: int) -> None:
    """A bias has one element for each output channel, the input's type or its accumulators', and zero point 0."""
    allowed = BIAS_TYPES[input_type]
    if bias.type not in allowed:
        names = " or ".join(type_name(t) for t in allowed)
        ctx.fail(f"bias must be {names} with {type_name(input_type)} input, got {type_name(bias.type)}")
    if input_type != TensorType.FLOAT32:
        ctx.require(bias.quantization.zero_point == 0, f"bias zero point must be 0, got {bias.quantization.zero_point}")
    elements = math.prod(bias.shape)
    if elements != channels:
        ctx.fail(f"bias must have {channels} elements (one an output channel), got {elements} {list(bias.shape)}")


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
