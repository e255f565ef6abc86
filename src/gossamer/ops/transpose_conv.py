"""TRANSPOSE_CONV: the gradient of CONV_2D by its input, used forwards to enlarge an image.

Every input element, times the filter, is added to the stretch of the output that the filter's window covers there:
``output[n, y*stride_h + i - top, x*stride_w + j - left, o] += input[n, y, x, c] * filter[o, i, j, c]``; what falls
outside is lost; then bias and activation. The window is that of a convolution from the output's size to the input's
(`_conv_geometry`), whose result must be the input's size; there is no dilation.

Shapes: output_shape, int32 [4], holds [N, H', W', O]; filter [O, h, w, C]; input [N, H, W, C]; bias of O elements, if
there is one; output as output_shape says. No dimension but N may be 0; strides are 1 to 32767. The output is dynamic
unless output_shape is known when the model is prepared; then what does not fit is an error of the invocation.

Types (input and output alike / filter / bias):

- float32 / float32 / float32. RELU, RELU6 and RELU_N1_TO_1 clamp; TFLite ignores TANH and SIGN_BIT here.
- uint8 / uint8 / int32, one filter scale: `_requantization`.
- int8 / int8 / int32, one filter scale or one for each output channel; filter zero points are ignored.
- int16 / int8 / int64, or int32 where ``quantized_bias_type`` says so; zero points of input and output 0.
- float32 / int8 / float32, hybrid: `_dynamic_range` quantizes each sample asymmetrically, and the result is
  ``sum * filter_scale[o] * sample_scale + bias``. (TFLite scales every product before it adds: same to rounding.)
"""

from __future__ import annotations

import math

import numpy as np

from gossamer.arrays import NDArray
from gossamer.ops import _int16, _qd8
from gossamer.ops._conv_geometry import INT16_MAX, Window, check_sizes, window
from gossamer.ops._conv_lowering import by_phase, phase_geometry, transposed
from gossamer.ops._convolution import (
    QuantizedConvolution,
    check_bias,
    check_types,
    convolve_transposed,
    exact_type,
    prepare_quantized_convolution,
)
from gossamer.ops._dynamic_range import quantize_asymmetric
from gossamer.ops._elementwise import fused_activation
from gossamer.ops._requantization import (
    byte_weights,
    check_int16,
    objection,
    of_sums,
    requantization,
    requantized,
    requantized_in_vectors,
)
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, Context, InvokeContext, OpDef, PrepareContext, Quantizes, TensorInfo, Version
from gossamer.ops.op_signature import HAS_OPTIONS, given, input_type, operand_types, option
from gossamer.records import record
from gossamer.schema.enums import Padding, TensorType
from gossamer.schema.options import TransposeConvOptions

FILTER_TYPES = {
    TensorType.FLOAT32: (TensorType.FLOAT32, TensorType.INT8),
    TensorType.UINT8: (TensorType.UINT8,),
    TensorType.INT8: (TensorType.INT8,),
    TensorType.INT16: (TensorType.INT8,),
}

op = OpDef(
    "TRANSPOSE_CONV",
    inputs=("output_shape", "filter", "input", "bias?"),
    outputs=("output",),
    versions=(
        Version(1, "1.9.0"),
        Version(2, "2.2.0", input_type(1, TensorType.INT8)),
        Version(3, "2.3.0", given(3)),
        Version(4, "2.13.0", option("fused_activation_function")),
        # TFLite looks at the shape and the filter here, not at the input, so that no real model needs it.
        Version(5, "2.15.0", operand_types(TensorType.INT16, TensorType.INT8, TensorType.INT16) & HAS_OPTIONS),
    ),
    types={
        "output_shape": (TensorType.INT32,),
        "filter": (TensorType.FLOAT32, TensorType.UINT8, TensorType.INT8),
        "input": tuple(FILTER_TYPES),
        "bias": (TensorType.FLOAT32, TensorType.INT32, TensorType.INT64),
        "output": tuple(FILTER_TYPES),
    },
    options=TransposeConvOptions,
    quantizes=Quantizes(weights=1, channel=0, bias=3, hybrid=True),
)


@record(frozen=True, eq=False)
class Data:
    """``windows`` are there if the output's shape is known, ``quantized`` for integer inputs, ``scales`` ([O] or [1])
    for hybrid filters."""

    windows: tuple[Window, Window] | None
    quantized: QuantizedConvolution | None
    scales: NDArray[np.float32] | None


@op.prepare
def prepare(ctx: PrepareContext) -> Data:
    output_shape, filter, x, bias = ctx.input(0), ctx.input(1), ctx.input(2), ctx.optional(3)
    options = ctx.options
    ctx.require(output_shape.shape == (4,), f"output_shape must be a vector of 4, got shape {list(output_shape.shape)}")
    check_sizes(ctx, "input", x.shape, 4, empty=(0,))
    check_sizes(ctx, "filter", filter.shape, 4)
    channels, depth = filter.shape[0], filter.shape[3]
    ctx.require(x.shape[3] == depth, f"input has {x.shape[3]} channels, the filter expects {depth}")
    for axis, stride in (("height", options.stride_h), ("width", options.stride_w)):
        ctx.require(0 < stride <= INT16_MAX, f"{axis}: stride must be 1 to {INT16_MAX}, got {stride}")
    check_types(ctx, x, filter, FILTER_TYPES)
    if bias is not None:
        check_bias(ctx, bias, x.type, channels)
    wide = check_int16(ctx, x, bias, options.quantized_bias_type)
    quantized, scales = None, None
    if x.type != TensorType.FLOAT32:
        activation = options.fused_activation_function
        quantized = prepare_quantized_convolution(ctx, x, filter, bias, channels, activation, wide=wide)
    elif filter.type != TensorType.FLOAT32:
        scales = _hybrid_scales(ctx, filter, x)
    shape = ctx.constant(0)
    if shape is None:
        ctx.set_dynamic(0)
        return Data(None, quantized, scales)
    windows = _windows(ctx, shape)
    ctx.set_shape(0, shape.tolist())
    return Data(windows, quantized, scales)


def _windows(ctx: Context, output_shape: Array) -> tuple[Window, Window]:
    """The windows over the output. Raises where its shape does not go with the input's and the filter's."""
    filter, x, options = ctx.input(1), ctx.input(2), ctx.options
    batches, height, width, channels = output_shape.tolist()
    if batches != x.shape[0] or channels != filter.shape[0] or height < 1 or width < 1:
        ctx.fail(
            f"output_shape {output_shape.tolist()} must be [{x.shape[0]} (the batch), height, width, "
            f"{filter.shape[0]} (the filters)]"
        )
    windows = (
        window(ctx, "height", height, filter.shape[1], options.stride_h, 1, options.padding),
        window(ctx, "width", width, filter.shape[2], options.stride_w, 1, options.padding),
    )
    expected = tuple(w.output for w in windows)
    if expected != x.shape[1:3]:
        ctx.fail(
            f"output_shape {output_shape.tolist()} asks for an input of height and width {list(expected)}, "
            f"got {list(x.shape[1:3])}"
        )
    return windows


def _hybrid_scales(ctx: PrepareContext, filter: TensorInfo, x: TensorInfo) -> NDArray[np.float32]:
    """The scales of a hybrid filter; requests what TFLite's kernel asks for: the quantized input, and for each
    position a scale and a zero point."""
    scales, dimension = filter.quantization.scales, filter.quantization.dimension
    ctx.require(scales.size, "filter must be quantized: it is int8 without a scale")
    if scales.size > 1 and not (0 <= dimension < 4 and scales.size == filter.shape[dimension] == filter.shape[0]):
        ctx.fail(
            f"filter {list(filter.shape)} must have one scale, or {filter.shape[0]} along dimension 0, "
            f"got {scales.size} along dimension {dimension}"
        )
    positions = (math.prod(x.shape[:3]),)
    ctx.temporary(TensorType.INT8, x.shape)
    ctx.temporary(TensorType.FLOAT32, positions)
    ctx.temporary(TensorType.INT32, positions)
    return scales


@op.reference
def reference(ctx: InvokeContext) -> Array:
    data: Data = ctx.data
    filter, x, bias = ctx.value(1), ctx.value(2), ctx.optional_value(3)
    windows = data.windows or _windows(ctx, ctx.value(0))
    if bias is not None:
        bias = bias.reshape(-1)
    if data.quantized is not None:
        x, filter = data.quantized.operands(x, filter, 0)
        return data.quantized.finish(convolve_transposed(x, filter, windows), bias)
    if data.scales is None:
        sums = convolve_transposed(x, filter, windows)
    else:
        sums = _hybrid_sums(x, filter, data.scales, windows)
    if bias is not None:
        sums = sums + bias
    return fused_activation(sums, ctx.options.fused_activation_function)


def _hybrid_sums(x: Array, filter: Array, filter_scales: Array, windows: tuple[Window, Window]) -> Array:
    """The sums in real numbers."""
    per_sample = (-1, 1, 1, 1)
    levels, scales, points = quantize_asymmetric(x.reshape(x.shape[0], math.prod(x.shape[1:])))
    centred = levels.reshape(x.shape) - points.reshape(per_sample)
    sums = convolve_transposed(centred.astype(exact_type(255, filter, 0)), filter, windows).astype(np.float32)
    real: Array = sums * filter_scales * scales.reshape(per_sample)
    return real


@op.lower
def lower(graph: Lowering) -> None:
    if graph.input(2).type == TensorType.INT16:
        _lower_int16(graph)
        return
    if graph.input(2).type == TensorType.FLOAT32 and graph.input(1).type == TensorType.INT8:
        filter, scales = _qd8.weights_of(graph, 1, ignores_zero_points=True), _qd8.scales_of(graph, 1)
        bias, activation = _qd8.bias_of(graph, 3), graph.options.fused_activation_function
        if graph.options.padding == Padding.SAME and any(w.filter < w.stride for w in graph.data.windows):
            graph.refuse("LiteRT leaves strides that are larger than the filter to its own hybrid kernel")
        graph.result(_qd8.transposed(graph, graph.value(2), filter, scales, bias, graph.data.windows, activation))
        return
    if graph.input(2).type in (TensorType.INT8, TensorType.UINT8):
        _lower_bytes(graph)
        return
    filter, x = graph.floats(1, 2)
    activation = graph.options.fused_activation_function
    graph.result(transposed(graph, x, filter, graph.optional_value(3), graph.data.windows, activation))


def _lower_int16(graph: Lowering) -> None:
    x, filter, bias = graph.value(2), graph.array(_int16.weights_of(graph, 1)), graph.optional_value(3)
    to = _int16.requantization(graph.data.quantized)
    y = graph.empty(graph.output().shape, TensorType.INT16)
    for place, image, part, phase, before in by_phase(graph, x, filter, graph.data.windows, y):
        if image.size and part.size:
            found = graph.quantized_convolution(image, part, bias, phase_geometry(phase, before), to)
        else:  # no tap meets anything
            found = _int16.without_products(graph, bias, to, filter.shape[0]).broadcast(place.shape)
        graph.copy(found, place)
    graph.result(y)


def _lower_bytes(graph: Lowering) -> None:
    """XNNPACK takes those whose filter reaches from element to element, if the file has the shape and the filter;
    TFLite's kernel the others."""
    windows, activation, to = graph.data.windows, graph.options.fused_activation_function, graph.data.quantized
    claimed = all((along.output - 1) * along.stride + along.filter >= along.input for along in windows)
    claimed = claimed and graph.input(0).is_stored and graph.input(1).is_constant
    claimed = claimed and objection(graph, activation, 2) is None
    x, filter, bias = graph.value(2), byte_weights(graph, 1, computed=True), graph.optional_value(3)
    numbers = requantization(graph, activation, 2) if claimed else of_sums(graph, to.low, to.high, 2)
    type = x.type if claimed else TensorType.INT32
    y = graph.empty(graph.output().shape, type)
    for place, image, part, phase, before in by_phase(graph, x, filter, windows, y):
        if image.size and part.size:
            found = graph.quantized_convolution(image, part, bias, phase_geometry(phase, before), numbers, type)
        elif claimed:  # no tap meets anything
            found = requantized(graph, bias, numbers, filter.shape[0], x.type).broadcast(place.shape)
        else:
            nothing = graph.array(np.zeros(filter.shape[0], np.int32))
            found = (nothing if bias is None else graph.reshape(bias, filter.shape[:1])).broadcast(place.shape)
        graph.copy(found, place)
    if not claimed:
        y = requantized_in_vectors(graph, y, to.multipliers, to.shifts, numbers, x.type)
    graph.result(y)
