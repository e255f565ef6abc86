"""Normalizations. Parameters are values or ``None``; statistics are over what is said in each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gossamer.convert.blocks.indexing import pad, product, slice_axis
from gossamer.convert.blocks.reductions import reduce
from gossamer.convert.blocks.shapes import reshape, sizes
from gossamer.convert.graph import Graph, Value


def along(graph: Graph, x: Value | None, axis: int, rank: int) -> Value | None:
    """A vector as a value of ``rank`` axes that broadcasts along all but ``axis``."""
    if x is None or x.rank != 1 or axis % rank == rank - 1:
        return x
    return reshape(graph, x, [x.size(0) if n == axis % rank else 1 for n in range(rank)])


def scaled(graph: Graph, x: Value, scale: Value | None, shift: Value | None) -> Value:
    """x * scale + shift."""
    x = x if scale is None else graph.add("MUL", x, scale)
    return x if shift is None else graph.add("ADD", x, shift)


def batch_norm(
    graph: Graph,
    x: Value,
    mean: Value,
    variance: Value,
    scale: Value | None,
    shift: Value | None,
    epsilon: float,
    axis: int,
) -> Value:
    """(x - mean) / sqrt(variance + epsilon) * scale + shift, vectors along ``axis``: one product and one sum."""
    factor = graph.add("RSQRT", graph.add("ADD", variance, float(epsilon)))
    factor = factor if scale is None else graph.add("MUL", factor, scale)
    offset = graph.add("NEG", graph.add("MUL", mean, factor))
    offset = offset if shift is None else graph.add("ADD", offset, shift)
    return scaled(graph, x, along(graph, factor, axis, x.rank), along(graph, offset, axis, x.rank))


def standardized(graph: Graph, x: Value, axes: Sequence[int], epsilon: float) -> tuple[Value, Value, Value]:
    """(x - mean) / sqrt(variance + epsilon) over axes, the mean, and what it is multiplied with."""
    mean = reduce(graph, "MEAN", x, axes, keepdims=True)
    distance = graph.add("SUB", x, mean)
    variance = reduce(graph, "MEAN", graph.add("SQUARE", distance), axes, keepdims=True)
    factor = graph.add("RSQRT", graph.add("ADD", variance, float(epsilon)))
    return graph.add("MUL", distance, factor), mean, factor


def layer_norm(
    graph: Graph, x: Value, axes: Sequence[int], scale: Value | None, shift: Value | None, epsilon: float
) -> Value:
    """Standardized over axes; ``scale`` and ``shift`` broadcast to ``x``."""
    return scaled(graph, standardized(graph, x, axes, epsilon)[0], scale, shift)


def rms_norm(graph: Graph, x: Value, axes: Sequence[int], scale: Value | None, epsilon: float) -> Value:
    """x / sqrt(mean(x * x) + epsilon) over axes, times ``scale``."""
    size = reduce(graph, "MEAN", graph.add("SQUARE", x), axes, keepdims=True)
    return scaled(graph, graph.add("MUL", x, graph.add("RSQRT", graph.add("ADD", size, float(epsilon)))), scale, None)


def instance_norm(graph: Graph, x: Value, axis: int, scale: Value | None, shift: Value | None, epsilon: float) -> Value:
    """Standardized over all axes but the first and ``axis``, that of channels, along which vectors lie."""
    axis %= x.rank
    places = [n for n in range(1, x.rank) if n != axis]
    found = standardized(graph, x, places, epsilon)[0]
    return scaled(graph, found, along(graph, scale, axis, x.rank), along(graph, shift, axis, x.rank))


def group_norm(
    graph: Graph, x: Value, groups: int, axis: int, scale: Value | None, shift: Value | None, epsilon: float
) -> tuple[Value, Value, Value]:
    """Standardized over all axes but the first and groups of channels, which lie along ``axis``; the mean and the
    factor of each group, [batch, groups].

    The axes of places are one for that, so at most one of them is open where the batch is too.
    """
    axis %= x.rank
    shape = sizes(x)
    channels = x.shapes[0][axis]
    grouped = [shape[0], product(shape[1:axis]), groups, channels // groups, product(shape[axis + 1 :])]
    if axis == 1:
        grouped[1:2] = []
    if axis == x.rank - 1:
        grouped.pop()
    split = reshape(graph, x, grouped)
    group = 1 if axis == 1 else 2
    axes = [n for n in range(1, split.rank) if n != group]
    found, mean, factor = standardized(graph, split, axes, epsilon)
    found = reshape(graph, found, shape, x)
    found = scaled(graph, found, along(graph, scale, axis, x.rank), along(graph, shift, axis, x.rank))
    return found, reshape(graph, mean, [shape[0], groups]), reshape(graph, factor, [shape[0], groups])


def local_response_norm(graph: Graph, x: Value, size: int, alpha: float, beta: float, bias: float, axis: int) -> Value:
    """x / (bias + alpha * s) ** beta, ``s`` the sum of squares over a window of ``size`` channels around each: of an
    even number, one more behind than before. Any layout."""
    axis %= x.rank
    if axis == x.rank - 1 and x.rank == 4 and size % 2:
        return graph.add(
            "LOCAL_RESPONSE_NORMALIZATION", x, radius=size // 2, bias=float(bias), alpha=float(alpha), beta=float(beta)
        )
    before = (size - 1) // 2
    squares = graph.add("SQUARE", x)
    padded = pad(graph, squares, [(before, size - 1 - before) if n == axis else (0, 0) for n in range(x.rank)])
    channels = x.shapes[0][axis]
    total = slice_axis(graph, padded, axis, 0, channels)
    for first in range(1, size):
        total = graph.add("ADD", total, slice_axis(graph, padded, axis, first, first + channels))
    scale = graph.add("ADD", graph.add("MUL", total, np.array(alpha, np.float32)), np.array(bias, np.float32))
    return graph.add("DIV", x, graph.add("POW", scale, np.array(beta, np.float32)))
