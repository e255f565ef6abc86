"""Reductions of rows that belong to segments."""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer.flex.kernels import Array, Call, kernel
from gossamer.flex.kernels._checks import (
    checked_shape,
    number,
    require_least_rank,
    require_range,
    require_rank,
    widened,
)

_FUNCTIONS: dict[str, tuple[Any, Any]] = {
    "Sum": (np.add, 0),
    "Mean": (np.add, 0),
    "SqrtN": (np.add, 0),
    "Prod": (np.multiply, 1),
    "Max": (np.maximum, 0),
    "Min": (np.minimum, 0),
}


def _reduced(name: str, rows: Array, ids: Array, segments: int, empty: Any = None) -> Array:
    """[segments, …] of the rows with their ids; an empty segment is the neutral element, or ``empty``."""
    function, neutral = _FUNCTIONS[name]
    wide = widened(rows)
    counts = np.bincount(ids, minlength=segments)
    result = np.full((segments, *rows.shape[1:]), neutral, wide.dtype)
    if name in ("Max", "Min"):
        first = np.flatnonzero(np.r_[True, ids[1:] != ids[:-1]]) if ids.size else ids
        result[ids[first[::-1]]] = wide[first[::-1]]
        if empty is not None:
            result[counts == 0] = empty
    function.at(result, ids, wide)
    if name in ("Mean", "SqrtN"):
        shared = np.maximum(counts, 1).reshape(-1, *[1] * (rows.ndim - 1))
        divisor = shared if name == "Mean" else np.sqrt(shared)
        if result.dtype.kind in "iu":
            return np.trunc(result / divisor)
        result = result / divisor.astype(result.real.dtype)
    return result


def _sorted_ids(call: Call, ids: Array, rows: int) -> int:
    """Check the ids of segments that follow each other; the number of segments."""
    require_rank(call, "segment_ids", ids, 1)
    call.require(ids.size == rows, f"there are {ids.size} segment_ids for {rows} rows")
    call.require(not ids.size or (ids[0] >= 0 and np.all(np.diff(ids) >= 0)), "segment_ids must be sorted and >= 0")
    return int(ids[-1]) + 1 if ids.size else 0


@kernel("SegmentMax", "SegmentMean", "SegmentMin", "SegmentProd", "SegmentSum")
def segment(call: Call, data: Array, ids: Array) -> Array:
    """The rows of each segment reduced; ids are sorted. A segment without rows is 0, of products 1."""
    require_least_rank(call, "data", data, 1)
    segments = _sorted_ids(call, ids, data.shape[0])
    checked_shape(call, [segments, *data.shape[1:]])
    return _reduced(call.op.removeprefix("Segment"), data, ids, segments)


@kernel("UnsortedSegmentMax", "UnsortedSegmentMin", "UnsortedSegmentProd", "UnsortedSegmentSum")
def unsorted_segment(call: Call, data: Array, ids: Array, num_segments: Array) -> Array:
    """The slices of each segment reduced, those with negative ids left out. A segment without any is 0, of products 1,
    of maxima the least number and of minima the greatest."""
    call.require(
        data.shape[: ids.ndim] == ids.shape,
        f"segment_ids {list(ids.shape)} must be the first dimensions of data {list(data.shape)}",
    )
    name = call.op.removeprefix("UnsortedSegment")
    segments = number(call, "num_segments", num_segments)
    shape = checked_shape(call, [segments, *data.shape[ids.ndim :]])
    flat = ids.reshape(-1)
    kept = flat >= 0
    require_range(call, "segment_ids", flat[kept], segments)
    rows = data.reshape(flat.size, *shape[1:])[kept]
    empty = None
    if name in ("Max", "Min"):
        limits = np.iinfo(data.dtype) if data.dtype.kind in "iu" else _float_limits(data.dtype)
        empty = limits.min if name == "Max" else limits.max
    return _reduced(name, rows, flat[kept], segments, empty)


def _float_limits(dtype: np.dtype[Any]) -> Any:
    if dtype.name == "bfloat16":
        import ml_dtypes

        return ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]  # ml_dtypes has no types
    return np.finfo(dtype)


_SPARSE = ("SparseSegmentMean", "SparseSegmentSqrtN", "SparseSegmentSum")


@kernel(*_SPARSE, *[f"{name}WithNumSegments" for name in _SPARSE])
def sparse_segment(call: Call, data: Array, indices: Array, ids: Array, *num_segments: Array) -> Array:
    """`segment` of the rows of data at the indices; SqrtN divides by the root of their number."""
    require_least_rank(call, "data", data, 1)
    require_rank(call, "indices", indices, 1)
    segments = _sorted_ids(call, ids, indices.size)
    if num_segments:
        wanted = number(call, "num_segments", num_segments[0])
        call.require(segments <= wanted, f"segment id {segments - 1} must be less than num_segments {wanted}")
        segments = wanted
    checked_shape(call, [segments, *data.shape[1:]])
    require_range(call, "indices", indices, data.shape[0])
    name = call.op.removeprefix("SparseSegment").removesuffix("WithNumSegments")
    return _reduced(name, data[indices], ids, segments)


@kernel("SparseSegmentMeanGrad", "SparseSegmentSqrtNGrad", "SparseSegmentSumGrad")
def sparse_segment_grad(call: Call, grad: Array, indices: Array, ids: Array, output_dim0: Array) -> Array:
    """The gradient of `sparse_segment` for its data, of ``output_dim0`` rows."""
    require_least_rank(call, "grad", grad, 1)
    rows = number(call, "output_dim0", output_dim0)
    shape = checked_shape(call, [rows, *grad.shape[1:]])
    call.require(indices.shape == ids.shape and ids.ndim == 1, "indices and segment_ids must be vectors of one size")
    require_range(call, "indices", indices, rows)
    require_range(call, "segment_ids", ids, grad.shape[0])
    wide = widened(grad)
    counts = np.maximum(np.bincount(ids, minlength=grad.shape[0]), 1)
    if call.op != "SparseSegmentSumGrad":
        divisor = counts if call.op == "SparseSegmentMeanGrad" else np.sqrt(counts)
        wide = wide / divisor.reshape(-1, *[1] * (grad.ndim - 1)).astype(wide.dtype)
    result = np.zeros(shape, wide.dtype)
    np.add.at(result, indices, wide[ids])
    return result
