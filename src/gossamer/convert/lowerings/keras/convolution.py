"""Convolutions: kernels are [places..., inputs, outputs], depthwise ones [places..., inputs, multiplier].

One dimension is the second of a picture of height 1. Padding is "valid", "same" or "causal" (all of it before).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.convert.blocks import shapes
from gossamer.convert.blocks.indexing import pad, split
from gossamer.convert.graph import Graph, Size, Value, refuse
from gossamer.convert.lowerings.keras import Call, floating, lowers, pair
from gossamer.convert.lowerings.keras.core import activated
from gossamer.schema.enums import Padding

_AXES = ("d", "h", "w")


class Window:
    """How a kernel moves: strides, dilations and padding along the places."""

    def __init__(self, strides: Sequence[int], dilations: Sequence[int], padding: str) -> None:
        self.strides, self.dilations, self.padding = tuple(strides), tuple(dilations), padding

    @classmethod
    def of(cls, call: Call, rank: int) -> Window:
        """That of a layer's config."""
        strides = pair(call.config("strides", 1), rank)
        return cls(strides, pair(call.config("dilation_rate", 1), rank), str(call.config("padding", "valid")).lower())

    def options(self) -> dict[str, Any]:
        """The schema's options of it for two or three dimensions."""
        if self.padding not in ("valid", "same"):
            refuse(f"padding {self.padding!r} is not known")
        axes = _AXES[-len(self.strides) :]
        options: dict[str, Any] = {f"stride_{axis}": stride for axis, stride in zip(axes, self.strides, strict=True)}
        for axis, rate in zip(axes, self.dilations, strict=True):
            options[f"dilation_{axis}_factor"] = rate
        return {**options, "padding": Padding.SAME if self.padding == "same" else Padding.VALID}

    def flat(self) -> Window:
        """That of pictures of height 1."""
        return Window((1, *self.strides), (1, *self.dilations), self.padding)


def convolution(
    graph: Graph, x: Value, kernel: NDArray[Any], bias: Value | None, window: Window, groups: int = 1, name: str = ""
) -> Value:
    """A convolution of channels-last x."""
    rank = x.rank - 2
    if window.padding == "causal":
        before = [(size - 1) * rate for size, rate in zip(kernel.shape[:rank], window.dilations, strict=True)]
        x = pad(graph, x, [(0, 0), *[(size, 0) for size in before], (0, 0)])
        window = Window(window.strides, window.dilations, "valid")
    if rank == 1:
        return _flat(graph, x, lambda row: convolution(graph, row, kernel[None], bias, window.flat(), groups, name))
    depth, outputs = kernel.shape[-2:]
    bias = bias if bias is not None else graph.constant(np.zeros(outputs, np.float32))
    if rank == 3:
        if groups == 1:
            return graph.add("CONV_3D", x, graph.constant(kernel, name=name), bias, **window.options())
        parts = split(graph, x, [depth] * groups, -1)
        kernels = np.split(kernel, groups, -1)
        made = [graph.add("CONV_3D", p, k, **window.options()) for p, k in zip(parts, kernels, strict=True)]
        return graph.add("ADD", graph.add("CONCATENATION", *made, axis=-1), bias)
    if groups > 1 and depth == 1:
        return depthwise(graph, x, kernel.reshape(*kernel.shape[:2], groups, -1), bias, window, name)
    filter = graph.constant(kernel.transpose(3, 0, 1, 2), name=name)
    return graph.add("CONV_2D", x, filter, bias, **window.options())


def _flat(graph: Graph, x: Value, function: Any) -> Value:
    """A function of pictures, for rows."""
    result = function(_row(graph, x))
    return shapes.reshape(graph, result, [result.size(0), result.size(2), result.size(3)])


def _row(graph: Graph, x: Value) -> Value:
    return shapes.reshape(graph, x, [x.size(0), 1, x.size(1), x.size(2)])


def depthwise(
    graph: Graph, x: Value, kernel: NDArray[Any], bias: Value | None, window: Window, name: str = ""
) -> Value:
    """Each channel by kernels of its own."""
    if x.rank == 3:
        return _flat(graph, x, lambda row: depthwise(graph, row, kernel[None], bias, window.flat(), name))
    height, width, inputs, multiplier = kernel.shape
    filter = graph.constant(kernel.reshape(1, height, width, inputs * multiplier), name=name)
    bias = bias if bias is not None else graph.constant(np.zeros(inputs * multiplier, np.float32))
    return graph.add("DEPTHWISE_CONV_2D", x, filter, bias, depth_multiplier=multiplier, **window.options())


def transposed(
    graph: Graph,
    x: Value,
    kernel: NDArray[Any],
    bias: Value | None,
    window: Window,
    output_padding: Sequence[int | None],
    name: str = "",
) -> Value:
    """The transpose of a convolution: the kernel is [places..., outputs, inputs]."""
    rank = x.rank - 2
    for axis, rate in enumerate(window.dilations):
        kernel = _dilated(kernel, axis, rate)
    if rank == 1:
        flat = Window((1, *window.strides), (1, 1), window.padding)
        return _flat(graph, x, lambda row: transposed(graph, row, kernel[None], bias, flat, [None, *output_padding]))
    sizes: list[int | Size] = [x.size(0)]
    for axis in range(rank):
        stride, extra = window.strides[axis], output_padding[axis]
        sizes.append(_enlarged(x.size(axis + 1), kernel.shape[axis], stride, window.padding, extra))
    sizes.append(kernel.shape[-2])
    options = Window(window.strides, [1] * rank, window.padding).options()
    shape = _shape(graph, x, sizes, window, kernel, output_padding)
    if rank == 3:
        return graph.add("CONV_3D_TRANSPOSE", shape, graph.constant(kernel, name=name), x, bias, shape=sizes, **options)
    filter = graph.constant(kernel.transpose(2, 0, 1, 3), name=name)
    options = {key: value for key, value in options.items() if not key.startswith("dilation")}
    return graph.add("TRANSPOSE_CONV", shape, filter, x, bias, shape=sizes, **options)


def _dilated(kernel: NDArray[Any], axis: int, rate: int) -> NDArray[Any]:
    """A kernel with zeros between its elements along an axis."""
    if rate == 1:
        return kernel
    wide = np.zeros([(n - 1) * rate + 1 if k == axis else n for k, n in enumerate(kernel.shape)], kernel.dtype)
    wide[(slice(None),) * axis + (slice(None, None, rate),)] = kernel
    return wide


def _enlarged(size: int | Size, kernel: int, stride: int, padding: str, extra: int | None) -> int | Size:
    """How many places come of ``size``: ``size * stride + more``, in each world."""
    more = _more(kernel, stride, padding, extra)
    if isinstance(size, Size):
        return Size(tuple([one * stride + more for one in size.worlds]))
    return size * stride + more


def _more(kernel: int, stride: int, padding: str, extra: int | None) -> int:
    """Keras' `compute_conv_transpose_output_length`, less ``size * stride``."""
    if extra is None:
        return max(kernel - stride, 0) if padding == "valid" else 0
    cut = 0 if padding == "valid" else kernel // 2
    return kernel - stride - 2 * cut + extra


def _shape(
    graph: Graph,
    x: Value,
    sizes: Sequence[int | Size],
    window: Window,
    kernel: NDArray[Any],
    extra: Sequence[int | None],
) -> Value:
    """The shape of a result as a vector; an open batch is that of x, open places are computed."""
    parts: list[Any] = []
    for axis, size in enumerate(sizes):
        if not isinstance(size, Size):
            parts.append(np.array(size, np.int32))
            continue
        own = shapes.shape_value(graph, [x.size(axis)], x)
        own = graph.add("RESHAPE", own, np.zeros(0, np.int32), new_shape=())
        if axis:
            stride = window.strides[axis - 1]
            own = graph.add("MUL", own, stride)
            own = graph.add("ADD", own, _more(kernel.shape[axis - 1], stride, window.padding, extra[axis - 1]))
        parts.append(own)
    return graph.add("PACK", *parts, values_count=len(parts))


def _strided_and_dilated(window: Window) -> bool:
    return max(window.strides) > 1 and max(window.dilations) > 1


@lowers("Conv1D", "Conv2D", "Conv3D", "Convolution1D", "Convolution2D", "Convolution3D")
def conv(call: Call) -> Value:
    graph, x = call.graph, floating(call.graph, call.x)
    kernel, bias = call.weight("kernel"), call.array("bias")
    window = Window.of(call, x.rank - 2)
    given = None if bias is None else call.constant(bias, "bias")
    name = f"{call.layer.name}/kernel"
    groups = int(call.config("groups", 1))
    return activated(call, call.places_last(x, lambda x: convolution(graph, x, kernel, given, window, groups, name)))


@lowers("DepthwiseConv1D", "DepthwiseConv2D")
def depthwise_conv(call: Call) -> Value:
    graph, x = call.graph, floating(call.graph, call.x)
    kernel = call.array("kernel")
    kernel = kernel if kernel is not None else call.weight("depthwise_kernel")
    bias, window = call.array("bias"), Window.of(call, x.rank - 2)
    given = None if bias is None else call.constant(bias, "bias")
    name = f"{call.layer.name}/kernel"
    return activated(call, call.places_last(x, lambda x: depthwise(graph, x, kernel, given, window, name)))


@lowers("SeparableConv1D", "SeparableConv2D")
def separable_conv(call: Call) -> Value:
    graph, x = call.graph, floating(call.graph, call.x)
    first, second, bias = call.weight("depthwise_kernel"), call.weight("pointwise_kernel"), call.array("bias")
    window = Window.of(call, x.rank - 2)
    given = None if bias is None else call.constant(bias, "bias")
    point = Window((1,) * (x.rank - 2), (1,) * (x.rank - 2), "valid")
    name = call.layer.name

    def both(x: Value) -> Value:
        its = window
        if window.padding == "causal":
            before = (first.shape[0] - 1) * window.dilations[0]
            x, its = pad(graph, x, [(0, 0), (before, 0), (0, 0)]), Window(window.strides, window.dilations, "valid")
        apart = depthwise(graph, x, first, None, its, f"{name}/depthwise_kernel")
        return convolution(graph, apart, second, given, point, 1, f"{name}/pointwise_kernel")

    return activated(call, call.places_last(x, both))


@lowers("Conv1DTranspose", "Conv2DTranspose", "Conv3DTranspose")
def conv_transpose(call: Call) -> Value:
    graph, x = call.graph, floating(call.graph, call.x)
    rank = x.rank - 2
    kernel, bias, window = call.weight("kernel"), call.array("bias"), Window.of(call, rank)
    extra = call.layer.config.get("output_padding")
    given = None if bias is None else call.constant(bias, "bias")
    paddings: list[int | None] = [None] * rank if extra is None else [*pair(extra, rank)]
    name = f"{call.layer.name}/kernel"
    return activated(call, call.places_last(x, lambda x: transposed(graph, x, kernel, given, window, paddings, name)))
