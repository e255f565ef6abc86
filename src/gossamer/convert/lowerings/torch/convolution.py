"""Convolutions: torch's pictures are NC..., its filters OI..., those of transposed ones IO..."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gossamer.convert.blocks import convolution
from gossamer.convert.blocks.shapes import channels_first, channels_last, reshape, sizes, transpose
from gossamer.convert.graph import Value
from gossamer.convert.lowerings.torch import Call, integers, lowers

Numbers = int | Sequence[int]


@lowers("aten.conv1d", "aten.conv2d", "aten.conv3d")
def conv(
    call: Call,
    input: Value,
    weight: Value,
    bias: Value | None = None,
    stride: Numbers = 1,
    padding: Numbers | str = 0,
    dilation: Numbers = 1,
    groups: int = 1,
) -> Value:
    rank = weight.rank - 2
    pads: Any = padding.upper() if isinstance(padding, str) else [(one, one) for one in integers(padding, rank)]
    filter = transpose(call.graph, weight, (0, *range(2, rank + 2), 1))
    return _on_pictures(
        call,
        input,
        rank,
        lambda x: convolution.conv(
            call.graph,
            x,
            filter,
            bias,
            strides=integers(stride, rank),
            dilations=integers(dilation, rank),
            padding=pads,
            groups=groups,
        ),
    )


@lowers("aten.conv_transpose1d", "aten.conv_transpose2d", "aten.conv_transpose3d")
def conv_transpose(
    call: Call,
    input: Value,
    weight: Value,
    bias: Value | None = None,
    stride: Numbers = 1,
    padding: Numbers = 0,
    output_padding: Numbers = 0,
    groups: int = 1,
    dilation: Numbers = 1,
) -> Value:
    rank = weight.rank - 2
    pads = [
        (one, one - more) for one, more in zip(integers(padding, rank), integers(output_padding, rank), strict=True)
    ]
    filter = transpose(call.graph, weight, (*range(1, rank + 2), 0))
    return _on_pictures(
        call,
        input,
        rank,
        lambda x: convolution.conv_transpose(
            call.graph,
            x,
            filter,
            bias,
            strides=integers(stride, rank),
            dilations=integers(dilation, rank),
            padding=pads,
            groups=groups,
        ),
    )


@lowers("aten.convolution", "aten._convolution")
def any_conv(
    call: Call,
    input: Value,
    weight: Value,
    bias: Value | None,
    stride: Numbers,
    padding: Numbers,
    dilation: Numbers,
    transposed: bool,
    output_padding: Numbers,
    groups: int,
    **others: Any,
) -> Value:
    if transposed:
        return conv_transpose(call, input, weight, bias, stride, padding, output_padding, groups, dilation)
    return conv(call, input, weight, bias, stride, padding, dilation, groups)


@lowers("aten.conv_tbc")
def conv_tbc(call: Call, self: Value, weight: Value, bias: Value, pad: int = 0) -> Value:
    """Of [time, batch, channels], with weights [window, inputs, outputs]."""
    graph = call.graph
    made = convolution.conv(
        graph,
        transpose(graph, self, (1, 0, 2)),
        transpose(graph, weight, (2, 0, 1)),
        bias,
        strides=[1],
        dilations=[1],
        padding=[(pad, pad)],
    )
    return transpose(graph, made, (1, 0, 2))


def _on_pictures(call: Call, x: Value, rank: int, function: Callable[[Value], Value]) -> Value:
    """A function of N...C, for NC... or one picture without a batch."""
    graph = call.graph
    if x.rank == rank + 2:
        return channels_first(graph, function(channels_last(graph, x)))
    made = _on_pictures(call, reshape(graph, x, [1, *sizes(x)]), rank, function)
    return reshape(graph, made, sizes(made)[1:])
