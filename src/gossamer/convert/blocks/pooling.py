"""Pooling over windows of one to three dimensions, of values N...C.

``padding`` is "SAME" or "VALID" as TFLite means it, or a pair of numbers for each dimension: elements before and after.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gossamer.convert.blocks.convolution import padded, same_pads
from gossamer.convert.blocks.indexing import broadcast_to, pad, product, slice_axis, strided_slice
from gossamer.convert.blocks.shapes import cast, reshape, shape_value, sizes
from gossamer.convert.graph import Graph, Value, refuse
from gossamer.schema.enums import Padding, ReduceWindowFunction, TensorType

LOWEST = float(np.finfo(np.float32).min)


def pool(
    graph: Graph,
    kind: str,
    x: Value,
    window: Sequence[int],
    strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]] = "VALID",
    *,
    dilations: Sequence[int] | None = None,
    ceil_mode: bool = False,
    count_include_pad: bool = False,
) -> Value:
    """The maximum, mean or sum of what a window shows: ``kind`` is "MAX", "AVERAGE" or "SUM".

    ``ceil_mode``: windows that begin inside the value, or the padding before it, but reach over its end count too.
    ``count_include_pad``: means are taken over the padding as well, if it is given in numbers. Integers are computed in
    float32 and cast back.
    """
    if x.type != TensorType.FLOAT32:
        wide = cast(graph, x, TensorType.FLOAT32)
        result = pool(
            graph,
            kind,
            wide,
            window,
            strides,
            padding,
            dilations=dilations,
            ceil_mode=ceil_mode,
            count_include_pad=count_include_pad,
        )
        return cast(graph, result, x.type)
    steps = [1] * len(window) if dilations is None else list(dilations)
    if padding == "SAME" and any(step != 1 for step in steps):
        padding = [same_pads(*numbers) for numbers in zip(x.dims[1:-1], window, strides, steps, strict=True)]
    ends = [0] * len(window)
    if ceil_mode and padding != "SAME":
        padding = [(0, 0)] * len(window) if isinstance(padding, str) else padding
        ends = over_the_end(x.dims[1:-1], window, strides, steps, padding)
    whole = padding
    if any(ends) and not isinstance(padding, str):
        whole = [(before, after + end) for (before, after), end in zip(padding, ends, strict=True)]
    if kind == "MAX":
        if any(step != 1 for step in steps) and not isinstance(whole, str):
            x, name = _pad(graph, x, whole, LOWEST), "VALID"  # REDUCE_WINDOW has no padding
        else:
            x, name = padded(graph, x, window, strides, steps, whole, LOWEST)
        return _windows(graph, "MAX", x, window, strides, steps, name)
    if isinstance(whole, str) or (kind == "AVERAGE" and not count_include_pad):
        y, name = padded(graph, x, window, strides, steps, whole)
        if y is x and (name == "VALID" or (len(window) < 3 and all(step == 1 for step in steps))):
            mean = _windows(graph, "AVERAGE", x, window, strides, steps, name)
            return graph.add("MUL", mean, float(math.prod(window))) if kind == "SUM" else mean
    if isinstance(whole, str) or isinstance(padding, str):
        whole = padding = [same_pads(*numbers) for numbers in zip(x.dims[1:-1], window, strides, steps, strict=True)]
    mean = _windows(graph, "AVERAGE", _pad(graph, x, whole), window, strides, steps, "VALID")
    if kind == "SUM":
        return graph.add("MUL", mean, float(math.prod(window)))
    if count_include_pad and not any(ends):
        return mean
    ones = _ones(graph, x, padding if count_include_pad else [(0, 0)] * len(window))
    rest = [(0, end) for end in ends] if count_include_pad else whole
    shares = _windows(graph, "AVERAGE", _pad(graph, ones, rest), window, strides, steps, "VALID")
    return graph.add("DIV", mean, shares) if shares.data is None else graph.add("MUL", mean, 1 / shares.data)


def over_the_end(
    dims: Sequence[int | None],
    window: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    padding: Sequence[tuple[int, int]],
) -> list[int]:
    """Elements that have to be added at each end, so that the last window that ``ceil_mode`` demands fits."""
    found = []
    for size, wide, stride, dilation, (before, after) in zip(dims, window, strides, dilations, padding, strict=True):
        if size is None:
            found.append(stride - 1)
            continue
        span = (wide - 1) * dilation + 1
        count = -(-(size + before + after - span) // stride) + 1
        if (count - 1) * stride >= size + before:
            count -= 1
        found.append(max((count - 1) * stride + span - (size + before + after), 0))
    return found


def max_positions(
    graph: Graph,
    x: Value,
    window: Sequence[int],
    strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
    dilations: Sequence[int],
    *,
    ceil_mode: bool = False,
) -> tuple[Value, Value]:
    """The maxima, and where in the picture the first of each window is: int32, counted row by row.

    Raises `Refused` if the sizes of the picture are open.
    """
    rank = len(window)
    dims = [size for size in x.dims[1:-1] if size is not None]
    if len(dims) < rank:
        refuse("the positions of maxima need known sizes; give them with --shape")
    ends = over_the_end(dims, window, strides, dilations, padding) if ceil_mode else [0] * rank
    wide = _pad(graph, x, [(b, a + end) for (b, a), end in zip(padding, ends, strict=True)], LOWEST)
    spans = [(wide.shape[n + 1] if wide.is_static else dims[n] + sum(padding[n]) + ends[n]) for n in range(rank)]
    counts = [(s - (w - 1) * d - 1) // t + 1 for s, w, d, t in zip(spans, window, dilations, strides, strict=True)]
    shown = []
    for place in np.ndindex(*window):
        begins = [p * d for p, d in zip(place, dilations, strict=True)]
        stops = [b + (c - 1) * t + 1 for b, c, t in zip(begins, counts, strides, strict=True)]
        shown.append(strided_slice(graph, wide, range(1, rank + 1), begins, stops, list(strides)))
    stacked = graph.add("PACK", *shown, values_count=len(shown), axis=x.rank)
    best = graph.add("REDUCE_MAX", stacked, np.array([x.rank], np.int32))
    which = graph.add("ARG_MAX", stacked, np.array(x.rank, np.int32), type=TensorType.INT32)
    weights = [math.prod(dims[n + 1 :]) for n in range(rank)]
    inside = np.array(
        [sum(p * d * w for p, d, w in zip(place, dilations, weights, strict=True)) for place in np.ndindex(*window)],
        np.int32,
    )
    first = np.zeros(counts, np.int32)
    for axis, (count, stride, (before, _), weight) in enumerate(zip(counts, strides, padding, weights, strict=True)):
        shape = [-1 if n == axis else 1 for n in range(rank)]
        first = first + ((np.arange(count, dtype=np.int32) * stride - before) * weight).reshape(shape)
    positions = graph.add("ADD", graph.add("GATHER", inside, which), first[None, ..., None].astype(np.int32))
    return best, positions


def _windows(
    graph: Graph,
    kind: str,
    x: Value,
    window: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    padding: str,
) -> Value:
    """The maximum or mean of what a window shows, "SAME" or "VALID"."""
    rank = len(window)
    if any(dilation != 1 for dilation in dilations):
        return _dilated(graph, kind, x, window, strides, dilations)
    if rank == 1:
        x = reshape(graph, x, [x.size(0), 1, *sizes(x)[1:]])
        result = _windows(graph, kind, x, (1, *window), (1, *strides), (1, 1), padding)
        return reshape(graph, result, [result.size(0), *sizes(result)[2:]])
    if rank == 3:  # over height and width, then over depth
        n, depth, height, width, channels = sizes(x)
        y = reshape(graph, x, [product([n, depth]), height, width, channels])
        planes = _windows(graph, kind, y, window[1:], strides[1:], (1, 1), padding)
        _, height, width, _ = sizes(planes)
        y = reshape(graph, planes, [n, depth, product([height, width]), channels], x)
        y = _windows(graph, kind, y, (window[0], 1), (strides[0], 1), (1, 1), padding)
        return reshape(graph, y, [n, y.size(1), height, width, channels], planes)
    if rank != 2:
        refuse(f"windows of {rank} dimensions; TFLite has those of 1 to 3")
    return graph.add(
        "MAX_POOL_2D" if kind == "MAX" else "AVERAGE_POOL_2D",
        x,
        padding=Padding[padding],
        filter_height=int(window[0]),
        filter_width=int(window[1]),
        stride_h=int(strides[0]),
        stride_w=int(strides[1]),
    )


def _dilated(
    graph: Graph, kind: str, x: Value, window: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> Value:
    """REDUCE_WINDOW, which has no padding."""
    maximum = kind == "MAX"
    result = graph.add(
        "REDUCE_WINDOW",
        x,
        np.array(LOWEST if maximum else 0, np.float32),
        *[np.array([1, *numbers, 1], np.int64) for numbers in (window, strides, dilations)],
        reduce_function=ReduceWindowFunction.MAXIMUM if maximum else ReduceWindowFunction.ADD,
    )
    return result if maximum else graph.add("MUL", result, 1 / math.prod(window))


def _pad(graph: Graph, x: Value, padding: Sequence[tuple[int, int]], value: float = 0) -> Value:
    return pad(graph, x, [(0, 0), *[(int(b), int(a)) for b, a in padding], (0, 0)], value=value)


def _ones(graph: Graph, x: Value, padding: Any) -> Value:
    """One for each element of a picture and of the padding that counts."""
    dims = x.dims[1:-1]
    if None not in dims:
        spans = [size + before + after for size, (before, after) in zip(dims, padding, strict=True) if size is not None]
        return graph.constant(np.ones((1, *spans, 1), np.float32))
    one = slice_axis(graph, slice_axis(graph, x, 0, 0, 1), x.rank - 1, 0, 1)
    shape = shape_value(graph, sizes(one), one)
    return _pad(graph, broadcast_to(graph, graph.constant(np.ones((1,) * x.rank, np.float32)), shape), padding, 1)
