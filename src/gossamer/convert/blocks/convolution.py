"""Convolutions of one to three dimensions, and transposed ones, of values N...C.

Filters are O...I: ``[outputs, *window, channels / groups]``, for transposed ones ``[outputs / groups, *window,
channels]`` a group after the other along the last axis. ``padding`` is "SAME" or "VALID" as TFLite means it, or a pair
of numbers for each dimension: elements before and after. Everything is float32.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gossamer.convert.blocks.indexing import flip, pad, split, vector
from gossamer.convert.blocks.shapes import reshape, sizes, transpose
from gossamer.convert.graph import Graph, Size, Value, refuse
from gossamer.schema.enums import Padding, TensorType


def conv(
    graph: Graph,
    x: Value,
    filter: Value,
    bias: Value | None = None,
    *,
    strides: Sequence[int],
    dilations: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    groups: int = 1,
) -> Value:
    """CONV_2D; DEPTHWISE_CONV_2D where each group has one channel, CONV_3D, and CONV_2D of a height of 1.

    Raises `Refused` for other numbers of dimensions.
    """
    rank = x.rank - 2
    if rank == 1:
        return _in_two(
            graph,
            x,
            lambda y: conv(
                graph,
                y,
                _with_axis(graph, filter),
                bias,
                strides=(1, *strides),
                dilations=(1, *dilations),
                padding=_of_two(padding),
                groups=groups,
            ),
        )
    if rank not in (2, 3):
        refuse(f"a convolution of {rank} dimensions; TFLite has those of 1 to 3")
    x, name = padded(graph, x, filter.shape[1:-1], strides, dilations, padding)
    outputs, channels = filter.shape[0], x.dims[-1]
    if channels is None:
        refuse("the number of channels must be known; give it with --shape")
    bias = _bias(graph, bias, outputs)
    if rank == 3:
        return _grouped(
            graph,
            x,
            filter,
            bias,
            groups,
            lambda y, f, b: graph.add(
                "CONV_3D",
                y,
                transpose(graph, f, (1, 2, 3, 4, 0)),
                b,
                padding=Padding[name],
                **_by_axis("stride", strides),
                **_dilation(dilations),
            ),
        )
    options: dict[str, Any] = {"padding": Padding[name], **_by_axis("stride", strides), **_dilation(dilations)}
    if groups == channels and groups > 1:
        depthwise = transpose(graph, filter, (3, 1, 2, 0))
        return graph.add("DEPTHWISE_CONV_2D", x, depthwise, bias, depth_multiplier=outputs // channels, **options)
    return graph.add("CONV_2D", x, filter, bias, **options)


def conv_transpose(
    graph: Graph,
    x: Value,
    filter: Value,
    bias: Value | None = None,
    *,
    strides: Sequence[int],
    dilations: Sequence[int],
    padding: Sequence[tuple[int, int]],
    groups: int = 1,
) -> Value:
    """TRANSPOSE_CONV or CONV_3D_TRANSPOSE of ``(n - 1) * stride + window`` elements, without as many at the ends as
    ``padding`` says; negative numbers add some. ``filter``: [outputs / groups, *window, channels].

    With groups an ordinary convolution of the spread input.
    """
    rank = x.rank - 2
    if rank == 1:
        return _in_two(
            graph,
            x,
            lambda y: conv_transpose(
                graph,
                y,
                _with_axis(graph, filter),
                bias,
                strides=(1, *strides),
                dilations=(1, *dilations),
                padding=((0, 0), *padding),
                groups=groups,
            ),
        )
    if rank not in (2, 3):
        refuse(f"a transposed convolution of {rank} dimensions; TFLite has those of 1 to 3")
    outputs = filter.shape[0] * groups
    if groups > 1:
        return _spread_conv(graph, x, filter, bias, strides, dilations, padding, groups)
    if any(dilation != 1 for dilation in dilations):
        steps = np.array([1, *dilations, 1], np.int32)
        filter = graph.add("DILATE", filter, steps, np.zeros((), np.float32))
    window = filter.shape[1:-1]
    more = [max(-after, 0) for _, after in padding]  # VALID has up to stride - 1 elements that no window reaches
    late = any(before < 0 for before, _ in padding) or any(m >= s for m, s in zip(more, strides, strict=True))
    more = [0] * rank if late else more
    name = "VALID"
    whole = [
        _scaled(x.size(axis + 1), strides[axis], window[axis] - strides[axis] + more[axis]) for axis in range(rank)
    ]
    cuts = [(before, after + m) for (before, after), m in zip(padding, more, strict=True)]
    if not late and all(
        size == _scaled(x.size(axis + 1), strides[axis], pads[0] + pads[1]) and _is_half(pads)
        for axis, (size, pads) in enumerate(zip(whole, cuts, strict=True))
    ):
        name = "SAME"
        whole = [_scaled(x.size(axis + 1), strides[axis], 0) for axis in range(rank)]
        cuts = [(0, 0)] * rank
    shape = _shape(graph, x, whole, outputs)
    used = None if late else _bias(graph, bias, outputs)
    if rank == 3:
        filter = transpose(graph, filter, (1, 2, 3, 0, 4))
    operator = "CONV_3D_TRANSPOSE" if rank == 3 else "TRANSPOSE_CONV"
    ones: dict[str, Any] = _dilation([1] * rank) if rank == 3 else {}
    result = graph.add(
        operator,
        shape,
        filter,
        x,
        used,
        padding=Padding[name],
        shape=[x.size(0), *whole, outputs],
        **_by_axis("stride", strides),
        **ones,
    )
    result = pad(graph, result, [(0, 0), *[(-before, -after) for before, after in cuts], (0, 0)])
    return result if bias is None or used is not None else graph.add("ADD", result, bias)


def padded(
    graph: Graph,
    x: Value,
    window: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    value: float = 0,
) -> tuple[Value, str]:
    """The input of an operator with a sliding window that has only "SAME" and "VALID", padded where these are not what
    is asked for, and which of them it is."""
    if isinstance(padding, str):
        return x, padding
    if all(tuple(pads) == (0, 0) for pads in padding):
        return x, "VALID"
    if all(
        _is_same(x.dims[axis + 1], *numbers)
        for axis, numbers in enumerate(zip(window, strides, dilations, padding, strict=True))
    ):
        return x, "SAME"
    return pad(graph, x, [(0, 0), *[(int(b), int(a)) for b, a in padding], (0, 0)], value=value), "VALID"


def same_pads(size: int | None, window: int, stride: int, dilation: int, *, lower: bool = False) -> tuple[int, int]:
    """What "SAME" adds before and after; ``lower``: the odd element goes before. Raises `Refused` for an open size
    with a stride, which decides it."""
    if stride == 1:
        total = (window - 1) * dilation
    elif size is None:
        refuse("the padding depends on a size that is open; give it with --shape")
    else:
        total = max((-(-size // stride) - 1) * stride + (window - 1) * dilation + 1 - size, 0)
    half = total // 2
    return (total - half, half) if lower else (half, total - half)


def _is_same(size: int | None, window: int, stride: int, dilation: int, pads: tuple[int, int]) -> bool:
    if stride > 1 and size is None:
        return False
    return same_pads(size, window, stride, dilation) == tuple(pads)


def _is_half(pads: tuple[int, int]) -> bool:
    return 0 <= pads[0] == (pads[0] + pads[1]) // 2


def _spread_conv(
    graph: Graph,
    x: Value,
    filter: Value,
    bias: Value | None,
    strides: Sequence[int],
    dilations: Sequence[int],
    padding: Sequence[tuple[int, int]],
    groups: int,
) -> Value:
    """A transposed convolution as what it is: a convolution of the input with zeros between its elements, the filter
    turned around."""
    if any(stride != 1 for stride in strides):
        x = graph.add("DILATE", x, np.array([1, *strides, 1], np.int32), np.zeros((), np.float32))
    turned = flip(graph, filter, range(1, filter.rank - 1))
    parts = split(graph, turned, [filter.shape[-1] // groups] * groups, filter.rank - 1)
    turned = graph.add("CONCATENATION", *parts, axis=0)
    pads = [
        ((window - 1) * dilation - before, (window - 1) * dilation - after)
        for window, dilation, (before, after) in zip(filter.shape[1:-1], dilations, padding, strict=True)
    ]
    ones = [1] * len(strides)
    return conv(graph, x, turned, bias, strides=ones, dilations=dilations, padding=pads, groups=groups)


def _grouped(
    graph: Graph, x: Value, filter: Value, bias: Value, groups: int, one: Callable[[Value, Value, Value], Value]
) -> Value:
    if groups == 1:
        return one(x, filter, bias)
    depth, outputs = filter.shape[-1], filter.shape[0] // groups
    parts = zip(
        split(graph, x, [depth] * groups, x.rank - 1),
        split(graph, filter, [outputs] * groups, 0),
        split(graph, bias, [outputs] * groups, 0),
        strict=True,
    )
    return graph.add("CONCATENATION", *[one(*part) for part in parts], axis=x.rank - 1)


def _in_two(graph: Graph, x: Value, operator: Callable[[Value], Value]) -> Value:
    """An operator on pictures of a height of 1 for a value NWC."""
    result = operator(reshape(graph, x, [x.size(0), 1, *sizes(x)[1:]]))
    return reshape(graph, result, [result.size(0), *sizes(result)[2:]])


def _with_axis(graph: Graph, filter: Value) -> Value:
    return reshape(graph, filter, [filter.shape[0], 1, *filter.shape[1:]])


def _of_two(padding: str | Sequence[tuple[int, int]]) -> str | Sequence[tuple[int, int]]:
    return padding if isinstance(padding, str) else ((0, 0), *padding)


def _bias(graph: Graph, bias: Value | None, outputs: int) -> Value:
    return graph.constant(np.zeros(outputs, np.float32)) if bias is None else bias


def _by_axis(what: str, numbers: Sequence[int]) -> dict[str, Any]:
    return {f"{what}_{axis}": int(n) for axis, n in zip("dhw"[-len(numbers) :], numbers, strict=True)}


def _dilation(numbers: Sequence[int]) -> dict[str, Any]:
    return {f"dilation_{axis}_factor": int(n) for axis, n in zip("dhw"[-len(numbers) :], numbers, strict=True)}


def _scaled(size: int | Size, factor: int, more: int) -> int | Size:
    if isinstance(size, Size):
        return Size(tuple([one * factor + more for one in size.worlds]))
    return size * factor + more


def _shape(graph: Graph, x: Value, whole: Sequence[int | Size], outputs: int) -> Value:
    """The shape of a result whose sizes grow with those of ``x``, as a vector."""
    if x.is_static:
        return graph.constant(np.array([x.shape[0], *whole, outputs], np.int32))
    shape = graph.add("SHAPE", x, type=TensorType.INT32)
    parts: list[int | Value] = []
    for axis, size in enumerate([x.size(0), *whole]):
        if isinstance(size, int):
            parts.append(size)
            continue
        own = x.size(axis)
        number = graph.add("STRIDED_SLICE", shape, [axis], [axis + 1], [1], shrink_axis_mask=1)
        if isinstance(own, Size) and own != size:
            factor = (size.worlds[1] - size.worlds[0]) // (own.worlds[1] - own.worlds[0])
            number = graph.add("MUL", number, factor) if factor != 1 else number
            more = size.worlds[0] - own.worlds[0] * factor
            number = graph.add("ADD", number, more) if more else number
        parts.append(number)
    return vector(graph, [*parts, outputs])
