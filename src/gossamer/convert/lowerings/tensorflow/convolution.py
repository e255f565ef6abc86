"""Convolutions. TensorFlow's filters are HWIO, those of depthwise ones HWIM, of volumes DHWIO; TFLite's are OHWI, 1HWO
and DHWIO. ``data_format`` names the layout of the value: where it has the channels first, it is transposed around.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gossamer.convert.blocks.convolution import conv_transpose, same_pads
from gossamer.convert.blocks.elementwise import FLOATS
from gossamer.convert.blocks.moves import moved
from gossamer.convert.blocks.shapes import cast, channels_first, channels_last, reshape, transpose
from gossamer.convert.blocks.vectors import as_sizes, elements, int32
from gossamer.convert.graph import Graph, Value, refuse
from gossamer.convert.lowerings.tensorflow import Call, lowers
from gossamer.convert.lowerings.tensorflow.padding import padded
from gossamer.schema.enums import MirrorPadMode, Padding, TensorType

T = TensorType


BACKWARD = (
    "Conv2DBackpropInput",
    "Conv3DBackpropInput",
    "Conv3DBackpropInputV2",
    "DepthwiseConv2dNativeBackpropInput",
)
"""Operators whose third operand is the value; of the others it is the first."""


def layout(call: Call) -> str:
    """The attribute that says where the channels are."""
    rank = call.value(0).rank if call.op not in BACKWARD else call.value(2).rank
    found = call.attributes.text("data_format", "NDHWC" if rank == 5 else "NHWC")
    if found not in ("NHWC", "NCHW", "NDHWC", "NCDHW"):
        refuse(f"data_format {found} is none that TFLite can have; NHWC, NCHW, NDHWC and NCDHW are")
    return found


def is_channels_first(call: Call) -> bool:
    return layout(call)[1] == "C"


def spatial(call: Call, name: str, default: Sequence[int] | None = None) -> list[int]:
    """An attribute with a number for each dimension: those of space. Raises `Refused` if the others are not 1."""
    whole = call.attributes.ints(name, None if default is None else tuple(default))
    names = layout(call)
    if not whole:
        return [1] * (len(names) - 2)
    if len(whole) != len(names):
        refuse(f"{name} {list(whole)} must have {len(names)} numbers, one for each of {names}")
    others = [whole[n] for n, letter in enumerate(names) if letter in "NC"]
    if others != [1, 1]:
        refuse(f"{name} {list(whole)} must be 1 for batches and channels ({names})")
    return [whole[n] for n, letter in enumerate(names) if letter not in "NC"]


def known_channels(x: Value) -> int:
    """The last size. Raises `Refused` if it is open."""
    channels = x.dims[-1]
    if channels is None:
        refuse("the number of channels of its input is open; give the shape of the model's input with --shape")
    return channels


def in_layout(call: Call, x: Value, function: Callable[[Value], Value]) -> Value:
    """A function of a value with the channels last, whatever layout the operator has."""
    if not is_channels_first(call):
        return function(x)
    return channels_first(call.graph, function(channels_last(call.graph, x)))


def in_float32(graph: Graph, operands: Sequence[Value]) -> list[Value]:
    """Operands in the type that TFLite's convolutions have besides quantized ones."""
    for x in operands:
        if x.type not in FLOATS and x.type != T.INT32:
            refuse(f"it is asked for {x!r}; TFLite convolves floats")
    return [cast(graph, x, T.FLOAT32) for x in operands]


def explicit(call: Call) -> list[tuple[int, int]] | None:
    """Paddings of the dimensions of space, if they are given as numbers."""
    if call.attributes.text("padding") != "EXPLICIT":
        return None
    flat = call.attributes.ints("explicit_paddings")
    pairs = list(zip(flat[::2], flat[1::2], strict=True))
    return [pairs[n] for n, letter in enumerate(layout(call)) if letter not in "NC"]


def with_padding(call: Call, x: Value, fill: Value | None = None) -> tuple[Value, Padding]:
    """A value with the channels last, padded by what is given as numbers, and the padding that is left to do."""
    pairs = explicit(call)
    if pairs is None:
        return x, Padding[call.attributes.text("padding")]
    around = np.array([(0, 0), *pairs, (0, 0)], np.int32)
    return padded(call.graph, x, call.graph.constant(around), fill), Padding.VALID


def zeros(graph: Graph, count: int) -> Value:
    return graph.constant(np.zeros(count, np.float32))


@lowers("Conv2D")
def conv_2d(call: Call) -> Value:
    x, filters = in_float32(call.graph, call.values(0, 2))
    return cast(call.graph, in_layout(call, x, lambda x: convolved(call, x, filters)), call.value(0).type)


def convolved(call: Call, x: Value, filters: Value) -> Value:
    """A value NHWC with filters HWIO, by the attributes of the operator."""
    graph = call.graph
    x, padding = with_padding(call, x)
    stride_h, stride_w = spatial(call, "strides")
    dilation_h, dilation_w = spatial(call, "dilations", ())
    options: dict[str, Any] = {
        "padding": padding,
        "stride_h": stride_h,
        "stride_w": stride_w,
        "dilation_h_factor": dilation_h,
        "dilation_w_factor": dilation_w,
    }
    height, width, depth, channels = filters.shape
    inputs = known_channels(x)
    if depth == 1 and inputs > 1 and channels % inputs == 0:
        return graph.add(
            "DEPTHWISE_CONV_2D",
            x,
            reshape(graph, filters, [1, height, width, channels]),
            zeros(graph, channels),
            depth_multiplier=channels // inputs,
            **options,
        )
    return graph.add("CONV_2D", x, transpose(graph, filters, (3, 0, 1, 2)), zeros(graph, channels), **options)


@lowers("FusedPadConv2D", "FusedResizeAndPadConv2D")
def fused_pad_conv_2d(call: Call) -> Value:
    """A picture resized (bilinear), mirrored around its edges, and convolved, as graphs are that were transformed for
    inference. The layout is NHWC."""
    graph, x = call.graph, call.value(0)
    if call.op == "FusedResizeAndPadConv2D":
        size = int32(graph, call.value(1))
        align_corners = call.attributes.bool("resize_align_corners", False)
        shape = [x.size(0), *as_sizes(elements(size)), x.size(3)]
        x = graph.add("RESIZE_BILINEAR", x, size, align_corners=align_corners, shape=shape)
    mode = MirrorPadMode[call.attributes.text("mode")]
    x = graph.add("MIRROR_PAD", x, call.value(len(call.inputs) - 2), mode=mode)
    return convolved(call, x, call.value(len(call.inputs) - 1))


@lowers("DepthwiseConv2dNative", "DepthwiseConv2dNativeV2")
def depthwise_conv_2d(call: Call) -> Value:
    x, filters = in_float32(call.graph, call.values(0, 2))
    return cast(call.graph, in_layout(call, x, lambda x: depthwise(call, x, filters)), call.value(0).type)


def depthwise(call: Call, x: Value, filters: Value) -> Value:
    """A value NHWC with filters HWIM, by the attributes of the operator."""
    graph = call.graph
    x, padding = with_padding(call, x)
    stride_h, stride_w = spatial(call, "strides")
    dilation_h, dilation_w = spatial(call, "dilations", ())
    height, width, channels, multiplier = filters.shape
    known_channels(x)
    return graph.add(
        "DEPTHWISE_CONV_2D",
        x,
        reshape(graph, filters, [1, height, width, channels * multiplier]),
        zeros(graph, channels * multiplier),
        depth_multiplier=multiplier,
        padding=padding,
        stride_h=stride_h,
        stride_w=stride_w,
        dilation_h_factor=dilation_h,
        dilation_w_factor=dilation_w,
    )


@lowers("Conv2DBackpropInput")
def conv_2d_backprop_input(call: Call) -> Value:
    """A transposed convolution. Its filters are HWOI seen from here."""
    graph = call.graph
    filters, x = in_float32(graph, call.values(1, 3))
    shape = _output_shape(call, call.value(0), x, filters.shape[2])
    filters = _dilated(graph, filters, spatial(call, "dilations", ()))
    weights = transpose(graph, filters, (2, 0, 1, 3))
    return in_layout(call, x, lambda x: _transposed_conv_2d(call, x, weights, shape))


def _output_shape(call: Call, sizes: Value, x: Value, channels: int) -> Value:
    """``input_sizes`` with the channels last; it may have the sizes of space alone."""
    graph, shape, rank = call.graph, int32(call.graph, sizes), x.rank
    if shape.shape == (rank - 2,):
        batch = graph.add("STRIDED_SLICE", graph.add("SHAPE", x), [0], [1], [1])
        return graph.add("CONCATENATION", batch, shape, np.array([channels], np.int32), axis=0)
    if is_channels_first(call):
        return graph.add("GATHER", shape, np.array([0, *range(2, rank), 1], np.int32))
    return shape


def _dilated(graph: Graph, filters: Value, dilations: Sequence[int]) -> Value:
    """Filters with zeros between the taps."""
    if set(dilations) == {1}:
        return filters
    if filters.data is None:
        every = np.array([*dilations, 1, 1], np.int32)
        return graph.add("DILATE", filters, every, np.array(0, np.float32))
    taps = [(size - 1) * dilation + 1 for size, dilation in zip(filters.shape, dilations, strict=False)]
    wide = np.zeros((*taps, *filters.shape[len(taps) :]), np.float32)
    wide[tuple([slice(None, None, dilation) for dilation in dilations])] = filters.data
    return graph.constant(wide)


def _transposed_conv_2d(call: Call, x: Value, weights: Value, shape: Value) -> Value:
    graph = call.graph
    stride_h, stride_w = spatial(call, "strides")
    options: dict[str, Any] = {"stride_h": stride_h, "stride_w": stride_w}
    pairs = explicit(call)
    if pairs is None:
        padding = Padding[call.attributes.text("padding")]
        return graph.add(
            "TRANSPOSE_CONV", shape, weights, x, padding=padding, shape=as_sizes(elements(shape)), **options
        )
    around = np.array([(0, 0), *pairs, (0, 0)], np.int32)
    whole = graph.add("ADD", shape, np.sum(around, 1, dtype=np.int32))
    result = graph.add(
        "TRANSPOSE_CONV", whole, weights, x, padding=Padding.VALID, shape=as_sizes(elements(whole)), **options
    )
    first = np.ascontiguousarray(around[:, 0])
    return moved(graph, "SLICE", result, first, shape, shape=as_sizes(elements(shape)))


@lowers("DepthwiseConv2dNativeBackpropInput")
def depthwise_backprop_input(call: Call) -> Value:
    """A transposed convolution whose groups have one output each."""
    graph = call.graph
    filters, x = in_float32(graph, call.values(1, 3))
    height, width, channels, multiplier = filters.shape
    weights = reshape(graph, filters, [1, height, width, channels * multiplier])
    strides, dilations = spatial(call, "strides"), spatial(call, "dilations", ())
    shape = elements(_output_shape(call, call.value(0), x, channels))[1:3]
    if not all(isinstance(size, int) for size in shape):
        refuse("the size of the result must be known; give it with --shape")
    sizes = [size for size in shape if isinstance(size, int)]
    around = explicit(call) or [(0, 0)] * 2
    if call.attributes.text("padding") == "SAME":
        numbers = zip(sizes, (height, width), strides, dilations, strict=True)
        around = [same_pads(size, window, stride, dilation) for size, window, stride, dilation in numbers]

    def lowered(x: Value) -> Value:
        cuts = []
        for size, n, window, stride, dilation, (before, _) in zip(
            sizes, x.shape[1:3], (height, width), strides, dilations, around, strict=True
        ):
            cuts.append((before, (n - 1) * stride + (window - 1) * dilation + 1 - before - size))
        return conv_transpose(graph, x, weights, strides=strides, dilations=dilations, padding=cuts, groups=channels)

    return in_layout(call, x, lowered)


@lowers("Conv3D")
def conv_3d(call: Call) -> Value:
    x, filters = in_float32(call.graph, call.values(0, 2))
    return cast(call.graph, in_layout(call, x, lambda x: _conv_3d(call, x, filters)), call.value(0).type)


def _conv_3d(call: Call, x: Value, filters: Value) -> Value:
    x, padding = with_padding(call, x)
    known_channels(x)
    return call.add("CONV_3D", x, filters, zeros(call.graph, filters.shape[4]), padding=padding, **volume(call))


def volume(call: Call) -> dict[str, Any]:
    """Strides and dilations of a convolution of volumes, as options."""
    names = ("d", "h", "w")
    strides, dilations = spatial(call, "strides"), spatial(call, "dilations", ())
    return {
        **{f"stride_{name}": stride for name, stride in zip(names, strides, strict=True)},
        **{f"dilation_{name}_factor": dilation for name, dilation in zip(names, dilations, strict=True)},
    }


@lowers("Conv3DBackpropInputV2", "Conv3DBackpropInput")
def conv_3d_backprop_input(call: Call) -> Value:
    """The first version has a value of the result's shape for its first operand."""
    filters, x = in_float32(call.graph, call.values(1, 3))
    given = call.value(0) if call.op.endswith("V2") else call.add("SHAPE", call.value(0))
    shape = _output_shape(call, given, x, filters.shape[3])
    padding = Padding[call.attributes.text("padding")]

    def lowered(x: Value) -> Value:
        result = as_sizes(elements(shape))
        return call.add("CONV_3D_TRANSPOSE", shape, filters, x, padding=padding, shape=result, **volume(call))

    return in_layout(call, x, lowered)


FUSED = {"_FusedConv2D": convolved, "_FusedDepthwiseConv2dNative": depthwise, "_FusedConv3D": _conv_3d}


@lowers(*FUSED)
def fused_conv(call: Call) -> Value:
    """A convolution and what follows it: what Grappler makes of them."""
    graph = call.graph
    x, filters = in_float32(graph, call.values(0, 2))
    lowered = FUSED[call.op]

    def fused(x: Value) -> Value:
        return followed(call, lowered(call, x, filters), 2)

    return in_layout(call, x, fused)


@lowers("_FusedMatMul")
def fused_mat_mul(call: Call) -> Value:
    product = call.add(
        "BATCH_MATMUL",
        *call.values(0, 2),
        adj_x=call.attributes.bool("transpose_a", False),
        adj_y=call.attributes.bool("transpose_b", False),
    )
    return followed(call, product, 2)


ACTIVATIONS = {
    "Relu": "RELU",
    "Relu6": "RELU6",
    "Elu": "ELU",
    "Sigmoid": "LOGISTIC",
    "Tanh": "TANH",
    "_FusedHardSwish": "HARD_SWISH",
}


def followed(call: Call, x: Value, first: int) -> Value:
    """What is fused to an operator: its ``fused_ops``, whose operands begin at input ``first``."""
    graph, position = call.graph, first
    for name in call.attributes.texts("fused_ops"):
        if name in ("BiasAdd", "Add"):
            x = graph.add("ADD", x, call.value(position))
            position += 1
        elif name == "FusedBatchNorm":
            scale, offset, mean, variance = call.values(position, position + 4)
            position += 4
            x = normalized(graph, x, scale, offset, mean, variance, call.attributes.float("epsilon", 1e-4))
        elif name == "LeakyRelu":
            x = graph.add("LEAKY_RELU", x, alpha=call.attributes.float("leakyrelu_alpha", 0.2))
        elif name in ("GeluApproximate", "GeluExact"):
            x = graph.add("GELU", x, approximate=name == "GeluApproximate")
        elif name in ACTIVATIONS:
            x = graph.add(ACTIVATIONS[name], x)
        else:
            refuse(f"{name} is fused to it, which is not known; convert the model before it is optimized")
    return x


def normalized(
    graph: Graph, x: Value, scale: Value, offset: Value, mean: Value, variance: Value, epsilon: float
) -> Value:
    """``(x - mean) / sqrt(variance + epsilon) * scale + offset``, as one factor and one summand."""
    factor = graph.add("MUL", scale, graph.add("RSQRT", graph.add("ADD", variance, np.array(epsilon, np.float32))))
    summand = graph.add("SUB", offset, graph.add("MUL", mean, factor))
    return graph.add("ADD", graph.add("MUL", x, factor), summand)


@lowers("_FusedBatchNormEx")
def fused_batch_norm_ex(call: Call) -> list[Value]:
    """Batch normalization, of which Grappler has made one with an addition and an activation."""
    if call.attributes.bool("is_training", True):
        refuse("batch normalization in training mode, which has an activation; save the model for inference")
    x, scale, offset, mean, variance = call.values(0, 5)
    epsilon = call.attributes.float("epsilon", 1e-4)
    found = in_layout(call, x, lambda x: normalized(call.graph, x, scale, offset, mean, variance, epsilon))
    if call.attributes.int("num_side_inputs", 0):
        found = call.add("ADD", found, call.value(5))
    name = call.attributes.text("activation_mode", "Identity")
    if name != "Identity":
        found = call.add(ACTIVATIONS[name], found)
    return [found, mean, variance, mean, variance, mean]
