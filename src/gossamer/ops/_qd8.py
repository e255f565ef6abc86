"""Hybrid products as XNNPACK computes them, which is what LiteRT runs by default (``qd8-f32-qc8w``, ``-qc4w``).

What is quantized together, a row of a product or an image of a convolution, has a scale and a zero point of its own;
everything is float32, in this order (XNNPACK: ``src/xnnpack/quantization.h``, ``src/f32-qs8-vcvt``):

    steps = 255 / (max(0, high) - min(0, low)), or 1 where these are equal
    zero_point = -128 - low * steps, or 127 - high * steps where (-128 + low * steps) + (127 + high * steps) <= 0,
                 brought into -128..127, then rounded, halves to even
    level = clamp(round(x * steps) + zero_point, -128, 127), halves to even
    y = fma(float32(sum of (level - zero_point) * weight) * (1 / steps), weight_scale, bias), then the clamp

Whatever ``asymmetric_quantize_inputs`` says. The sum is exact. Padding is the zero point.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from gossamer.ops._conv_geometry import Window
from gossamer.ops._conv_lowering import by_phase, phase_geometry
from gossamer.ops._requantization import byte_weights
from gossamer.ops.lowering import Lowering
from gossamer.schema.enums import ActivationFunctionType, TensorType
from gossamer.views import Geometry, Shape, View

MOST_GROUPS = 1024
"""Of a convolution, each of which is a command."""

MOST_MATRICES = 64
"""Which are multiplied one by one."""

MOST_PADDED = 1 << 20
"""Bytes that an image with its padding may always have."""

MOST_IMAGES = 1024
"""Of a depthwise convolution, each of which is a command, or of one with groups, each of which is as many."""

_CLAMPS = (
    ActivationFunctionType.NONE,
    ActivationFunctionType.RELU,
    ActivationFunctionType.RELU_N1_TO_1,
    ActivationFunctionType.RELU6,
)

HEADER = 16
"""Bytes in front of a row of levels: its scale and zero point."""

ZERO_POINT = 4
"""Where in a header it is."""

BLOCKS = 16
"""Parts of an image whose ranges are found by themselves."""

MAX_TAPS = 514
"""Elements of a filter of which the sums of products of 255 and 128 are exact in float32."""


def weights_of(graph: Lowering, position: int, *, ignores_zero_points: bool = False) -> View:
    """Constant weights, a byte each. LiteRT does not run products whose weights have a zero point, and ignores those of
    convolutions."""
    if not ignores_zero_points and graph.input(position).quantization.zero_points.any():
        graph.refuse("hybrid weights have a zero point")
    if graph.input(position).is_constant and graph.input(position).type == TensorType.INT2:
        return graph.array(graph.known(position), TensorType.INT8)
    return byte_weights(graph, position)


def scales_of(graph: Lowering, position: int) -> View:
    """The scales of an input, one or one for each channel."""
    if not graph.input(position).quantization.scales.size:
        graph.refuse("hybrid weights have no scale")
    return graph.array(graph.input(position).quantization.scales.astype(np.float32))


def has_constant_bias(graph: Lowering, position: int) -> bool:
    """Whether the model computes no bias: if it does, LiteRT leaves the operator to its own kernel."""
    bias = graph.optional(position)
    return bias is None or bias.is_constant


def bias_of(graph: Lowering, position: int) -> View | None:
    """A bias. Refused if the model computes it."""
    if not has_constant_bias(graph, position):
        graph.refuse("the bias is only known when the model runs")
    return graph.optional_value(position)


def clamped(graph: Lowering, y: View, activation: ActivationFunctionType) -> View:
    """With a fused activation. Refused if XNNPACK has none of the kind."""
    if activation not in _CLAMPS:
        graph.refuse("LiteRT leaves such an activation to its own hybrid kernel")
    return graph.activation(y, activation)


def rows(graph: Lowering, x: View, type: TensorType = TensorType.INT8) -> View:
    """[..., depth] floats as quantized rows. They are for `product` alone, unless the type is UINT8: then they are
    levels and zero points from 0 to 255."""
    shape = (*x.shape[:-1], HEADER + -(-x.shape[-1] // 4) * 4)
    return graph.kernel("quantize", x, shape=shape, type=type)


def product(graph: Lowering, levels: View, weights: View, scales: View, bias: View | None) -> View:
    """Quantized rows [N, H, W, ...] times weights [channels, *depth]: [N, H, W, channels]."""
    channels = weights.shape[0]
    bias = graph.array(np.zeros(channels, np.float32)) if bias is None else graph.reshape(bias, (channels,))
    shape = (*levels.shape[:-1], channels)
    return graph.kernel("hybrid", levels, weights, scales, bias, shape=shape, type=TensorType.FLOAT32)


def fully_connected(graph: Lowering, x: View, weights: View, scales: View, bias: View | None) -> View:
    """[..., depth] times weights [channels, depth]: [rows, channels]."""
    depth = x.shape[-1]
    count = math.prod(x.shape) // depth
    levels = rows(graph, graph.reshape(x, (1, 1, count, depth)))
    y = product(graph, levels, weights, scales, bias)
    return graph.reshape(y, (count, weights.shape[0]))


def matmul(graph: Lowering, x: View, weights: View, scales: View) -> View:
    """[..., M, depth] times weights [..., channels, depth]: [..., M, channels]; leading dimensions are broadcast."""
    batch, count = tuple(np.broadcast_shapes(x.shape[:-2], weights.shape[:-2])), x.shape[-2]
    channels, depth = weights.shape[-2:]
    levels = rows(graph, x)
    matrices = math.prod(weights.shape[:-2])
    if matrices > MOST_MATRICES:
        graph.limit(f"there are more than {MOST_MATRICES} matrices of hybrid weights")
    if matrices == 1:
        size = math.prod(x.shape[:-1])
        flat = graph.reshape(levels, (1, 1, size, levels.shape[-1]))
        y = product(graph, flat, graph.reshape(weights, (channels, depth)), scales, None)
        return graph.reshape(y, (*batch, count, channels))
    all_rows = levels.broadcast((*batch, *levels.shape[-2:]))
    all_weights = weights.broadcast((*batch, channels, depth))
    results = []
    for index in np.ndindex(*batch):
        left, right = all_rows, all_weights
        for axis, at in enumerate(index):
            left, right = left.slice(axis, at, 1), right.slice(axis, at, 1)
        left = graph.reshape(left, (1, 1, *left.shape[-2:]))
        results.append(product(graph, left, graph.reshape(right, (channels, depth)), scales, None))
    return graph.reshape(graph.concat(results, 0), (*batch, count, channels))


def convolution(graph: Lowering, x: View, weights: View, scales: View, bias: View | None, geometry: Geometry) -> View:
    """[N, H, W, C] with weights [O, h, w, C / groups].

    Pixels are rows of a product where every pixel of the result sees one of the image; else images are quantized whole.
    """
    groups = x.shape[3] // weights.shape[3]
    if geometry.is_pointwise and groups == 1:
        return product(graph, rows(graph, x), weights, scales, bias)
    if groups > MOST_GROUPS:
        graph.limit(f"a hybrid convolution has more than {MOST_GROUPS} groups")
    if groups > 1 and x.shape[0] > MOST_IMAGES:
        graph.limit(f"a hybrid convolution with groups has more than {MOST_IMAGES} images")
    headers = _headers(graph, x, "qd8")
    # The frame first: so levels can be written into it.
    inside = _frame(graph, x.shape, headers, geometry)
    levels = _levels(graph, x, headers, "qd8")
    return _windows(graph, _framed(graph, levels, inside), headers, weights, scales, bias, geometry)


def transposed(
    graph: Lowering,
    x: View,
    weights: View,
    scales: View,
    bias: View | None,
    windows: Sequence[Window],
    activation: ActivationFunctionType,
) -> View:
    """[N, H, W, C] with weights [O, h, w, C] to [N, H', W', O]: images are quantized whole."""
    channels = weights.shape[0]
    levels, headers = images(graph, x, "qd8")
    y = graph.empty((x.shape[0], *(window.input for window in windows), channels), TensorType.FLOAT32)
    for place, image, part, phase, before in by_phase(graph, levels, weights, windows, y):
        if image.size and part.size:
            geometry = phase_geometry(phase, before)
            padded = _framed(graph, image, _frame(graph, image.shape, headers, geometry))
            result = _windows(graph, padded, headers, part, scales, bias, geometry)
            result = clamped(graph, result, activation)
        else:
            nothing = np.zeros(channels, np.float32)
            result = graph.array(nothing) if bias is None else graph.reshape(bias, (channels,))
            result = clamped(graph, result, activation).broadcast(place.shape)
        graph.copy(result, place)
    return y


def images(graph: Lowering, x: View, rule: str) -> tuple[View, View]:
    """Images on grids of their own (`gossamer.codegen.kernels.dynamic`), and their headers.

    After the rule ``qd8`` these are levels; after ``builtin``, levels less the zero point as floats.
    """
    headers = _headers(graph, x, rule)
    return _levels(graph, x, headers, rule), headers


def _headers(graph: Lowering, x: View, rule: str) -> View:
    ranges = graph.kernel("dynamic_range", x, shape=(x.shape[0], 2, BLOCKS), type=TensorType.FLOAT32)
    return graph.kernel("dynamic_parameters", ranges, shape=(x.shape[0], HEADER), type=TensorType.INT8, rule=rule)


def _levels(graph: Lowering, x: View, headers: View, rule: str) -> View:
    type = TensorType.INT8 if rule == "qd8" else TensorType.FLOAT32
    return graph.kernel("dynamic_quantize", x, headers, shape=x.shape, type=type, rule=rule)


def _frame(graph: Lowering, image: Shape, headers: View, geometry: Geometry) -> View | None:
    """Where levels of a shape are to be written so that their padding is around them; ``None`` if there is none.

    Around these are zero points, each image's own, which is known in a run only: no border can be drawn before. What is
    right of a row and left of the next is one run, and so is all in front of the first and behind the last: if these
    two are as long, it takes two commands.
    """
    (top, left), (bottom, right) = geometry.before, geometry.after(*image[1:3])
    count, height, width, channels = image
    shape = (count, top + height + bottom, left + width + right, channels)
    if shape == image:
        return None
    if math.prod(shape) > MOST_PADDED + 16 * math.prod(image):
        graph.refuse("its padding is more than 16 times as large as the image")
    frame = graph.empty(shape, TensorType.INT8)
    row, size = shape[2] * channels, math.prod(shape[1:])
    front, back = top * row + left * channels, bottom * row + right * channels
    between = ((height - 1, (left + right) * channels), (row, 1), front + width * channels)
    ends = [((1, front), (0, 1), 0), ((1, back), (0, 1), size - back)]
    if front == back:
        ends = [((2, front), (size - back, 1), 0)]
    zero_points = graph.reshape(headers.slice(1, ZERO_POINT, 1), (count, 1, 1))
    for runs, strides, start in (*ends, between):
        if math.prod(runs):
            around = View(frame.buffer, (count, *runs), (size, *strides), start)
            graph.copy(zero_points.broadcast(around.shape), around)
    return frame.slice(1, top, height).slice(2, left, width)


def _framed(graph: Lowering, levels: View, inside: View | None) -> View:
    """With what is around the place that they are written to, if there is one."""
    if inside is None:
        return levels
    graph.copy(levels, inside)
    return inside.buffer.view()


def _windows(
    graph: Lowering, levels: View, headers: View, weights: View, scales: View, bias: View | None, geometry: Geometry
) -> View:
    """Quantized images with their padding times weights [O, h, w, C / groups]."""
    channels = weights.shape[0]
    bias = graph.array(np.zeros(channels, np.float32)) if bias is None else graph.reshape(bias, (channels,))
    return graph.kernel(
        "hybrid",
        levels,
        weights,
        scales,
        bias,
        headers,
        shape=(levels.shape[0], *geometry.output, channels),
        type=TensorType.FLOAT32,
        geometry=geometry,
    )


def depthwise(graph: Lowering, x: View, weights: View, scales: View, bias: View | None, geometry: Geometry) -> View:
    """[N, H, W, C] with weights [h, w, C * m], which XNNPACK does not take: LiteRT's own kernel decides.

    Images are quantized as in `gossamer.ops._dynamic_range`. With the exact sum of (level - zero point) * weight,
    ``y = sum * weight scale * image scale + bias``, from left to right in float32; but the last channels, O modulo 4,
    are multiplied by the image's scale first. (``DepthwiseConvHybridPerChannel`` with NEON's or SSE's vectors.)
    """
    channels = weights.shape[2]
    if geometry.kernel[0] * geometry.kernel[1] > MAX_TAPS:
        graph.refuse(f"a hybrid filter has more than {MAX_TAPS} elements")
    if x.shape[0] > MOST_IMAGES:
        graph.limit(f"a hybrid convolution has more than {MOST_IMAGES} images")
    bias = graph.array(np.zeros(channels, np.float32)) if bias is None else graph.reshape(bias, (channels,))
    if not bias.is_constant:  # which is packed
        return graph.map("add", depthwise(graph, x, weights, scales, None, geometry), bias)
    levels, headers = images(graph, x, "builtin")
    return graph.hybrid_depthwise(levels, weights, scales, bias, headers, geometry)
