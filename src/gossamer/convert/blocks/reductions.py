"""Reductions over any axes, and what goes along an axis: positions of extremes, running results, sorting.

``axes`` may be negative; ``None`` are all of them, none at all leave a value as it is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from gossamer.convert.blocks.elementwise import widened
from gossamer.convert.blocks.indexing import slice_axis
from gossamer.convert.blocks.shapes import cast, reshape, size_vector, sizes, transpose
from gossamer.convert.graph import Graph, Value, refuse
from gossamer.schema.enums import TensorType

Axes = Sequence[int] | None

LARGEST = float(np.finfo(np.float32).max)

_TOPK_TYPES = (TensorType.FLOAT32, TensorType.INT32, TensorType.INT64)


def normalized(axes: Axes, rank: int) -> list[int]:
    """Axes counted from the first one, in order."""
    return list(range(rank)) if axes is None else sorted({axis % rank if rank else 0 for axis in axes})


def reduce(graph: Graph, op: str, x: Value, axes: Axes = None, *, keepdims: bool = False) -> Value:
    """SUM, MEAN, REDUCE_MAX, REDUCE_MIN, REDUCE_PROD, REDUCE_ANY or REDUCE_ALL over axes."""
    found = normalized(axes, x.rank)
    if x.type == TensorType.BOOL:
        op = {"REDUCE_MAX": "REDUCE_ANY", "REDUCE_MIN": "REDUCE_ALL", "REDUCE_PROD": "REDUCE_ALL"}.get(op, op)
    if op in ("REDUCE_ANY", "REDUCE_ALL"):
        x = truth(graph, x)
    if not found or not x.rank:
        return x
    return widened(graph, op, x, np.array(found, np.int32), keep_dims=keepdims)


def truth(graph: Graph, x: Value) -> Value:
    """Whether elements are not zero."""
    return x if x.type == TensorType.BOOL else widened(graph, "NOT_EQUAL", x, np.zeros((), x.dtype))


def count(graph: Graph, x: Value, axes: Axes = None, type: TensorType = TensorType.FLOAT32) -> Value:
    """How many elements a reduction over the axes takes together: a scalar."""
    found = normalized(axes, x.rank)
    if not found or not x.rank:
        return cast(graph, graph.constant(1), type)
    wanted = graph.add("GATHER", size_vector(graph, x), np.array(found, np.int32))
    return cast(graph, graph.add("REDUCE_PROD", wanted, np.array([0], np.int32)), type)


def variance(graph: Graph, x: Value, axes: Axes = None, *, keepdims: bool = False, correction: float = 0) -> Value:
    """The mean square of the distance to the mean, the sum divided by the number of elements less ``correction``."""
    found = normalized(axes, x.rank)
    mean = reduce(graph, "MEAN", x, found, keepdims=True)
    squares = graph.add("SQUARED_DIFFERENCE", x, mean)
    if correction == 0:
        return reduce(graph, "MEAN", squares, found, keepdims=keepdims)
    freedom = graph.add("MAXIMUM", graph.add("SUB", count(graph, x, found), float(correction)), 0.0)
    return graph.add("DIV", reduce(graph, "SUM", squares, found, keepdims=keepdims), freedom)


def log_sum_exp(graph: Graph, x: Value, axes: Axes = None, *, keepdims: bool = False) -> Value:
    """log(sum(exp(x))), computed with distances from the maximum so that nothing overflows."""
    found = normalized(axes, x.rank)
    largest = reduce(graph, "REDUCE_MAX", x, found, keepdims=True)
    finite = graph.add("MAXIMUM", graph.add("MINIMUM", largest, LARGEST), -LARGEST)
    powers = graph.add("EXP", graph.add("SUB", x, finite))
    result = graph.add("ADD", graph.add("LOG", reduce(graph, "SUM", powers, found, keepdims=True)), finite)
    return result if keepdims else without(graph, result, found)


def norm(graph: Graph, x: Value, order: float = 2, axes: Axes = None, *, keepdims: bool = False) -> Value:
    """(sum(abs(x) ** order)) ** (1 / order), with its limits for infinite orders, and for 0 how many are not zero."""
    if order == 2:
        return graph.add("SQRT", reduce(graph, "SUM", graph.add("SQUARE", x), axes, keepdims=keepdims))
    if order == 0:
        return reduce(graph, "SUM", cast(graph, truth(graph, x), x.type), axes, keepdims=keepdims)
    size = graph.add("ABS", x)
    if math.isinf(order):
        return reduce(graph, "REDUCE_MAX" if order > 0 else "REDUCE_MIN", size, axes, keepdims=keepdims)
    if order == 1:
        return reduce(graph, "SUM", size, axes, keepdims=keepdims)
    total = reduce(graph, "SUM", graph.add("POW", size, float(order)), axes, keepdims=keepdims)
    return graph.add("POW", total, 1 / order)


def without(graph: Graph, x: Value, axes: Sequence[int]) -> Value:
    """A value without some of its axes, each of which has one element."""
    gone = normalized(axes, x.rank)
    return reshape(graph, x, [size for axis, size in enumerate(sizes(x)) if axis not in gone])


def position(
    graph: Graph,
    op: str,
    x: Value,
    axis: int | None,
    *,
    keepdims: bool = False,
    last: bool = False,
    type: TensorType = TensorType.INT64,
) -> Value:
    """ARG_MAX or ARG_MIN: the position of the first extreme, or the last one; without an axis, that in all elements."""
    rank = x.rank
    if axis is None:
        x = flat(graph, x)
        result = position(graph, op, x, 0, last=last, type=type)
        return reshape(graph, result, [1] * rank) if keepdims else result
    if not rank:
        return graph.constant(np.zeros((), np.int64 if type == TensorType.INT64 else np.int32))
    axis %= rank
    if x.type in (TensorType.BOOL, TensorType.INT64, TensorType.INT16, TensorType.INT8, TensorType.UINT8):
        x = cast(graph, x, TensorType.INT32)
    if last:
        x = graph.add("REVERSE_V2", x, np.array([axis], np.int32))
    result = graph.add(op, x, np.array(axis, np.int32), type=type, output_type=type)
    if last:
        final = graph.add("SUB", count(graph, x, [axis], type), cast(graph, graph.constant(1), type))
        result = graph.add("SUB", final, result)
    return graph.add("EXPAND_DIMS", result, np.array(axis, np.int32)) if keepdims else result


def flat(graph: Graph, x: Value) -> Value:
    """All elements as a vector."""
    if x.rank == 1:
        return x
    return graph.add("RESHAPE", x, np.array([-1], np.int32), new_shape=(-1,))


def cumulative_sum(graph: Graph, x: Value, axis: int, *, exclusive: bool = False, reverse: bool = False) -> Value:
    """Sums of what is before and at each element."""
    axis = axis % x.rank if x.rank else 0
    if not x.rank:
        return x
    return widened(graph, "CUMSUM", x, np.array(axis, np.int32), exclusive=exclusive, reverse=reverse)


def cumulative(graph: Graph, op: str, x: Value, axis: int, identity: float) -> Value:
    """MUL, MAXIMUM, MINIMUM ... of what is before and at each element: each step doubles how far back elements see.

    Raises `Refused` if the size is open.
    """
    if not x.rank:
        return x
    axis %= x.rank
    size = x.dims[axis]
    if size is None:
        refuse(f"running results over an axis whose size is open; give it with --shape ({x!r})")
    far = 1
    while far < size:
        paddings = np.zeros((x.rank, 2), np.int32)
        paddings[axis, 0] = far
        before = graph.add("PADV2", slice_axis(graph, x, axis, 0, size - far), paddings, np.array(identity, x.dtype))
        x = widened(graph, op, x, before)
        far *= 2
    return x


def running_extreme(graph: Graph, op: str, x: Value, axis: int) -> tuple[Value, Value]:
    """MAXIMUM or MINIMUM of what is before and at each element, and where it was last: int32."""
    if not x.rank:
        return x, graph.constant(0)
    axis %= x.rank
    if x.type == TensorType.BOOL:
        found, places = running_extreme(graph, op, cast(graph, x, TensorType.INT32), axis)
        return cast(graph, found, x.type), places
    low: float = -math.inf if x.dtype.kind == "f" else int(np.iinfo(x.dtype).min)
    high: float = math.inf if x.dtype.kind == "f" else int(np.iinfo(x.dtype).max)
    extreme = cumulative(graph, op, x, axis, low if op == "MAXIMUM" else high)
    here = np.arange(x.shape[axis], dtype=np.int32).reshape([-1 if n == axis else 1 for n in range(x.rank)])
    reached = graph.add("SELECT_V2", widened(graph, "EQUAL", x, extreme), here, np.zeros((), np.int32))
    return extreme, cumulative(graph, "MAXIMUM", reached, axis, 0)


def top(graph: Graph, x: Value, k: int | Value | None, axis: int = -1, *, largest: bool = True) -> tuple[Value, Value]:
    """The ``k`` largest or smallest elements in order, those that came first first, and where they were: int32.

    Without ``k``, all of them.
    """
    if not x.rank:
        return x, graph.constant(0)
    axis %= x.rank
    own = x.type
    if own not in _TOPK_TYPES:
        x = cast(graph, x, TensorType.FLOAT32 if x.dtype.kind in "fV" else TensorType.INT32)
    order = [*[n for n in range(x.rank) if n != axis], axis]
    x = transpose(graph, x, order)
    if k is None:
        k = graph.add("STRIDED_SLICE", size_vector(graph, x), [x.rank - 1], [x.rank], [1], shrink_axis_mask=1)
    elif isinstance(k, int):
        k = graph.constant(np.array(k, np.int32))
    flipped = x if largest else _opposite(graph, x)
    values, indices = graph.add_many(
        "TOPK_V2", [flipped, cast(graph, k, TensorType.INT32)], 2, types=[x.type, TensorType.INT32]
    )
    values = values if largest else _opposite(graph, values)
    back = list(np.argsort(order))
    return cast(graph, transpose(graph, values, back), own), transpose(graph, indices, back)


def _opposite(graph: Graph, x: Value) -> Value:
    """What orders the other way round: for integers -1 - x, which every one has."""
    return graph.add("NEG", x) if x.dtype.kind == "f" else graph.add("SUB", np.array(-1, x.dtype), x)
