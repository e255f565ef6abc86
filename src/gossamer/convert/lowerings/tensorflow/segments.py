"""Segments of rows taken together, counts of numbers, and sets of numbers.

Segments are numbered by ids, one for each row; those of the sorted operators grow, and the last one says how many there
are. A segment without rows is 0 for sums and means, 1 for products, and the end of the type for extremes; in the sorted
operators, 0.
"""

from __future__ import annotations

import numpy as np

from gossamer.convert.blocks.elementwise import widened
from gossamer.convert.blocks.moves import moved
from gossamer.convert.blocks.reductions import flat, reduce
from gossamer.convert.blocks.shapes import cast, reshape, size_vector, sizes
from gossamer.convert.blocks.vectors import as_sizes, elements, index_type, int32, open_size
from gossamer.convert.graph import Graph, Size, Value, refuse
from gossamer.convert.lowerings.tensorflow import Call, lowers
from gossamer.schema.enums import TensorType

T = TensorType

UNSORTED = {
    "UnsortedSegmentMax": "UNSORTED_SEGMENT_MAX",
    "UnsortedSegmentMin": "UNSORTED_SEGMENT_MIN",
    "UnsortedSegmentProd": "UNSORTED_SEGMENT_PROD",
    "UnsortedSegmentSum": "UNSORTED_SEGMENT_SUM",
}

SORTED = {
    "SegmentMax": "UNSORTED_SEGMENT_MAX",
    "SegmentMaxV2": "UNSORTED_SEGMENT_MAX",
    "SegmentMin": "UNSORTED_SEGMENT_MIN",
    "SegmentMinV2": "UNSORTED_SEGMENT_MIN",
    "SegmentProd": "UNSORTED_SEGMENT_PROD",
    "SegmentProdV2": "UNSORTED_SEGMENT_PROD",
}


@lowers(*UNSORTED)
def unsorted_segments(call: Call) -> Value:
    data, ids, count = call.values()
    return _segments(call.graph, UNSORTED[call.op], data, ids, count)


def _segments(graph: Graph, op: str, data: Value, ids: Value, count: Value, size: int | Size | None = None) -> Value:
    """Ids may number the rows of several axes: those are taken as one. ``size`` is what the count may be, if it has
    been asked for before."""
    own = data.type
    if own not in (T.FLOAT32, T.INT32):
        data = cast(graph, data, T.FLOAT32 if data.dtype.kind in "fV" else T.INT32)
    row = sizes(data)[ids.rank :]
    if ids.rank != 1:
        data = _as_rows(graph, data, row)
        ids = flat(graph, ids)
    shape = [_open(count) if size is None else size, *row]
    return cast(graph, graph.add(op, data, int32(graph, ids), int32(graph, count), shape=shape), own)


def _as_rows(graph: Graph, data: Value, row: list[int | Size]) -> Value:
    if not row:
        return flat(graph, data)
    return reshape(graph, data, [_rest(data, len(row)), *row])


def _rest(data: Value, axes: int) -> int | Size:
    counts = tuple([int(np.prod(shape[: len(shape) - axes], dtype=np.int64)) for shape in data.shapes])
    return counts[0] if counts[0] == counts[-1] else Size(counts)


def _open(count: Value) -> int | Size:
    """The size that a scalar says."""
    return as_sizes(elements(count))[0]


@lowers("SegmentSum", "SegmentSumV2")
def segment_sum(call: Call) -> Value:
    """SEGMENT_SUM takes ids that leave no number out, which only constants are known to."""
    graph, (data, ids) = call.graph, call.values(0, 2)
    known = ids.data
    if known is None or len(call.inputs) > 2 or known.size == 0 or not (np.diff(known, prepend=0) <= 1).all():
        count = call.value(2) if len(call.inputs) > 2 else _next(graph, ids)
        return _segments(graph, "UNSORTED_SEGMENT_SUM", data, ids, count)
    own = data.type
    if own not in (T.FLOAT32, T.INT32):
        data = cast(graph, data, T.FLOAT32 if data.dtype.kind in "fV" else T.INT32)
    return cast(graph, graph.add("SEGMENT_SUM", data, int32(graph, ids)), own)


@lowers(*SORTED)
def sorted_segments(call: Call) -> Value:
    """The newer versions say how many segments there are, and leave the end of the type where there are no rows."""
    graph, (data, ids) = call.graph, call.values(0, 2)
    if len(call.inputs) > 2:
        return _segments(graph, SORTED[call.op], data, ids, call.value(2))
    count, size = _next(graph, ids), open_size()
    found = _segments(graph, SORTED[call.op], data, ids, count, size)
    rows = _counted(graph, ids, count, size)
    rows = reshape(graph, rows, [rows.size(0), *[1] * (found.rank - 1)])
    empty = graph.constant(np.full((), call.op == "SegmentProd", found.dtype), found.type)
    return graph.add("SELECT_V2", graph.add("GREATER", rows, 0), found, empty)


def _next(graph: Graph, ids: Value) -> Value:
    """One more than the largest of them; 0 if there are none."""
    return graph.add("ADD", graph.add("MAXIMUM", reduce(graph, "REDUCE_MAX", int32(graph, ids)), -1), 1)


def _counted(graph: Graph, ids: Value, count: Value, size: int | Size | None = None) -> Value:
    """How often each number is among the ids: int32."""
    ones = graph.add("FILL", size_vector(graph, ids), np.array(1, np.int32))
    return _segments(graph, "UNSORTED_SEGMENT_SUM", ones, ids, count, size)


@lowers("SegmentMean")
def segment_mean(call: Call) -> Value:
    data, ids = call.values()
    return _averaged(call.graph, data, ids, _next(call.graph, ids), "DIV")


SPARSE = {
    "SparseSegmentMean": "DIV",
    "SparseSegmentMeanWithNumSegments": "DIV",
    "SparseSegmentSqrtN": "SQRT",
    "SparseSegmentSqrtNWithNumSegments": "SQRT",
    "SparseSegmentSum": "",
    "SparseSegmentSumWithNumSegments": "",
}
"""What sums of chosen rows are divided by: how many they are, or the root of that."""


@lowers(*SPARSE)
def sparse_segments(call: Call) -> Value:
    """``(data, indices, segment_ids)`` and perhaps how many segments there are."""
    graph, (data, rows, ids) = call.graph, call.values(0, 3)
    chosen = graph.add("GATHER", data, index_type(graph, rows), axis=0)
    count = call.value(3) if len(call.inputs) > 3 else _next(graph, ids)
    if not SPARSE[call.op]:
        return _segments(graph, "UNSORTED_SEGMENT_SUM", chosen, ids, count)
    return _averaged(graph, chosen, ids, count, SPARSE[call.op])


def _averaged(graph: Graph, data: Value, ids: Value, count: Value, how: str) -> Value:
    """Sums of segments divided by their numbers of rows (DIV), or the roots of them (SQRT)."""
    size = _open(count)
    sums = _segments(graph, "UNSORTED_SEGMENT_SUM", cast(graph, data, T.FLOAT32), ids, count, size)
    many = graph.add("MAXIMUM", cast(graph, _counted(graph, ids, count, size), T.FLOAT32), 1.0)
    many = graph.add("SQRT", many) if how == "SQRT" else many
    many = reshape(graph, many, [many.size(0), *[1] * (sums.rank - 1)])
    return cast(graph, graph.add("DIV", sums, many), data.type)


# -- counts


@lowers("Bincount", "DenseBincount", "RaggedBincount")
def bincount(call: Call) -> Value:
    """``(numbers, size, weights)``: the sum of weights (1 without any) of each number below the size, or with
    ``binary_output`` whether it is there; of a matrix, for each row. Larger numbers are not counted."""
    graph, numbers = call.graph, int32(call.graph, call.value(0))
    size, weights = int32(graph, call.value(1)), call.value(2)
    binary = call.attributes.bool("binary_output", False)
    type = call.attributes.type("T", T.INT32) if call.op == "Bincount" else weights.type
    if numbers.rank == 2 and call.op == "DenseBincount":
        return _row_counts(graph, numbers, size, weights, binary)
    numbers = flat(graph, numbers)
    scalar = graph.add("REDUCE_MAX", flat(graph, size), np.array([0], np.int32)) if size.rank else size
    numbers = graph.add("SELECT_V2", graph.add("LESS", numbers, scalar), numbers, -1)
    plain = weights.dims == (0,) or 0 in weights.dims
    if plain or binary:
        found = _counted(graph, numbers, scalar)
        return cast(graph, graph.add("MINIMUM", found, 1) if binary else found, type)
    return _segments(graph, "UNSORTED_SEGMENT_SUM", flat(graph, weights), numbers, scalar)


def _row_counts(graph: Graph, numbers: Value, size: Value, weights: Value, binary: bool) -> Value:
    own = weights.type
    scalar = graph.add("REDUCE_MAX", flat(graph, size), np.array([0], np.int32)) if size.rank else size
    hits = graph.add("ONE_HOT", numbers, scalar, 1.0, 0.0, axis=-1, shape=[*sizes(numbers), _open(scalar)])
    if binary:
        return cast(graph, graph.add("REDUCE_MAX", hits, np.array([1], np.int32)), own)
    if 0 not in weights.dims:
        wide = cast(graph, weights, T.FLOAT32)
        hits = graph.add("MUL", hits, reshape(graph, wide, [*sizes(wide), 1]))
    return cast(graph, graph.add("SUM", hits, np.array([1], np.int32)), own)


@lowers("HistogramFixedWidth")
def histogram_fixed_width(call: Call) -> Value:
    """``(values, [low, high], bins)``: counts of values in bins of the same width, those outside in the first and the
    last one."""
    graph = call.graph
    values, ends = (cast(graph, value, T.FLOAT32) for value in call.values(0, 2))
    bins = int32(graph, call.value(2))
    low, high = (graph.add("STRIDED_SLICE", ends, [n], [n + 1], [1], shrink_axis_mask=1) for n in range(2))
    share = graph.add("DIV", graph.add("SUB", flat(graph, values), low), graph.add("SUB", high, low))
    place = cast(graph, graph.add("FLOOR", graph.add("MUL", share, cast(graph, bins, T.FLOAT32))), T.INT32)
    place = graph.add("MAXIMUM", graph.add("MINIMUM", place, graph.add("SUB", bins, 1)), 0)
    return cast(graph, _counted(graph, place, bins), call.attributes.type("dtype", T.INT32))


@lowers("Bucketize")
def bucketize(call: Call) -> Value:
    return widened(
        call.graph, "BUCKETIZE", call.value(0), boundaries=np.array(call.attributes.floats("boundaries"), np.float32)
    )


# -- sets


@lowers("Unique", "UniqueV2")
def unique(call: Call) -> list[Value]:
    graph = call.graph
    values, places = _unique(graph, call.value(0))
    return [values, cast(graph, places, call.attributes.type("out_idx", T.INT32))]


def _unique(graph: Graph, x: Value) -> tuple[Value, Value]:
    """The different elements of a vector in the order of their first place, and which of them each element is."""
    if x.rank != 1:
        refuse(f"the different parts of {x!r} are looked for; only vectors can be converted")
    own = x.type
    if own not in (T.FLOAT32, T.UINT8, T.INT8, T.INT16, T.INT32, T.INT64):
        x = cast(graph, x, T.FLOAT32 if x.dtype.kind in "fV" else T.INT32)
    shapes: list[list[int | Size]] = [[open_size(high=x.dims[0])], [x.size(0)]]
    values, places = graph.add_many("UNIQUE", [x], 2, types=[x.type, T.INT32], shapes=shapes)
    return cast(graph, values, own), places


@lowers("UniqueWithCounts", "UniqueWithCountsV2")
def unique_with_counts(call: Call) -> list[Value]:
    graph = call.graph
    wanted = call.attributes.type("out_idx", T.INT32)
    values, places = _unique(graph, call.value(0))
    count = graph.add("STRIDED_SLICE", size_vector(graph, values), [0], [1], [1], shrink_axis_mask=1)
    counts = reshape(graph, _counted(graph, places, count), [values.size(0)])
    return [values, cast(graph, places, wanted), cast(graph, counts, wanted)]


@lowers("ListDiff")
def list_diff(call: Call) -> list[Value]:
    """Elements of the first vector that the second one has not, and where they are."""
    graph, (x, y) = call.graph, call.values()
    same = widened(graph, "EQUAL", reshape(graph, x, [x.size(0), 1]), y)
    left = graph.add("LOGICAL_NOT", reduce(graph, "REDUCE_ANY", same, [1]))
    found = graph.add("WHERE", left, shape=[open_size(high=x.dims[0]), 1])
    places = reshape(graph, found, [found.size(0)])
    wanted = call.attributes.type("out_idx", T.INT32)
    return [moved(graph, "GATHER", x, places, axis=0), cast(graph, places, wanted)]


@lowers("InvertPermutation")
def invert_permutation(call: Call) -> Value:
    """Number n is put at the place that element n says."""
    graph, x = call.graph, int32(call.graph, call.value(0))
    shape = size_vector(graph, x)
    count = graph.add("STRIDED_SLICE", shape, [0], [1], [1], shrink_axis_mask=1)
    numbers = graph.add("RANGE", 0, count, 1, shape=[x.size(0)])
    found = graph.add("SCATTER_ND", reshape(graph, x, [x.size(0), 1]), numbers, shape, shape=[x.size(0)])
    return cast(graph, found, call.value(0).type)
