"""Convolutions: kernels are [places..., inputs, outputs], depthwise ones [places..., inputs, multiplier], those of
transposed ones [places..., outputs, inputs]. Padding is "valid", "same" or "causal" (all of it before)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gossamer.arrays import NDArray
from gossamer.convert.blocks.convolution import conv, conv_transpose
from gossamer.convert.graph import Graph, Value, refuse
from gossamer.convert.lowerings.keras import Call, floating, lowers, pair
from gossamer.convert.lowerings.keras.core import activated


class Window:
    """How a kernel moves: strides, dilations and padding along the places."""

    def __init__(self, strides: Sequence[int], dilations: Sequence[int], padding: str) -> None:
        self.strides, self.dilations, self.padding = tuple(strides), tuple(dilations), padding

    @classmethod
    def of(cls, call: Call, rank: int) -> Window:
        """That of a layer's config."""
        strides = pair(call.config("strides", 1), rank)
        return cls(strides, pair(call.config("dilation_rate", 1), rank), padding_of(call))

    @classmethod
    def plain(cls, rank: int, padding: str = "valid") -> Window:
        """Of strides and dilations of 1."""
        return cls((1,) * rank, (1,) * rank, padding)

    def pads(self, kernel: Sequence[int]) -> str | list[tuple[int, int]]:
        """The padding as TFLite names it, or in numbers."""
        if self.padding != "causal":
            return self.padding.upper()
        return [((size - 1) * rate, 0) for size, rate in zip(kernel, self.dilations, strict=False)]


def padding_of(call: Call) -> str:
    """The padding of the config. Raises `Refused` if it has another name than those that Keras has."""
    padding = str(call.config("padding", "valid")).lower()
    return padding if padding in ("valid", "same", "causal") else refuse(f"padding {padding!r} is not known")


def convolution(
    graph: Graph, x: Value, kernel: NDArray[Any], bias: Value | None, window: Window, groups: int = 1, name: str = ""
) -> Value:
    """A convolution of channels-last x."""
    last = kernel.ndim - 1
    filter = graph.constant(kernel.transpose(last, *range(last)), name=name)
    pads = window.pads(kernel.shape)
    return conv(graph, x, filter, bias, strides=window.strides, dilations=window.dilations, padding=pads, groups=groups)


def depthwise(
    graph: Graph, x: Value, kernel: NDArray[Any], bias: Value | None, window: Window, name: str = ""
) -> Value:
    """Each channel by kernels of its own."""
    inputs, multiplier = kernel.shape[-2:]
    joint = kernel.reshape(*kernel.shape[:-2], 1, inputs * multiplier)
    return convolution(graph, x, joint, bias, window, inputs, name)


def transposed(
    graph: Graph,
    x: Value,
    kernel: NDArray[Any],
    bias: Value | None,
    window: Window,
    output_padding: Sequence[int | None],
    name: str = "",
) -> Value:
    """The transpose of a convolution.

    Of ``(n - 1) * stride + size`` places as many are cut as Keras' `compute_conv_transpose_output_length` has fewer,
    with "same" half of them at the beginning, where TensorFlow would have padded the convolution.
    """
    places = kernel.ndim - 2
    pads = []
    for size, stride, rate, extra in zip(kernel.shape, window.strides, window.dilations, output_padding, strict=False):
        wide, same = (size - 1) * rate + 1, window.padding == "same"
        if extra is not None:
            cut = 2 * (wide // 2) * same - extra
        else:
            cut = wide - stride if same else min(wide - stride, 0)
        before = max(cut, 0) // 2 if same else 0
        pads.append((before, cut - before))
    filter = graph.constant(kernel.transpose(places, *range(places), places + 1), name=name)
    return conv_transpose(graph, x, filter, bias, strides=window.strides, dilations=window.dilations, padding=pads)


def _bias(call: Call) -> Value | None:
    bias = call.array("bias")
    return None if bias is None else call.constant(bias, "bias")


@lowers("Conv1D", "Conv2D", "Conv3D")
def conv_layer(call: Call) -> Value:
    graph, x, kernel, bias = call.graph, floating(call.graph, call.x), call.weight("kernel"), _bias(call)
    window, groups, name = Window.of(call, x.rank - 2), int(call.config("groups", 1)), f"{call.layer.name}/kernel"
    return activated(call, call.places_last(x, lambda x: convolution(graph, x, kernel, bias, window, groups, name)))


@lowers("DepthwiseConv1D", "DepthwiseConv2D")
def depthwise_conv(call: Call) -> Value:
    graph, x, kernel, bias = call.graph, floating(call.graph, call.x), call.weight("kernel"), _bias(call)
    window, name = Window.of(call, x.rank - 2), f"{call.layer.name}/kernel"
    return activated(call, call.places_last(x, lambda x: depthwise(graph, x, kernel, bias, window, name)))


@lowers("SeparableConv1D", "SeparableConv2D")
def separable_conv(call: Call) -> Value:
    graph, x, bias, name = call.graph, floating(call.graph, call.x), _bias(call), call.layer.name
    window, kernels = (
        Window.of(call, x.rank - 2),
        [call.weight(f"{part}_kernel") for part in ("depthwise", "pointwise")],
    )

    def both(x: Value) -> Value:
        apart = depthwise(graph, x, kernels[0], None, window, f"{name}/depthwise_kernel")
        point = Window.plain(x.rank - 2)
        return convolution(graph, apart, kernels[1], bias, point, 1, f"{name}/pointwise_kernel")

    return activated(call, call.places_last(x, both))


@lowers("Conv1DTranspose", "Conv2DTranspose", "Conv3DTranspose")
def conv_transpose_layer(call: Call) -> Value:
    graph, x, kernel, bias = call.graph, floating(call.graph, call.x), call.weight("kernel"), _bias(call)
    window, name = Window.of(call, x.rank - 2), f"{call.layer.name}/kernel"
    more = extra_of(call, x.rank - 2)
    return activated(call, call.places_last(x, lambda x: transposed(graph, x, kernel, bias, window, more, name)))


def extra_of(call: Call, rank: int) -> list[int | None]:
    """``output_padding`` of the config for each axis."""
    extra = call.config("output_padding")
    return [None] * rank if extra is None else [*pair(extra, rank)]
