"""DEPTHWISE_CONV_2D: each channel of an NHWC image filtered by itself, by one filter or several.

``output[n, y, x, c*M + m] = activation(bias[c*M + m] + sum of input[n, y*stride_h + i*dilation_h - top, x*stride_w +
j*dilation_w - left, c] * filter[0, i, j, c*M + m])`` over the elements inside the image; `_conv_geometry` has the
sizes and the padding. The multiplier M is the filter's channels divided by the input's; the option
``depth_multiplier`` is not looked at (TFLite's int16 and hybrid kernels do, and go wrong where it disagrees).

Shapes: input [N, H, W, C], filter [1, h, w, C * M], bias [C * M] if there is one, output [N, H', W', C * M]. No
dimension but N may be 0; strides and dilations are 1 to 32767.

Types (input and output alike / filter / bias):

- float32 / float32 / float32. RELU, RELU6 and RELU_N1_TO_1 clamp; TFLite ignores TANH and SIGN_BIT here.
- uint8 / uint8 / int32, one filter scale: `_requantization`.
- int8 / int8 or int4 / int32, one filter scale or one for each channel; filter zero points are ignored. Machine code
  computes bytes as XNNPACK does (`_requantization`), but for int4, where there are filter zero points, and without a
  bias, which that leaves to TFLite's kernels.
- int16 / int8 / int64, zero points 0.
- float32 / int8 / float32, hybrid: `_dynamic_range` quantizes each sample asymmetrically, and the result is
  ``sum * (filter_scale[channel] * sample_scale) + bias``. The filter has as many scales as elements along the dimension
  it is quantized along, so that one scale, along dimension 0, is possible too; it serves every channel (TFLite reads
  past it).
"""

from __future__ import annotations

import math

import numpy as np

from gossamer.arrays import NDArray
from gossamer.ops import _int16, _qd8
from gossamer.ops._conv_geometry import Window, check_sizes, geometry, image_windows
from gossamer.ops._convolution import (
    QuantizedConvolution,
    check_bias,
    check_types,
    convolve_depthwise,
    exact_type,
    prepare_quantized_convolution,
)
from gossamer.ops._dynamic_range import quantize_asymmetric
from gossamer.ops._elementwise import fused_activation
from gossamer.ops._requantization import (
    check_int16,
    objection,
    of_sums,
    requantization,
    requantized_in_vectors,
    requantized_twice,
)
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, Quantizes, Version
from gossamer.ops.op_signature import operand_types, option, per_channel
from gossamer.records import record
from gossamer.schema.enums import TensorType
from gossamer.schema.options import DepthwiseConv2DOptions
from gossamer.views import View

FILTER_TYPES = {
    TensorType.FLOAT32: (TensorType.FLOAT32, TensorType.INT8),
    TensorType.UINT8: (TensorType.UINT8,),
    TensorType.INT8: (TensorType.INT8, TensorType.INT4),
    TensorType.INT16: (TensorType.INT8,),
}

HYBRID = operand_types(TensorType.FLOAT32, TensorType.INT8, TensorType.FLOAT32)

op = OpDef(
    "DEPTHWISE_CONV_2D",
    inputs=("input", "filter", "bias?"),
    outputs=("output",),
    versions=(
        Version(1, "1.5.0"),
        Version(2, "1.12.0", ~option("dilation_w_factor", 1) | ~option("dilation_h_factor", 1)),
        Version(3, "1.14.0", operand_types(TensorType.INT8, TensorType.INT8, TensorType.INT8)),
        Version(4, "2.2.0", HYBRID),
        Version(5, "2.3.0", operand_types(TensorType.INT16, TensorType.INT16, TensorType.INT16)),
        Version(6, "2.3.0", HYBRID & per_channel(1, 3)),
        Version(7, "2.11.0", operand_types(TensorType.INT8, TensorType.INT4, TensorType.INT8)),
    ),
    types={
        "input": tuple(FILTER_TYPES),
        "filter": (TensorType.FLOAT32, TensorType.UINT8, TensorType.INT8, TensorType.INT4),
        "bias": (TensorType.FLOAT32, TensorType.INT32, TensorType.INT64),
        "output": tuple(FILTER_TYPES),
    },
    options=DepthwiseConv2DOptions,
    reference_version=6,
    quantizes=Quantizes(weights=1, channel=3, bias=2, hybrid=True),
)


@record(frozen=True, eq=False)
class Data:
    """``quantized`` is there for integer inputs, ``scales`` ([C * M] or [1]) for hybrid filters."""

    windows: tuple[Window, Window]
    quantized: QuantizedConvolution | None
    scales: NDArray[np.float32] | None


@op.prepare
def prepare(ctx: PrepareContext) -> Data:
    x, filter, bias = ctx.input(0), ctx.input(1), ctx.optional(2)
    options = ctx.options
    check_sizes(ctx, "input", x.shape, 4, empty=(0,))
    check_sizes(ctx, "filter", filter.shape, 4)
    channels = filter.shape[3]
    ctx.require(filter.shape[0] == 1, f"filter must be [1, height, width, channels], got {list(filter.shape)}")
    ctx.require(
        channels % x.shape[3] == 0, f"filter has {channels} channels, not a multiple of the input's {x.shape[3]}"
    )
    check_types(ctx, x, filter, FILTER_TYPES)
    if bias is not None:
        check_bias(ctx, bias, x.type, channels)
        ctx.require(len(bias.shape) == 1, f"bias must have 1 dimension, got {len(bias.shape)} {list(bias.shape)}")
        if x.type == TensorType.INT16:
            ctx.require(bias.type == TensorType.INT64, "bias must be int64 with int16 input, got int32")
    elif len(ctx.inputs) == 3:
        ctx.fail("bias may be absent, but a third input must not be -1")
    wide = check_int16(ctx, x, bias, TensorType.INT64)
    windows = image_windows(ctx, x.shape, filter.shape[1:3], options)
    quantized, scales = None, None
    if x.type != TensorType.FLOAT32:
        activation = options.fused_activation_function
        quantized = prepare_quantized_convolution(ctx, x, filter, bias, channels, activation, wide=wide)
    elif filter.type != TensorType.FLOAT32:
        scales = _hybrid_scales(ctx)
    ctx.set_shape(0, (x.shape[0], windows[0].output, windows[1].output, channels))
    return Data(windows, quantized, scales)


def _hybrid_scales(ctx: PrepareContext) -> NDArray[np.float32]:
    """The scales of a hybrid filter; requests what TFLite's kernel asks for: the quantized input, and for each sample
    a scale and a zero point."""
    x, filter = ctx.input(0), ctx.input(1)
    scales, dimension = filter.quantization.scales, filter.quantization.dimension
    ctx.require(scales.size, "filter must be quantized: it is int8 without a scale")
    if not (0 <= dimension < 4 and scales.size == filter.shape[dimension] and scales.size in (1, filter.shape[3])):
        ctx.fail(
            f"filter {list(filter.shape)} must have {filter.shape[3]} scales along dimension 3, "
            f"got {scales.size} along dimension {dimension}"
        )
    ctx.temporary(TensorType.INT8, x.shape)
    ctx.temporary(TensorType.FLOAT32, x.shape[:1])
    ctx.temporary(TensorType.INT32, x.shape[:1])
    return scales


@op.reference
def reference(ctx: InvokeContext) -> Array:
    data: Data = ctx.data
    x, filter, bias = ctx.value(0), ctx.value(1)[0], ctx.optional_value(2)
    if data.quantized is not None:
        x, filter = data.quantized.operands(x, filter, -1)
        return data.quantized.finish(convolve_depthwise(x, filter, data.windows), bias)
    if data.scales is None:
        sums = convolve_depthwise(x, filter, data.windows)
    else:
        sums = _hybrid_sums(x, filter, data.scales, data.windows)
    if bias is not None:
        sums = sums + bias
    return fused_activation(sums, ctx.options.fused_activation_function)


def _hybrid_sums(x: Array, filter: Array, filter_scales: Array, windows: tuple[Window, Window]) -> Array:
    """The sums in real numbers."""
    per_sample = (-1, 1, 1, 1)
    levels, scales, points = quantize_asymmetric(x.reshape(x.shape[0], math.prod(x.shape[1:])))
    centred = levels.reshape(x.shape) - points.reshape(per_sample)
    sums = convolve_depthwise(centred.astype(exact_type(255, filter, -1)), filter, windows).astype(np.float32)
    real: Array = sums * (filter_scales * scales.reshape(per_sample))
    return real


@op.lower
def lower(graph: Lowering) -> None:
    if graph.input(0).type == TensorType.INT16:
        weights, to = graph.array(_int16.weights_of(graph, 1)[0]), _int16.requantization(graph.data.quantized)
        windows, bias = geometry(graph.data.windows), graph.optional_value(2)
        graph.result(graph.quantized_depthwise(graph.value(0), weights, bias, windows, to))
        return
    if graph.input(0).type in (TensorType.INT8, TensorType.UINT8):
        graph.result(_lower_bytes(graph))
        return
    if graph.input(1).type == TensorType.INT8:
        graph.result(_lower_hybrid(graph))
        return
    x, filter = graph.floats(0, 1)
    weights = graph.reshape(filter, filter.shape[1:])
    y = graph.depthwise(x, weights, graph.optional_value(2), geometry(graph.data.windows))
    graph.result(graph.activation(y, graph.options.fused_activation_function))


def _lower_hybrid(graph: Lowering) -> View:
    filter, scales = graph.value(1), _qd8.scales_of(graph, 1)
    if scales.size != filter.shape[3]:
        graph.refuse("hybrid weights have one scale")
    graph.known(1)
    weights = graph.reshape(filter, filter.shape[1:])
    y = _qd8.depthwise(graph, graph.value(0), weights, scales, graph.optional_value(2), geometry(graph.data.windows))
    return graph.activation(y, graph.options.fused_activation_function)


def _lower_bytes(graph: Lowering) -> View:
    x, filter, bias = graph.value(0), graph.input(1), graph.optional_value(2)
    if filter.type != TensorType.UINT8 and filter.quantization.zero_points.any():
        graph.refuse("its filter has zero points, which the reference kernel ignores")
    activation, windows = graph.options.fused_activation_function, geometry(graph.data.windows)
    if filter.type == TensorType.INT4:
        return _lower_builtin(graph, x, bias)
    weights = graph.reshape(graph.value(1), filter.shape[1:])
    filters = graph.reshape(weights.permute((2, 0, 1)), (weights.shape[2], *weights.shape[:2], 1))
    if bias is None or not graph.input(1).is_constant or objection(graph, activation) is not None:
        to: QuantizedConvolution = graph.data.quantized
        numbers = of_sums(graph, to.low, to.high)
        sums = graph.quantized_convolution(x, filters, bias, windows, numbers, TensorType.INT32)
        if x.type == TensorType.UINT8:
            return requantized_twice(graph, "requant", sums, to.multipliers, to.shifts, numbers, x.type)
        return requantized_in_vectors(graph, sums, to.multipliers, to.shifts, numbers, x.type)
    if x.shape[3] == 1 and weights.shape[2] > 1:
        return graph.quantized_convolution(x, filters, bias, windows, requantization(graph, activation))
    return graph.quantized_depthwise(x, weights, bias, windows, requantization(graph, activation))


def _lower_builtin(graph: Lowering, x: View, bias: View | None) -> View:
    """int8 with int4, which XNNPACK does not take, as TFLite's optimized kernel has it."""
    to: QuantizedConvolution = graph.data.quantized
    zero = graph.array(np.array(to.input_zero, np.int32))
    centred = graph.map(("sub", ("toi32", 0), 1), x, zero, type=TensorType.INT16)
    weights, windows = graph.array(_int16.weights_of(graph, 1)[0]), geometry(graph.data.windows)
    sums = graph.quantized_depthwise(centred, weights, None, windows, None, TensorType.INT32)
    if bias is not None:
        sums = graph.map("add", sums, bias)
    return requantized_in_vectors(graph, sums, to.multipliers, to.shifts, of_sums(graph, to.low, to.high), x.type)
