"""The three convolutions: ordinary (grouped), depthwise and transposed, over any number of spatial axes.

They take and return numbers of one type. float32 serves real numbers, and integers too where every partial sum fits
24 bits; `exact_type` finds the narrowest type in which a sum of products of integers cannot round.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.dtypes import numpy_dtype, type_name
from gossamer.ops._conv_geometry import ALL, Window, taps
from gossamer.ops._elementwise import quantized_limits, require_scale
from gossamer.ops._requantization import FixedPointRequantization
from gossamer.ops.op_def import PrepareContext, Shape, TensorInfo
from gossamer.quantization import integer_range, quantize_multipliers
from gossamer.records import record
from gossamer.schema.enums import TensorType

Array = NDArray[Any]

# Elements of a patch matrix built at once: enough for BLAS, little enough for caches and for hostile shapes.
PATCH_ELEMENTS = 1 << 22


def exact_type(largest_input: int, filter: Array, output_axis: int) -> type[np.floating[Any]] | type[np.int64]:
    """The type for sums of products of integers: inputs of at most this magnitude, one output to each index of the
    filter along ``output_axis``. No order of summation exceeds the largest input times the sum of the magnitudes."""
    others = tuple(axis for axis in range(filter.ndim) if axis != output_axis % filter.ndim)
    magnitudes = np.abs(filter.astype(np.promote_types(filter.dtype, np.int32)))
    weight = magnitudes.sum(axis=others, dtype=np.int64).max(initial=0)
    bound = largest_input * int(weight)
    if bound <= 1 << 24:
        return np.float32
    return np.float64 if bound <= 1 << 53 else np.int64


def convolve(x: Array, filter: Array, windows: Sequence[Window]) -> Array:
    """x [N, *elements, C], filter [O, *taps, C / groups] -> [N, *places, O], in the type of ``x``.

    Filter ``o`` belongs to group ``o // (O / groups)`` and meets that group's channels only.
    """
    batches, outputs, depth = x.shape[0], filter.shape[0], filter.shape[-1]
    groups = x.shape[-1] // depth  # their axis comes first from here on
    places = tuple(window.output for window in windows)
    met = [window.taps() for window in windows]
    for axis, window in enumerate(windows, 1):
        if len(met[axis - 1]) < window.filter:
            filter = filter.take(met[axis - 1], axis)
    matrices = filter.reshape(groups, outputs // groups, -1).swapaxes(1, 2).astype(x.dtype, copy=False)
    x = np.moveaxis(x.reshape(*x.shape[:-1], groups, depth), -2, 0)
    result = np.zeros((batches, *places, outputs), x.dtype)
    if result.size == 0 or not all(met):
        return result
    if all(window.is_identity for window in windows):
        _multiply(x, matrices, result)
        return result
    rows, samples = _share(batches, places, groups * matrices.shape[1])
    for sample in range(0, batches, samples):
        for row in range(0, places[0], rows):
            block = (windows[0].part(row, min(row + rows, places[0])), *windows[1:])
            target = result[sample : sample + samples, row : row + rows]
            _multiply(_patches(x[:, sample : sample + samples], block, met), matrices, target)
    return result


def _share(batches: int, places: Shape, patch: int) -> tuple[int, int]:
    """How many rows of how many samples make a patch matrix of agreeable size."""
    row = max(1, patch * int(np.prod(places[1:], dtype=np.int64)))
    rows = min(places[0], max(1, PATCH_ELEMENTS // row))
    return rows, (max(1, PATCH_ELEMENTS // (row * places[0])) if rows == places[0] else 1)


def _patches(x: Array, windows: Sequence[Window], met: Sequence[Sequence[int]]) -> Array:
    """x [groups, N, *elements, D] -> [groups, N, *places, taps x D], zero where a tap meets nothing."""
    groups, batches, depth = x.shape[0], x.shape[1], x.shape[-1]
    positions = [{tap: position for position, tap in enumerate(axis)} for axis in met]
    places = tuple(window.output for window in windows)
    patches = np.zeros((groups, batches, *places, *(len(axis) for axis in met), depth), x.dtype)
    for index, elements, at in taps(*windows):
        position = tuple(axis[tap] for axis, tap in zip(positions, index, strict=True))
        patches[ALL + ALL + at + position] = x[ALL + ALL + elements]
    return patches.reshape(groups, batches, *places, -1)


def _multiply(patches: Array, matrices: Array, result: Array) -> None:
    """patches [groups, *, K], matrices [groups, K, O / groups] -> result [*, O]."""
    groups, _, outputs = matrices.shape
    product = np.matmul(patches.reshape(groups, -1, patches.shape[-1]), matrices)
    result[...] = np.moveaxis(product, 0, 1).reshape(*result.shape[:-1], groups * outputs)


def convolve_depthwise(x: Array, filter: Array, windows: Sequence[Window]) -> Array:
    """x [N, *elements, C], filter [*taps, C x M] -> [N, *places, C x M], in the type of ``x``.

    Output channel ``c * M + m`` is input channel ``c`` under filter ``c * M + m``.
    """
    channels = filter.shape[-1]
    multiplier = channels // x.shape[-1]
    filter = filter.astype(x.dtype, copy=False)
    result = np.zeros((x.shape[0], *(window.output for window in windows), channels), x.dtype)
    for index, elements, at in taps(*windows):
        met = x[ALL + elements]
        if multiplier > 1:
            met = np.repeat(met, multiplier, axis=-1)
        result[ALL + at] += met * filter[index]
    return result


def convolve_transposed(x: Array, filter: Array, windows: Sequence[Window]) -> Array:
    """x [N, *places, C], filter [O, *taps, C] -> [N, *elements, O], in the type of ``x``: each place adds its filter,
    weighted by the value there, to the elements that the window covers."""
    batches, depth = x.shape[0], x.shape[-1]
    outputs = filter.shape[0]
    matrices = np.moveaxis(filter, 0, -1).astype(x.dtype, copy=False)
    result = np.zeros((batches, *(window.input for window in windows), outputs), x.dtype)
    for index, elements, at in taps(*windows):
        met = x[ALL + at]
        product = met.reshape(-1, depth) @ matrices[index]
        result[ALL + elements] += product.reshape(*met.shape[:-1], outputs)
    return result


@record(frozen=True, eq=False)
class QuantizedConvolution(FixedPointRequantization):
    """What a quantized convolution is prepared to: how it requantizes, and the zero points of its operands.

    Multipliers are made in double precision, one for each filter scale, except for uint8, where float32(input_scale *
    filter_scale) is divided. Sums of int16 inputs are wide, unless ``quantized_bias_type`` says int32.
    """

    input_zero: int
    largest_input: int
    filter_zero: int

    def operands(self, x: Array, filter: Array, output_axis: int) -> tuple[Array, Array]:
        """Input and filter less their zero points, the input in a type in which the sums are exact."""
        if self.filter_zero:
            filter = filter.astype(np.int64) - self.filter_zero
        kind = exact_type(self.largest_input, filter, output_axis)
        x = x.astype(kind)
        if self.input_zero:
            x -= kind(self.input_zero)
        return x, filter


def prepare_quantized_convolution(
    ctx: PrepareContext,
    x: TensorInfo,
    filter: TensorInfo,
    bias: TensorInfo | None,
    channels: int,
    activation: int,
    *,
    wide: bool = False,
) -> QuantizedConvolution:
    """A quantized convolution to ``channels`` outputs. Raises through ``ctx`` for scales that TFLite refuses."""
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
    return QuantizedConvolution(
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


BIAS_TYPES = {
    TensorType.FLOAT32: (TensorType.FLOAT32,),
    TensorType.UINT8: (TensorType.INT32,),
    TensorType.INT8: (TensorType.INT32,),
    TensorType.INT16: (TensorType.INT64, TensorType.INT32),
}


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
