"""Axes reduced to one number, running sums and products, positions of extremes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from gossamer.convert.blocks.elementwise import widened
from gossamer.convert.blocks.indexing import broadcast_to, flip, pad, slice_axis
from gossamer.convert.blocks.reductions import cumulative, cumulative_sum, log_sum_exp, normalized, position, reduce
from gossamer.convert.blocks.shapes import cast, reshape, sizes
from gossamer.convert.blocks.vectors import int32
from gossamer.convert.graph import Graph, Refused, Value
from gossamer.convert.lowerings.onnx import Call, axis_of, lowers
from gossamer.convert.lowerings.onnx.shapes import known_size
from gossamer.schema.enums import TensorType as T

Elementwise = Callable[[Graph, Value], Value]


def _same(graph: Graph, x: Value) -> Value:
    return x


def _abs(graph: Graph, x: Value) -> Value:
    return widened(graph, "ABS", x)


def _square(graph: Graph, x: Value) -> Value:
    return widened(graph, "MUL", x, x)


def _sqrt(graph: Graph, x: Value) -> Value:
    return widened(graph, "SQRT", x)


def _log(graph: Graph, x: Value) -> Value:
    return widened(graph, "LOG", x)


def _exp(graph: Graph, x: Value) -> Value:
    return widened(graph, "EXP", x)


REDUCED: dict[str, tuple[Elementwise, str, Elementwise, float]] = {
    "ReduceL1": (_abs, "SUM", _same, 0),
    "ReduceL2": (_square, "SUM", _sqrt, 0),
    "ReduceLogSum": (_same, "SUM", _log, -math.inf),
    "ReduceLogSumExp": (_exp, "SUM", _log, -math.inf),
    "ReduceMax": (_same, "REDUCE_MAX", _same, -math.inf),
    "ReduceMean": (_same, "MEAN", _same, math.nan),
    "ReduceMin": (_same, "REDUCE_MIN", _same, math.inf),
    "ReduceProd": (_same, "REDUCE_PROD", _same, 1),
    "ReduceSum": (_same, "SUM", _same, 0),
    "ReduceSumSquare": (_square, "SUM", _same, 0),
}
"""What happens to elements, how they are reduced, what happens to the result, and what it is for no elements."""

_OF_BOOL = {"REDUCE_MAX": "REDUCE_ANY", "REDUCE_MIN": "REDUCE_ALL"}


@lowers(*REDUCED)
def reduced(call: Call) -> Value:
    """Over axes that are an attribute before version 18 (the sum: 13); over all of them if there are none."""
    graph, x = call.graph, call.value(0)
    before, op, after, nothing = REDUCED[call.op]
    op = _OF_BOOL.get(op, op) if x.type == T.BOOL else op
    keepdims = call.flag("keepdims", True)
    given = call.optional(1)
    if given is not None and given.data is None and given.shape[0] and x.rank:
        return _reduced_anywhere(call, x, given, keepdims)
    axes = call.numbers(1, "axes", "axes")
    if not axes:
        axes = [] if call.flag("noop_with_empty_axes") else list(range(x.rank))
    axes = normalized([axis_of(axis, x.rank) for axis in axes], x.rank)
    if 0 in x.dims:
        shape = [1 if n in axes else size for n, size in enumerate(sizes(x)) if keepdims or n not in axes]
        if 0 not in shape:
            return broadcast_to(graph, _nothing(call, x, nothing), shape)
    if call.op == "ReduceLogSumExp" and x.type == T.FLOAT32 and axes:
        return log_sum_exp(graph, x, axes, keepdims=keepdims)
    return after(graph, reduce(graph, op, before(graph, x), axes, keepdims=keepdims))


def _nothing(call: Call, x: Value, number: float) -> Value:
    """The result for no elements."""
    if x.type != T.FLOAT32 and not math.isfinite(number):
        ends = np.iinfo(x.dtype) if x.dtype.kind in "iu" else None
        number = 0 if ends is None or math.isnan(number) else ends.max if number > 0 else ends.min
        number = bool(number > 0) if x.dtype.kind == "b" else number
    return call.scalar(number, x)


def _reduced_anywhere(call: Call, x: Value, axes: Value, keepdims: bool) -> Value:
    """Over axes that only values tell."""
    graph = call.graph
    before, op, after, nothing = REDUCED[call.op]
    op = _OF_BOOL.get(op, op) if x.type == T.BOOL else op
    stated = call.declared(x.rank if keepdims else max(x.rank - axes.shape[0], 0))
    if 0 in x.dims and 0 not in stated:
        return broadcast_to(graph, _nothing(call, x, nothing), stated)
    return after(graph, widened(graph, op, before(graph, x), int32(graph, axes), keep_dims=keepdims, shape=stated))


@lowers("ArgMax", "ArgMin")
def arg(call: Call) -> Value:
    op = "ARG_MAX" if call.op == "ArgMax" else "ARG_MIN"
    x = call.value(0)
    axis = axis_of(call.int("axis"), x.rank)
    return position(call.graph, op, x, axis, keepdims=call.flag("keepdims", True), last=call.flag("select_last_index"))


@lowers("CumSum")
def cumsum(call: Call) -> Value:
    x, axis = call.value(0), call.value(1)
    options = {"exclusive": call.flag("exclusive"), "reverse": call.flag("reverse")}
    if axis.data is None:
        return widened(call.graph, "CUMSUM", x, reshape(call.graph, int32(call.graph, axis), []), **options)
    return cumulative_sum(call.graph, x, axis_of(int(axis.data.reshape(())), x.rank), **options)


@lowers("CumProd")
def cumprod(call: Call) -> Value:
    x, axis = call.value(0), call.value(1)
    if axis.data is not None:
        return _cumprod(call, x, axis_of(int(axis.data.reshape(())), x.rank))
    number = reshape(call.graph, int32(call.graph, axis), [])
    result = _cumprod(call, x, 0)
    for n in range(1, x.rank):
        is_it = call.add("LOGICAL_OR", call.add("EQUAL", number, n), call.add("EQUAL", number, n - x.rank))
        result = call.add("SELECT_V2", is_it, _cumprod(call, x, n), result)
    return result


def _cumprod(call: Call, x: Value, axis: int) -> Value:
    graph, size = call.graph, known_size(x, axis)
    x = flip(graph, x, [axis]) if call.flag("reverse") else x
    if call.flag("exclusive"):
        pairs = [(1, 0) if n == axis else (0, 0) for n in range(x.rank)]
        x = slice_axis(graph, pad(graph, x, pairs, value=1), axis, 0, size)
    result = cumulative(graph, "MUL", x, axis, 1)
    return flip(graph, result, [axis]) if call.flag("reverse") else result


@lowers("Det")
def det(call: Call) -> Value:
    """By the first row and its minors."""
    x = call.value(0)
    size = known_size(x, x.rank - 1)
    if size > MOST_EXPANDED:
        raise Refused(
            f"determinants of matrices of {size} x {size}; up to {MOST_EXPANDED} x {MOST_EXPANDED} are computed"
        )
    entries = [[_entry(call, x, row, column) for column in range(size)] for row in range(size)]
    return _minor(call, entries, list(range(size)), list(range(size)))


MOST_EXPANDED = 5
"""Rows of a matrix whose determinant is written out."""


def _entry(call: Call, x: Value, row: int, column: int) -> Value:
    value = slice_axis(call.graph, slice_axis(call.graph, x, x.rank - 2, row, row + 1), x.rank - 1, column, column + 1)
    return reshape(call.graph, value, sizes(x)[:-2])


def _minor(call: Call, entries: list[list[Value]], rows: Sequence[int], columns: Sequence[int]) -> Value:
    if len(rows) == 1:
        return entries[rows[0]][columns[0]]
    total: Value | None = None
    for place, column in enumerate(columns):
        rest = [one for one in columns if one != column]
        term = call.add("MUL", entries[rows[0]][column], _minor(call, entries, rows[1:], rest))
        if total is None:
            total = term
        else:
            total = call.add("SUB" if place % 2 else "ADD", total, term)
    if total is None:
        return cast(call.graph, call.graph.constant(1.0), T.FLOAT32)
    return total
