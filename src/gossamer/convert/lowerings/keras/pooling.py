"""Pooling: windows that move, all places at once, or as many windows as the result shall have places."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from gossamer.convert.blocks.einsum import einsum
from gossamer.convert.blocks.indexing import gather
from gossamer.convert.blocks.pooling import pool
from gossamer.convert.blocks.reductions import reduce
from gossamer.convert.graph import Graph, Value, refuse
from gossamer.convert.lowerings.keras import Call, floating, lowers, pair
from gossamer.convert.lowerings.keras.convolution import padding_of


def windows(call: Call, kind: str) -> Value:
    """The maximum or mean of what windows show, as the config says."""
    x = floating(call.graph, call.x)
    size = pair(call.config("pool_size", 2), x.rank - 2)
    strides, padding = pair(call.config("strides", size), x.rank - 2), padding_of(call).upper()
    return call.places_last(x, lambda x: pool(call.graph, kind, x, size, strides, padding))


@lowers("MaxPooling1D", "MaxPooling2D", "MaxPooling3D")
def max_pooling(call: Call) -> Value:
    return windows(call, "MAX")


@lowers("AveragePooling1D", "AveragePooling2D", "AveragePooling3D")
def average_pooling(call: Call) -> Value:
    return windows(call, "AVERAGE")


def _places(call: Call, x: Value) -> list[int]:
    return list(range(2, x.rank)) if call.channels_first else list(range(1, x.rank - 1))


@lowers("GlobalMaxPooling1D", "GlobalMaxPooling2D", "GlobalMaxPooling3D")
def global_max_pooling(call: Call) -> Value:
    x = floating(call.graph, call.x)
    return reduce(call.graph, "REDUCE_MAX", x, _places(call, x), keepdims=bool(call.config("keepdims")))


@lowers("GlobalAveragePooling1D", "GlobalAveragePooling2D", "GlobalAveragePooling3D")
def global_average_pooling(call: Call) -> Value:
    graph, x = call.graph, floating(call.graph, call.x)
    mask, keepdims = call.mask, bool(call.config("keepdims"))
    if mask is None or x.rank != 3:
        return reduce(graph, "MEAN", x, _places(call, x), keepdims=keepdims)
    axis = 2 if call.channels_first else 1
    counts = floating(graph, graph.add("EXPAND_DIMS", mask, 3 - axis))
    total = reduce(graph, "SUM", graph.add("MUL", x, counts), [axis], keepdims=keepdims)
    return graph.add("DIV", total, reduce(graph, "SUM", counts, [axis], keepdims=keepdims))


def adaptive(graph: Graph, x: Value, sizes: Sequence[int], function: Callable[[Value, int, int], Value]) -> Value:
    """``function`` of channels-last x along each axis of places that is to have another size."""
    for axis, size in enumerate(sizes, 1):
        if x.dims[axis] is None:
            refuse("adaptive pooling of places whose number is open; give it with --shape")
        if x.dims[axis] != size:
            x = function(x, axis, size)
    return x


def _bounds(places: int, size: int) -> list[tuple[int, int]]:
    """The windows that share ``places`` among ``size``."""
    return [(n * places // size, -(-(n + 1) * places // size)) for n in range(size)]


def adaptive_mean(graph: Graph, x: Value, axis: int, size: int) -> Value:
    """Means of windows along an axis: a product with a matrix."""
    places = x.shape[axis] if x.is_static else int(x.dims[axis] or 0)
    matrix = np.zeros((places, size), np.float32)
    for n, (begin, end) in enumerate(_bounds(places, size)):
        matrix[begin:end, n] = 1 / (end - begin)
    letters = "abcdef"[: x.rank]
    equation = f"{letters},{letters[axis]}z->{letters.replace(letters[axis], 'z')}"
    return einsum(graph, equation, x, graph.constant(matrix))


def adaptive_maximum(graph: Graph, x: Value, axis: int, size: int) -> Value:
    """Maxima of windows along an axis; shorter windows have their last place more than once."""
    bounds = _bounds(int(x.dims[axis] or 0), size)
    longest = max(end - begin for begin, end in bounds)
    positions = np.array([[min(begin + k, end - 1) for k in range(longest)] for begin, end in bounds], np.int32)
    if longest == 1:
        return gather(graph, x, graph.constant(positions.reshape(-1)), axis)
    return reduce(graph, "REDUCE_MAX", gather(graph, x, graph.constant(positions), axis), [axis + 1])


@lowers("AdaptiveAveragePooling1D", "AdaptiveAveragePooling2D", "AdaptiveAveragePooling3D")
def adaptive_average_pooling(call: Call) -> Value:
    return _adaptive(call, adaptive_mean)


@lowers("AdaptiveMaxPooling1D", "AdaptiveMaxPooling2D", "AdaptiveMaxPooling3D")
def adaptive_max_pooling(call: Call) -> Value:
    return _adaptive(call, adaptive_maximum)


def _adaptive(call: Call, function: Callable[[Graph, Value, int, int], Value]) -> Value:
    graph, x = call.graph, floating(call.graph, call.x)
    sizes = pair(call.config("output_size", 1), x.rank - 2)

    def along(x: Value, axis: int, size: int) -> Value:
        return function(graph, x, axis, size)

    return call.places_last(x, lambda x: adaptive(graph, x, sizes, along))
