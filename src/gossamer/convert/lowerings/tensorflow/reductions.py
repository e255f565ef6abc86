"""Reductions, running results, positions of extremes, sorted elements, and ranges of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer.convert.blocks import reductions
from gossamer.convert.blocks.complex_numbers import COMPLEX, of_pairs, pairs
from gossamer.convert.blocks.elementwise import widened
from gossamer.convert.blocks.indexing import slice_axis
from gossamer.convert.blocks.shapes import cast, sizes
from gossamer.convert.blocks.vectors import decided, elements, int32, open_size
from gossamer.convert.graph import Graph, Refused, Size, Value, refuse
from gossamer.convert.lowerings.tensorflow import Call, lowers
from gossamer.ops import find_op
from gossamer.schema.enums import TensorType

T = TensorType

REDUCTIONS = {
    "All": "REDUCE_ALL",
    "Any": "REDUCE_ANY",
    "Max": "REDUCE_MAX",
    "Mean": "MEAN",
    "Min": "REDUCE_MIN",
    "Prod": "REDUCE_PROD",
    "Sum": "SUM",
}


@lowers(*REDUCTIONS)
def reduction(call: Call) -> Value:
    return reduced(call, REDUCTIONS[call.op], call.value(0))


@lowers("EuclideanNorm")
def euclidean_norm(call: Call) -> Value:
    x = call.value(0)
    return widened(call.graph, "SQRT", reduced(call, "SUM", widened(call.graph, "MUL", x, x)))


def reduced(call: Call, op: str, x: Value) -> Value:
    """A reduction over the axes of input 1, which may be computed; then all that is known of the shape is its rank."""
    graph, axes = call.graph, call.value(1)
    keep = call.attributes.bool("keep_dims", False)
    if x.type in COMPLEX:
        if op not in ("SUM", "MEAN") or axes.data is None:
            raise Refused(f"{call.op} of complex numbers over {axes!r} cannot be converted")
        found = reductions.normalized(axes.data.reshape(-1).tolist(), x.rank)
        return of_pairs(graph, reductions.reduce(graph, op, pairs(graph, x), found, keepdims=keep)) if found else x
    if axes.data is not None:
        return reductions.reduce(graph, op, x, axes.data.reshape(-1).tolist(), keepdims=keep)
    count = axes.dims[0] if axes.rank else 1
    if count is None and not keep:
        refuse("the number of its axes is open; make them a constant")
    shape = [open_size() for _ in range(x.rank if keep else x.rank - int(count or 0))]
    axes = int32(graph, axes)
    return widened(graph, op, x, axes, keep_dims=keep, shape=shape)


# -- running results


@lowers("Cumsum")
def cumsum(call: Call) -> Value:
    graph, (x, axis) = call.graph, call.values()
    return widened(graph, "CUMSUM", x, int32(graph, axis), **_direction(call))


def _direction(call: Call) -> dict[str, Any]:
    return {name: call.attributes.bool(name, False) for name in ("exclusive", "reverse")}


@lowers("Cumprod")
def cumprod(call: Call) -> Value:
    graph, x = call.graph, call.value(0)
    axis = int(call.constant(1, "the axis").reshape(-1)[0]) % x.rank
    flip = np.array([axis], np.int32)
    reverse = call.attributes.bool("reverse", False)
    if reverse:
        x = widened(graph, "REVERSE_V2", x, flip)
    if call.attributes.bool("exclusive", False):
        size = x.dims[axis]
        paddings = np.zeros((x.rank, 2), np.int32)
        paddings[axis, 0] = 1
        before = slice_axis(graph, x, axis, 0, size - 1 if size else -1)
        x = widened(graph, "PADV2", before, paddings, np.ones((), x.dtype))
    x = reductions.cumulative(graph, "MUL", x, axis, 1)
    return widened(graph, "REVERSE_V2", x, flip) if reverse else x


@lowers("CumulativeLogsumexp")
def cumulative_logsumexp(call: Call) -> Value:
    """Relative to the largest of all elements, so that nothing overflows."""
    graph, x = call.graph, cast(call.graph, call.value(0), T.FLOAT32)
    axis = call.constant(1, "the axis").reshape(-1).astype(np.int32)
    largest = reductions.reduce(graph, "REDUCE_MAX", x, axis.tolist(), keepdims=True)
    sums = graph.add("CUMSUM", graph.add("EXP", graph.add("SUB", x, largest)), axis.reshape(()), **_direction(call))
    return cast(graph, graph.add("ADD", graph.add("LOG", sums), largest), call.value(0).type)


# -- positions and order


@lowers("ArgMax", "ArgMin")
def arg_extreme(call: Call) -> Value:
    graph, x = call.graph, call.value(0)
    op = "ARG_MAX" if call.op == "ArgMax" else "ARG_MIN"
    axis = int32(graph, call.value(1)) if len(call.inputs) > 1 else graph.constant(0)
    found = find_op(op)
    if found is not None and x.type not in found.types["x"]:
        x = cast(graph, x, T.FLOAT32 if x.dtype.kind in "fV" else T.INT32)
    wanted = call.attributes.type("output_type", T.INT64)
    type = wanted if wanted in (T.INT32, T.INT64) else T.INT32
    shape = None if axis.data is not None else [open_size() for _ in range(x.rank - 1)]
    return cast(graph, graph.add(op, x, axis, type=type, shape=shape), wanted)


@lowers("TopK", "TopKV2")
def top_k(call: Call) -> list[Value]:
    """``k`` is an attribute of the first version."""
    k = call.attributes.int("k") if call.op == "TopK" else call.value(1)
    wanted = call.attributes.type("index_type", T.INT32)
    values, places = _top(call.graph, call.value(0), k)
    return [values, cast(call.graph, places, wanted)]


def _top(graph: Graph, x: Value, k: int | Value) -> tuple[Value, Value]:
    """The largest elements of the last axis, and where they are."""
    own, operator = x.type, find_op("TOPK_V2")
    if operator is not None and own not in operator.types["x"]:
        x = cast(graph, x, T.FLOAT32 if x.dtype.kind in "fV" else T.INT32)
    count = int32(graph, k) if isinstance(k, Value) else graph.constant(np.array(k, np.int32))
    size: int | Size = open_size()
    shape = [*sizes(x)[:-1], size]
    found = graph.add_many("TOPK_V2", [x, count], 2, types=[x.type, T.INT32], shapes=[shape, shape])
    return cast(graph, found[0], own), found[1]


@lowers("ApproxTopK")
def approximate_top_k(call: Call) -> list[Value]:
    """All of the exact ones are approximate ones, too."""
    attributes, graph = call.attributes, call.graph
    values, places = reductions.top(
        graph,
        call.value(0),
        attributes.int("k"),
        attributes.int("reduction_dimension", -1),
        largest=attributes.bool("is_max_k", True),
    )
    return [values, places]


@lowers("NthElement")
def nth_element(call: Call) -> Value:
    """The element that is number n of a sorted row."""
    graph, x = call.graph, call.value(0)
    number = int(call.constant(1, "the number"))
    values, _ = reductions.top(graph, x, number + 1, -1, largest=call.attributes.bool("reverse", False))
    begin = np.array([0] * (x.rank - 1) + [number], np.int32)
    last = graph.add("SLICE", values, begin, np.array([-1] * (x.rank - 1) + [1], np.int32))
    return reductions.without(graph, last, [x.rank - 1])


@lowers("LowerBound", "UpperBound")
def bound(call: Call) -> Value:
    """How many elements of a sorted row are less than each value; with ``UpperBound``, or equal."""
    graph, (rows, values) = call.graph, call.values()
    op = "LESS" if call.op == "LowerBound" else "LESS_EQUAL"
    before = widened(graph, op, graph.add("EXPAND_DIMS", rows, 1), graph.add("EXPAND_DIMS", values, 2))
    count = reductions.reduce(graph, "SUM", graph.add("CAST", before, type=T.INT32), [2])
    return cast(graph, count, call.attributes.type("out_type", T.INT32))


# -- ranges


@lowers("Range")
def range_(call: Call) -> Value:
    graph, values = call.graph, call.values()
    own, operator = values[0].type, find_op("RANGE")
    if operator is not None and own not in operator.types["start"]:
        values = [cast(graph, value, T.FLOAT32 if value.dtype.kind in "fV" else T.INT32) for value in values]
    if own in (T.INT32, T.INT64):
        start, limit, delta = (elements(value)[0] for value in values)
        size = decided(limit) if (start, delta) == (0, 1) else decided(start, limit, delta)
    else:
        size = open_size()
    return cast(graph, graph.add("RANGE", *values, shape=[size]), own)


@lowers("LinSpace")
def linspace(call: Call) -> Value:
    """``(start, stop, num)``: the first is start, the last stop."""
    graph, own = call.graph, call.value(0).type
    start, stop = (cast(graph, value, T.FLOAT32) for value in call.values(0, 2))
    number = int32(graph, call.value(2))
    last = graph.add("MAXIMUM", graph.add("SUB", number, 1), 1)
    places = graph.add("RANGE", 0, number, 1, shape=[open_size()])
    share = graph.add("DIV", cast(graph, places, T.FLOAT32), cast(graph, last, T.FLOAT32))
    found = graph.add("ADD", graph.add("MUL", share, graph.add("SUB", stop, start)), start)
    return cast(graph, graph.add("SELECT_V2", graph.add("EQUAL", places, last), stop, found), own)
