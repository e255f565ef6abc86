"""Elements at positions: taken, put, counted, put in order."""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.convert.blocks import indexing
from gossamer.convert.blocks.elementwise import widened
from gossamer.convert.blocks.moves import moved
from gossamer.convert.blocks.reductions import top
from gossamer.convert.blocks.shapes import cast, reshape, size_vector, sizes, transpose
from gossamer.convert.blocks.vectors import elements, index_type, int32, open_size
from gossamer.convert.graph import Size, Value
from gossamer.convert.lowerings.onnx import Call, axis_of, lowers
from gossamer.convert.lowerings.onnx.shapes import known_size
from gossamer.schema.enums import TensorType as T


@lowers("Gather")
def gather(call: Call) -> Value:
    graph, x = call.graph, call.value(0)
    axis = axis_of(call.int("axis"), x.rank)
    positions = indexing.wrapped(graph, index_type(graph, call.value(1)), x, axis)
    return moved(graph, "GATHER", x, positions, axis=axis)


@lowers("GatherElements")
def gather_elements(call: Call) -> Value:
    x = call.value(0)
    axis = axis_of(call.int("axis"), x.rank)
    positions = indexing.wrapped(call.graph, index_type(call.graph, call.value(1)), x, axis)
    return indexing.take_along(call.graph, x, positions, axis)


@lowers("GatherND")
def gather_nd(call: Call) -> Value:
    graph, x, positions = call.graph, call.value(0), index_type(call.graph, call.value(1))
    batch = call.int("batch_dims")
    positions = wrapped_vectors(call, positions, x, batch)
    if not batch:
        return moved(graph, "GATHER_ND", x, positions)
    lead = []
    for axis in range(batch):
        count = known_size(positions, axis)
        shape = [count if n == axis else 1 for n in range(positions.rank)]
        lead.append(np.arange(count, dtype=positions.dtype).reshape(shape))
    shape = [*positions.shape[:-1], batch]
    numbers = np.concatenate([np.broadcast_to(one, [*shape[:-1], 1]) for one in lead], -1)
    whole = graph.add("CONCATENATION", numbers, positions, axis=positions.rank - 1)
    return moved(graph, "GATHER_ND", x, whole)


def wrapped_vectors(call: Call, positions: Value, x: Value, batch: int = 0) -> Value:
    """Index vectors with negative numbers counted from the end."""
    if positions.data is not None and (not positions.data.size or positions.data.min() >= 0):
        return positions
    depth = known_size(positions, positions.rank - 1)
    whole = size_vector(call.graph, x, positions.type)
    ends = call.add("STRIDED_SLICE", whole, [batch], [batch + depth], [1])
    low = call.add("LESS", positions, call.scalar(0, positions))
    return call.add("SELECT_V2", low, call.add("ADD", positions, ends), positions)


_COMBINED = {"none": "set", "add": "add", "mul": "mul", "max": "max", "min": "min"}


@lowers("ScatterND")
def scatter_nd(call: Call) -> Value:
    x, positions = call.value(0), wrapped_vectors(call, index_type(call.graph, call.value(1)), call.value(0))
    return indexing.scatter_nd(call.graph, x, positions, call.value(2), _COMBINED[call.string("reduction", "none")])


@lowers("ScatterElements", "Scatter")
def scatter_elements(call: Call) -> Value:
    x = call.value(0)
    axis = axis_of(call.int("axis"), x.rank)
    positions = indexing.wrapped(call.graph, index_type(call.graph, call.value(1)), x, axis)
    return indexing.scatter_along(
        call.graph, x, positions, call.value(2), axis, _COMBINED[call.string("reduction", "none")]
    )


@lowers("TensorScatter")
def tensor_scatter(call: Call) -> Value:
    """Updates written into a cache, at a place along ``axis`` for each element of the batch."""
    graph, x, update = call.graph, call.value(0), call.value(1)
    axis = axis_of(call.int("axis", -2), x.rank)
    length, count, batch = known_size(x, axis), known_size(update, axis), known_size(x, 0)
    first = call.optional(2)
    begin = graph.constant(np.zeros(batch, np.int32)) if first is None else int32(graph, first)
    places = call.add("ADD", reshape(graph, begin, [batch, 1]), np.arange(count, dtype=np.int32)[None])
    if call.string("mode", "linear") == "circular":
        places = call.add("FLOOR_MOD", places, length)
    shape = [batch if n == 0 else count if n == axis else 1 for n in range(x.rank)]
    wide = indexing.broadcast_to(graph, reshape(graph, places, shape), list(update.shape))
    return indexing.scatter_along(graph, x, wide, update, axis)


@lowers("OneHot")
def one_hot(call: Call) -> Value:
    """Negative positions count from the end."""
    graph, positions = call.graph, call.value(0)
    depth = reshape(graph, int32(graph, cast(graph, call.value(1), T.INT32)), [])
    values = call.value(2)
    off, on = [_element(call, values, n) for n in (0, 1)]
    positions = cast(graph, positions, T.INT64 if positions.type == T.INT64 else T.INT32)
    low = call.add("LESS", positions, call.scalar(0, positions))
    far = call.add("ADD", positions, cast(graph, depth, positions.type))
    positions = call.add("SELECT_V2", low, far, positions)
    axis = axis_of(call.int("axis", -1), positions.rank + 1)
    shape: list[int | Size] | None = None
    if depth.data is None:
        stated = call.declared(positions.rank + 1)
        rest = iter(sizes(positions))
        shape = [stated[n] if n == axis else next(rest) for n in range(positions.rank + 1)]
    where = axis if axis < positions.rank else -1
    return moved(graph, "ONE_HOT", positions, depth, on, off, data=(2, 3), axis=where, shape=shape)


def _element(call: Call, vector: Value, place: int) -> Value:
    return moved(call.graph, "STRIDED_SLICE", vector, [place], [place + 1], [1], shrink_axis_mask=1)


@lowers("NonZero")
def non_zero(call: Call) -> Value:
    """A row for each axis."""
    x = call.value(0)
    if x.type not in (T.BOOL, T.FLOAT32, T.INT32, T.INT64):
        x = widened(call.graph, "NOT_EQUAL", x, call.scalar(0, x))
    if not x.rank:
        x = reshape(call.graph, x, [1])
    found = call.add("WHERE", x, shape=(open_size(), x.rank))
    return transpose(call.graph, found, (1, 0))


@lowers("Compress")
def compress(call: Call) -> Value:
    """The slices of an axis for which a condition holds."""
    graph, x, condition = call.graph, call.value(0), call.value(1)
    axis = axis_of(call.int("axis"), x.rank) if call.has("axis") else 0
    if not call.has("axis"):
        x = graph.add("RESHAPE", x, np.array([-1], np.int32), new_shape=(-1,))
    places = graph.add("WHERE", condition, shape=(open_size(), 1))
    places = reshape(graph, places, [places.size(0)])
    return moved(graph, "GATHER", x, places, axis=axis)


@lowers("ReverseSequence")
def reverse_sequence(call: Call) -> Value:
    batch, time = call.int("batch_axis", 1), call.int("time_axis", 0)
    return moved(
        call.graph,
        "REVERSE_SEQUENCE",
        call.value(0),
        index_type(call.graph, call.value(1)),
        seq_dim=time,
        batch_dim=batch,
    )


@lowers("TopK")
def top_k(call: Call) -> list[Value]:
    graph, x = call.graph, call.value(0)
    axis = axis_of(call.int("axis", -1), x.rank)
    k: int | Value = call.int("k")
    if call.version >= 10:
        given = call.value(1)
        known = elements(given)[0]
        k = known if isinstance(known, int) else reshape(graph, int32(graph, given), [])
    if isinstance(k, Value) and k.known is None:
        return _top_any(call, x, k, axis)
    values, places = top(graph, x, k, axis, largest=call.flag("largest", True))
    return [values, cast(graph, places, T.INT64)]


def _top_any(call: Call, x: Value, k: Value, axis: int) -> list[Value]:
    """As many as only values tell: all in order, the first of them."""
    graph = call.graph
    values, places = top(graph, x, known_size(x, axis), axis, largest=call.flag("largest", True))
    ends = call.add("SCATTER_ND", np.array([[axis]], np.int32), reshape(graph, k, [1]), np.array([x.rank], np.int32))
    others = np.array([0 if n == axis else 1 for n in range(x.rank)], np.int32)
    ends = call.add("ADD", ends, call.add("MUL", size_vector(graph, x), others))
    zero, one = np.zeros(x.rank, np.int32), np.ones(x.rank, np.int32)
    stated = [call.declared(x.rank)[n] if n == axis else size for n, size in enumerate(sizes(x))]
    found = [graph.add("STRIDED_SLICE", part, zero, ends, one, shape=stated) for part in (values, places)]
    return [found[0], cast(graph, found[1], T.INT64)]


@lowers("Unique")
def unique(call: Call) -> list[Value | None]:
    """The elements that there are, in order or as they come first; of constants also the slices of an axis."""
    graph, x = call.graph, call.value(0)
    is_sorted = call.flag("sorted", True)
    if x.data is not None and not x.dtype.hasobject:
        return _unique_known(call, x.data, is_sorted)
    if call.has("axis") and x.rank != 1:
        return _unique_slices(call, x, is_sorted)
    flat = graph.add("RESHAPE", x, np.array([-1], np.int32), new_shape=(-1,))
    flat = cast(graph, flat, x.type if x.type in (T.FLOAT32, T.INT32, T.INT64) else T.INT32)
    count = open_size()
    values, inverse = graph.add_many(
        "UNIQUE", [flat], 2, types=[flat.type, T.INT32], shapes=[(count,), (flat.size(0),)]
    )
    total = graph.add("STRIDED_SLICE", size_vector(graph, values), [0], [1], [1], shrink_axis_mask=1)
    if is_sorted:
        ordered, order = graph.add_many(
            "TOPK_V2",
            [_opposite(call, values), total],
            2,
            types=[values.type, T.INT32],
            shapes=[(count,), (count,)],
        )
        values = _opposite(call, ordered)
        rank = graph.add(
            "SCATTER_ND",
            reshape(graph, order, [count, 1]),
            _count_up(call, total, count),
            _one(call, total),
            shape=(count,),
        )
        inverse = graph.add("GATHER", rank, inverse)
    same = graph.add(
        "EQUAL", reshape(graph, inverse, [1, flat.size(0)]), reshape(graph, _count_up(call, total, count), [count, 1])
    )
    first = graph.add("ARG_MAX", cast(graph, same, T.INT32), np.array(1, np.int32), type=T.INT64)
    counts = graph.add("SUM", cast(graph, same, T.INT32), np.array([1], np.int32))
    return [cast(graph, values, x.type), first, cast(graph, inverse, T.INT64), cast(graph, counts, T.INT64)]


def _unique_slices(call: Call, x: Value, is_sorted: bool) -> list[Value | None]:
    """Slices of an axis that are different. Their order is that of the numbers in them, the first one first."""
    graph = call.graph
    axis = axis_of(call.int("axis"), x.rank)
    count = known_size(x, axis)
    order = [axis, *[n for n in range(x.rank) if n != axis]]
    rows = reshape(graph, transpose(graph, x, order), [count, int(np.prod(x.shape)) // count])
    rows = cast(graph, rows, T.FLOAT32)
    left, right = (
        graph.add("EXPAND_DIMS", rows, np.array(1, np.int32)),
        graph.add("EXPAND_DIMS", rows, np.array(0, np.int32)),
    )
    width = rows.shape[1]
    sign = graph.add("SIGN", graph.add("SUB", left, right))  # [count, count, width]
    places = np.arange(width, 0, -1).astype(np.float32)
    scored = graph.add("MUL", graph.add("ABS", sign), places)
    lead = graph.add("ARG_MAX", scored, np.array(2, np.int32), type=T.INT32)
    hot = graph.add("ONE_HOT", lead, width, 1.0, 0.0, axis=-1)
    verdict = graph.add("SUM", graph.add("MUL", sign, hot), np.array([2], np.int32))  # -1, 0, 1
    same = graph.add("EQUAL", verdict, 0.0)
    first = graph.add("ARG_MAX", cast(graph, same, T.INT32), np.array(1, np.int32), type=T.INT32)
    is_first = graph.add("EQUAL", first, np.arange(count, dtype=np.int32))
    weight = cast(graph, is_first, T.INT32)
    before = (
        graph.add("GREATER", verdict, 0.0) if is_sorted else graph.constant(np.tril(np.ones((count, count), bool), -1))
    )
    place = graph.add(
        "SUM",
        graph.add("MUL", cast(graph, before, T.INT32), graph.add("EXPAND_DIMS", weight, np.array(0, np.int32))),
        np.array([1], np.int32),
    )
    inverse = graph.add("GATHER", place, first)
    where = graph.add("WHERE", is_first, shape=(open_size(), 1))
    kept = cast(graph, reshape(graph, where, [where.size(0)]), T.INT32)
    total = graph.add("STRIDED_SLICE", size_vector(graph, kept), [0], [1], [1])
    target = reshape(graph, graph.add("GATHER", place, kept), [kept.size(0), 1])
    indices = graph.add("SCATTER_ND", target, kept, total, shape=(kept.size(0),))
    counts = graph.add("GATHER", graph.add("SUM", cast(graph, same, T.INT32), np.array([1], np.int32)), indices)
    values = moved(graph, "GATHER", x, indices, axis=axis)
    return [values, cast(graph, indices, T.INT64), cast(graph, inverse, T.INT64), cast(graph, counts, T.INT64)]


def _unique_known(call: Call, data: NDArray[Any], is_sorted: bool) -> list[Value | None]:
    axis = call.int("axis") if call.has("axis") else None
    values, first, inverse, counts = np.unique(data, True, True, True, axis=axis)
    inverse = inverse.reshape(-1)
    if not is_sorted:
        order = np.argsort(first, kind="stable")
        values = np.take(values, order, 0 if axis is None else axis)
        first, counts, inverse = first[order], counts[order], np.argsort(order, kind="stable")[inverse]
    return [
        call.graph.constant(np.asarray(one))
        for one in (values, *[n.astype(np.int64) for n in (first, inverse, counts)])
    ]


def _opposite(call: Call, x: Value) -> Value:
    return call.add("NEG", x) if x.type == T.FLOAT32 else call.add("SUB", call.scalar(-1, x), x)


def _count_up(call: Call, total: Value, size: int | Size) -> Value:
    count = total if not total.rank else call.add("STRIDED_SLICE", total, [0], [1], [1], shrink_axis_mask=1)
    return call.add("RANGE", 0, count, 1, shape=(size,))


def _one(call: Call, total: Value) -> Value:
    return call.add("RESHAPE", total, np.array([1], np.int32), new_shape=(1,))
