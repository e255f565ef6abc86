"""CONV_2D: cross-correlation of an NHWC image with a bank of filters, bias, fused activation.

``output[n, y, x, o] = activation(bias[o] + sum of input[n, y*stride_h + i*dilation_h - top, x*stride_w + j*dilation_w -
left, c] * filter[o, i, j, c])`` over the elements inside the image; `_conv_geometry` has the sizes and the padding.

Shapes: input [N, H, W, C], filter [O, h, w, C / groups], bias of O elements (it may have any rank, and must be there),
output [N, H', W', O]. C must be a multiple of the filter's depth and O of the number of groups; filter ``o`` sees the
channels of group ``o // (O / groups)``. No dimension but N may be 0; strides and dilations are 1 to 32767.

Types (input and output alike / filter / bias):

- float32 / float32 / float32. RELU, RELU6 and RELU_N1_TO_1 clamp; TFLite ignores TANH and SIGN_BIT here.
- uint8 / uint8 / int32, one filter scale: `_requantization`.
- int8 / int8 or int4 / int32, one filter scale or one for each filter, filter zero points 0.
- int16 / int8 or int4 / int64, or int32 where ``quantized_bias_type`` says so; zero points 0. TFLite reads an int32
  bias as int64 where ``quantized_bias_type`` is not set; here its values count.
- float32 / int8, int4 or uint8 / float32, hybrid: `_dynamic_range` quantizes samples. Where the filter's scales differ
  among themselves, or there are groups (which need a scale for each filter), it does so asymmetrically, and the result
  is ``sum * filter_scale[o] * sample_scale + bias``; else symmetrically, and it is ``sum * (sample_scale *
  filter_scale) + bias``. A uint8 filter holds the bits of int8 values; it counts as having a single scale and takes no
  groups. Filter zero points are ignored.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from gossamer.arrays import NDArray
from gossamer.ops import _int16, _narrow_groups, _qd8
from gossamer.ops._conv_geometry import Window, check_sizes, geometry, image_windows
from gossamer.ops._convolution import (
    QuantizedConvolution,
    check_bias,
    check_types,
    convolve,
    exact_type,
    prepare_quantized_convolution,
)
from gossamer.ops._dynamic_range import lower_rows, quantize_asymmetric, quantize_symmetric, signed
from gossamer.ops._elementwise import fused_activation
from gossamer.ops._requantization import (
    byte_weights,
    check_int16,
    objection,
    of_sums,
    requantization,
    requantized_twice,
)
from gossamer.ops._vector_activation import lower_activation
from gossamer.ops.lowering import Expression, Lowering
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, Quantizes, Shape, TensorInfo, Version
from gossamer.ops.op_signature import HAS_OPTIONS, Condition, operand_types, per_channel
from gossamer.records import record
from gossamer.schema.enums import TensorType
from gossamer.schema.options import Conv2DOptions
from gossamer.views import FixedPoint, Geometry, Requantization, View

FILTER_TYPES = {
    TensorType.FLOAT32: (TensorType.FLOAT32, TensorType.INT8, TensorType.INT4, TensorType.UINT8),
    TensorType.UINT8: (TensorType.UINT8,),
    TensorType.INT8: (TensorType.INT8, TensorType.INT4),
    TensorType.INT16: (TensorType.INT8, TensorType.INT4),
}

HYBRID = operand_types(TensorType.FLOAT32, TensorType.INT8, TensorType.FLOAT32)
GROUPED = Condition(
    "{input[0]} and {input[1]} differ in their channels",
    "{input[0]} and {input[1]} have the same channels",
    lambda s: s.input(0).shape and s.input(0).shape[3:4] != s.input(1).shape[3:4],
)

op = OpDef(
    "CONV_2D",
    inputs=("input", "filter", "bias"),
    outputs=("output",),
    versions=(
        Version(1, "1.5.0"),
        Version(2, "1.14.0", HYBRID),
        Version(3, "1.14.0", operand_types(TensorType.INT8, TensorType.INT8, TensorType.INT8)),
        Version(4, "2.3.0", operand_types(TensorType.INT16, TensorType.INT16, TensorType.INT16)),
        Version(5, "2.4.0", HYBRID & per_channel(1, 0)),
        Version(6, "2.9.0", GROUPED),
        Version(7, "2.11.0", operand_types(TensorType.INT8, TensorType.INT4, TensorType.INT8) & ~GROUPED),
        Version(8, "2.15.0", operand_types(TensorType.INT16, TensorType.INT8, TensorType.INT16) & HAS_OPTIONS),
    ),
    types={
        "input": tuple(FILTER_TYPES),
        "filter": (TensorType.FLOAT32, TensorType.UINT8, TensorType.INT8, TensorType.INT4),
        "bias": (TensorType.FLOAT32, TensorType.INT32, TensorType.INT64),
        "output": tuple(FILTER_TYPES),
    },
    options=Conv2DOptions,
    quantizes=Quantizes(weights=1, channel=0, bias=2, hybrid=True),
)


@record(frozen=True, eq=False)
class Data:
    """``quantized`` is there for integer inputs, ``scales`` for hybrid filters: [O] or [1]. ``per_channel`` tells of a
    hybrid filter that its samples are quantized asymmetrically."""

    windows: tuple[Window, Window]
    quantized: QuantizedConvolution | None
    scales: NDArray[np.float32] | None
    per_channel: bool


@op.prepare
def prepare(ctx: PrepareContext) -> Data:
    x, filter, bias = ctx.input(0), ctx.input(1), ctx.input(2)
    options = ctx.options
    check_sizes(ctx, "input", x.shape, 4, empty=(0,))
    check_sizes(ctx, "filter", filter.shape, 4)
    channels, depth = filter.shape[0], filter.shape[3]
    groups, rest = divmod(x.shape[3], depth)
    ctx.require(rest == 0, f"input has {x.shape[3]} channels, which is not a multiple of the filter's depth, {depth}")
    ctx.require(channels % groups == 0, f"{channels} filters cannot be shared out among {groups} groups of channels")
    check_types(ctx, x, filter, FILTER_TYPES)
    check_bias(ctx, bias, x.type, channels)
    wide = check_int16(ctx, x, bias, options.quantized_bias_type)
    if x.type in (TensorType.INT8, TensorType.INT16):
        ctx.require(not filter.quantization.zero_points.any(), "the zero points of the filter must be 0")
    windows = image_windows(ctx, x.shape, filter.shape[1:3], options)
    shape = (x.shape[0], windows[0].output, windows[1].output, channels)
    hybrid = x.type == TensorType.FLOAT32 and filter.type != TensorType.FLOAT32
    quantized, scales, per_channel = None, None, False
    if x.type != TensorType.FLOAT32:
        activation = options.fused_activation_function
        quantized = prepare_quantized_convolution(ctx, x, filter, bias, channels, activation, wide=wide)
    elif hybrid:
        scales, per_channel = _hybrid_scales(ctx, filter, groups)
    _request_scratch(ctx, shape, groups, hybrid, per_channel)
    ctx.set_shape(0, shape)
    return Data(windows, quantized, scales, per_channel)


def _hybrid_scales(ctx: PrepareContext, filter: TensorInfo, groups: int) -> tuple[NDArray[np.float32], bool]:
    """The scales of a hybrid filter, and whether they count one by one. A filter without any is scaled by 0."""
    scales, dimension, channels = filter.quantization.scales, filter.quantization.dimension, filter.shape[0]
    even = scales.size < 2 or filter.type == TensorType.UINT8 or bool((scales == scales[0]).all())
    if even and groups == 1:
        return (scales[:1] if scales.size else np.zeros(1, np.float32)), False
    if filter.type == TensorType.UINT8:
        ctx.fail("a uint8 filter cannot have groups with float32 input; int8 and int4 can")
    if dimension != 0 or scales.size != channels:
        ctx.fail(
            f"filter {list(filter.shape)} must have {channels} scales along dimension 0, "
            f"got {scales.size} along dimension {dimension}"
        )
    return scales, True


def _request_scratch(ctx: PrepareContext, shape: Shape, groups: int, hybrid: bool, per_channel: bool) -> None:
    """What TFLite's optimized kernel asks for: im2col, and for hybrid filters the quantized input, a scale for each
    position, accumulators; where filter scales count one by one also the zero points, and the filter's sums to keep."""
    x, filter = ctx.input(0), ctx.input(1)
    channels, *window, depth = filter.shape
    pointwise = (ctx.options.stride_h, ctx.options.stride_w, *window) == (1, 1, 1, 1)
    if not pointwise or (ctx.options.dilation_h_factor, ctx.options.dilation_w_factor) != (1, 1):
        patches = (*shape[:3], window[0] * window[1] * depth)
        ctx.require(math.prod(patches) < 1 << 31, f"its im2col matrix {list(patches)} exceeds 2**31 elements")
        ctx.temporary(TensorType.INT8 if hybrid else x.type, patches)
    if hybrid:
        positions = (math.prod(x.shape[:3]) * groups,)
        ctx.temporary(TensorType.INT8, x.shape)
        ctx.temporary(TensorType.FLOAT32, positions)
        ctx.temporary(TensorType.INT32, (channels, math.prod(shape[:3])))
        if per_channel:
            ctx.temporary(TensorType.INT32, positions)
            ctx.temporary(TensorType.INT32, (channels,), persistent=True)


@op.reference
def reference(ctx: InvokeContext) -> Array:
    data: Data = ctx.data
    x, filter, bias = ctx.value(0), ctx.value(1), ctx.value(2).reshape(-1)
    if data.quantized is not None:
        x, filter = data.quantized.operands(x, filter, 0)
        return data.quantized.finish(convolve(x, filter, data.windows), bias)
    if data.scales is None:
        sums = convolve(x, filter, data.windows)
    else:
        sums = _hybrid_sums(x, filter.view(np.int8), data.scales, data)
    return fused_activation(sums + bias, ctx.options.fused_activation_function)


def _hybrid_sums(x: Array, filter: Array, filter_scales: Array, data: Data) -> Array:
    """The sums in real numbers."""
    per_sample = (-1, 1, 1, 1)
    rows = x.reshape(x.shape[0], math.prod(x.shape[1:]))
    kind = exact_type(255, filter, 0)
    if data.per_channel:
        levels, scales, points = quantize_asymmetric(rows)
        centred = levels.reshape(x.shape) - points.reshape(per_sample)
        real: Array = convolve(centred.astype(kind), filter, data.windows).astype(np.float32)
        return real * filter_scales * scales.reshape(per_sample)
    levels, scales = quantize_symmetric(rows)
    real = convolve(levels.reshape(x.shape).astype(kind), filter, data.windows).astype(np.float32)
    return real * (scales * filter_scales).reshape(per_sample)


@op.lower
def lower(graph: Lowering) -> None:
    if graph.input(0).type == TensorType.INT16:
        _lower_int16(graph)
        return
    if graph.input(0).type in (TensorType.INT8, TensorType.UINT8):
        _lower_bytes(graph)
        return
    if graph.input(1).type == TensorType.INT8 and graph.input(1).is_constant and _qd8.has_constant_bias(graph, 2):
        filter, scales = _qd8.weights_of(graph, 1, ignores_zero_points=True), _qd8.scales_of(graph, 1)
        windows = geometry(graph.data.windows)
        y = _qd8.convolution(graph, graph.value(0), filter, scales, _qd8.bias_of(graph, 2), windows)
        graph.result(_qd8.clamped(graph, y, graph.options.fused_activation_function))
        return
    if graph.input(1).type in (TensorType.INT8, TensorType.INT4, TensorType.UINT8):
        graph.result(_lower_builtin_hybrid(graph))
        return
    x, filter, bias = graph.floats(0, 1, 2)
    if filter.shape[3] == 1 and x.shape[3] > 1:  # as many groups as channels
        weights = graph.reshape(filter, filter.shape[:3]).permute((1, 2, 0))
        y = graph.depthwise(x, weights, bias, geometry(graph.data.windows))
    else:
        y = _of_narrow_groups(graph, x) or graph.convolution(x, filter, bias, geometry(graph.data.windows))
    graph.result(graph.activation(y, graph.options.fused_activation_function))


def _of_narrow_groups(graph: Lowering, x: View) -> View | None:
    """The sum with the bias of what `_narrow_groups` is for."""
    filter, bias, windows = graph.constant(1), graph.constant(2), geometry(graph.data.windows)
    if filter is None or bias is None or not _narrow_groups.are_narrow(x, filter, windows):
        return None

    def depthwise(image: View, part: Array, filters: slice, windows: Geometry) -> View:
        return graph.depthwise(image, graph.array(part), graph.array(bias.ravel()[filters]), windows)

    return _narrow_groups.convolution(graph, x, filter, windows, depthwise)


def _lower_builtin_hybrid(graph: Lowering) -> View:
    """What XNNPACK does not take: other filters, and those and biases that the model computes. Images are as TFLite's
    kernel quantizes them, each by its own range."""
    data: Data = graph.data
    image = graph.input(0).shape
    rows = lower_rows(graph, graph.reshape(graph.value(0), (image[0], math.prod(image[1:]))), data.per_channel)
    levels, windows = graph.reshape(rows.levels, image), geometry(data.windows)
    if graph.constant(1) is None and graph.input(1).type == TensorType.INT8:
        sums = _int16.convolution_of_computed(graph, levels, graph.value(1), None, windows, None)
    else:
        filter = graph.array(signed(graph.known(1)), TensorType.INT8)
        sums = graph.quantized_convolution(levels, filter, None, windows, None, TensorType.INT32)
    scale: Expression = ("mul", ("mul", ("tof32", 0), 2), 1)
    if not data.per_channel or graph.input(1).type == TensorType.INT8:
        scale = ("mul", ("tof32", 0), ("mul", 1, 2))
    scales = graph.reshape(rows.scales, (image[0], 1, 1, 1)), graph.array(np.asarray(data.scales, np.float32))
    y = graph.map(("add", scale, 3), sums, *scales, graph.value(2), type=TensorType.FLOAT32)
    return lower_activation(graph, y, graph.options.fused_activation_function)


def _lower_int16(graph: Lowering) -> None:
    x, bias, windows = graph.value(0), graph.value(2), geometry(graph.data.windows)
    to = _int16.requantization(graph.data.quantized)
    if graph.constant(1) is None and graph.input(1).type == TensorType.INT8:
        graph.result(_int16.convolution_of_computed(graph, x, graph.value(1), bias, windows, to))
        return
    weights = _int16.weights_of(graph, 1)
    if weights.shape[3] == 1 and x.shape[3] > 1 and to.rounding == "once":  # as many groups as channels
        filters = graph.array(np.ascontiguousarray(weights[..., 0].transpose(1, 2, 0)))
        graph.result(graph.quantized_depthwise(x, filters, bias, windows, to))
    elif to.rounding == "once" and _narrow_groups.are_narrow(x, weights, windows):
        graph.result(_of_narrow_groups_of_integers(graph, x, weights, windows, to))
    else:
        graph.result(graph.quantized_convolution(x, graph.array(weights), bias, windows, to))


def _of_narrow_groups_of_integers(
    graph: Lowering, x: View, weights: Array, windows: Geometry, to: FixedPoint | Requantization
) -> View:
    bias = graph.optional_value(2)
    numbers = None if bias is None or not bias.is_constant else graph.known(2).ravel()

    def depthwise(image: View, part: Array, filters: slice, windows: Geometry) -> View:
        some = bias if numbers is None else graph.array(np.ascontiguousarray(numbers[filters]))
        return graph.quantized_depthwise(image, graph.array(part), some, windows, to.of_channels(filters))

    return _narrow_groups.convolution(graph, x, weights, windows, depthwise)


def _lower_bytes(graph: Lowering) -> None:
    x, filter, bias = graph.value(0), byte_weights(graph, 1, computed=True), graph.value(2)
    activation, windows = graph.options.fused_activation_function, geometry(graph.data.windows)
    if (
        graph.input(1).type == TensorType.INT4
        or not graph.input(1).is_constant
        or objection(graph, activation) is not None
    ):
        to = graph.data.quantized
        numbers = of_sums(graph, to.low, to.high)
        sums = graph.quantized_convolution(x, filter, bias, windows, numbers, TensorType.INT32)
        rounding: Literal["requant", "requantup"] = "requant" if filter.shape[3] != x.shape[3] else "requantup"
        graph.result(requantized_twice(graph, rounding, sums, to.multipliers, to.shifts, numbers, x.type))
        return
    numbers = requantization(graph, activation)
    if filter.shape[3] == 1 and x.shape[3] > 1:  # as many groups as channels
        weights = graph.array(np.ascontiguousarray(graph.known(1)[..., 0].transpose(1, 2, 0)))
        y = graph.quantized_depthwise(x, weights, bias, windows, numbers)
    elif _narrow_groups.are_narrow(x, graph.known(1), windows):
        y = _of_narrow_groups_of_integers(graph, x, graph.known(1), windows, numbers)
    else:
        y = graph.quantized_convolution(x, filter, bias, windows, numbers)
    graph.result(y)
