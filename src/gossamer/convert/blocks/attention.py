"""Softmax over any axis, and attention."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gossamer.convert.blocks.indexing import repeat_each
from gossamer.convert.blocks.products import matmul
from gossamer.convert.blocks.shapes import cast, reshape, size_vector, transpose
from gossamer.convert.graph import Graph, Value
from gossamer.schema.enums import TensorType

LOWEST = float(np.finfo(np.float32).min)


def softmax(graph: Graph, x: Value, axis: int = -1, *, beta: float = 1.0) -> Value:
    """exp(beta * x), divided by its sum over the axis."""
    return _last(graph, x, axis, "SOFTMAX", beta=beta)


def log_softmax(graph: Graph, x: Value, axis: int = -1) -> Value:
    """The logarithm of the softmax over the axis."""
    return _last(graph, x, axis, "LOG_SOFTMAX")


def _last(graph: Graph, x: Value, axis: int, op: str, **options: Any) -> Value:
    if not x.rank:
        return reshape(graph, graph.add(op, reshape(graph, x, [1]), **options), [])
    axis %= x.rank
    order = list(range(x.rank))
    order[axis], order[-1] = order[-1], order[axis]
    return transpose(graph, graph.add(op, transpose(graph, x, order), **options), order)


def attention(
    graph: Graph,
    query: Value,
    key: Value,
    value: Value,
    mask: Value | None = None,
    *,
    scale: float | None = None,
    causal: bool = False,
) -> Value:
    """softmax(scale * query @ key.T + mask) @ value, over the last two axes: [..., places, size].

    ``mask`` is added, or, of bool, says which keys are seen. ``causal``: keys up to the place of the query are.
    ``scale`` is 1 / sqrt(size) unless it is given. Axis -3, that of heads, may be shorter in ``key`` and ``value``:
    then several heads of the query share one.
    """
    scale = 1 / math.sqrt(query.shapes[0][-1]) if scale is None else scale
    key, value = shared_heads(graph, query, key), shared_heads(graph, query, value)
    scores = matmul(graph, graph.add("MUL", query, np.array(scale, np.float32)), key, adj_y=True)
    if causal:
        scores = masked(graph, scores, causal_mask(graph, scores))
    if mask is not None:
        scores = masked(graph, scores, mask)
    return matmul(graph, softmax(graph, scores), value)


def masked(graph: Graph, scores: Value, mask: Value) -> Value:
    """Scores with a mask added, or, where one of bool does not hold, the lowest there is."""
    if mask.type == TensorType.BOOL:
        if mask.data is not None:
            return graph.add("ADD", scores, np.where(mask.data, 0, LOWEST).astype(np.float32))
        return graph.add("SELECT_V2", mask, scores, np.array(LOWEST, np.float32))
    return graph.add("ADD", scores, cast(graph, mask, scores.type))


def causal_mask(graph: Graph, scores: Value) -> Value:
    """Which keys are at or before the place of the query: bool [queries, keys]."""
    places = []
    for axis in (scores.rank - 2, scores.rank - 1):
        size = graph.add("STRIDED_SLICE", size_vector(graph, scores), [axis], [axis + 1], [1], shrink_axis_mask=1)
        places.append(graph.add("RANGE", 0, size, 1))
    rows = reshape(graph, places[0], [places[0].size(0), 1])
    return graph.add("LESS_EQUAL", reshape(graph, places[1], [1, places[1].size(0)]), rows)


def shared_heads(graph: Graph, query: Value, x: Value) -> Value:
    """Keys or values with each head as often as heads of the query share it."""
    if x.rank < 3:
        return x
    wanted, given = query.dims[-3], x.dims[-3]
    if wanted is None or given is None or given == wanted or given == 1:
        return x
    return repeat_each(graph, x, wanted // given, -3)
