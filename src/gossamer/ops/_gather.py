"""Slices along an axis at indices, in terms of the kernel graph."""

from __future__ import annotations

import numpy as np

from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array
from gossamer.views import View, told_by


def slices(graph: Lowering, x: View, indices: View, axis: int, batch_dims: int = 0) -> View:
    """``x`` with the indices in place of an axis: [*x[:axis], *indices[batch_dims:], *x[axis + 1:]].

    The first ``batch_dims`` dimensions of both are walked together. Constant indices that are evenly apart are a view.
    """
    shape = (*x.shape[:axis], *indices.shape[batch_dims:], *x.shape[axis + 1 :])
    if indices.is_constant:
        in_range, is_even, first, step = told_by(indices.buffer, _places, x.shape[axis])
        if not in_range:
            graph.refuse("an index is out of range")
        if indices.is_whole and batch_dims == 0 and is_even:
            return graph.reshape(x.slice(axis, first, indices.size, step), shape)
    count, rank = len(indices.shape), len(x.shape)
    sizes = [1 if dim < batch_dims or dim == axis else size for dim, size in enumerate(x.shape)]
    # Behind the positions stand the dimensions of x; of these, the axis and the batch have size 1.
    outer, inner = range(count + batch_dims, count + axis), range(count + axis + 1, count + rank)
    order = (*range(batch_dims), *outer, *range(batch_dims, count), *inner)
    dropped = (*range(count, count + batch_dims), count + axis)
    vectors = graph.reshape(indices, (*indices.shape, 1))
    boxes = graph.gather(x, vectors, [axis], sizes, batch_dims=batch_dims, order=(*order, *dropped))
    return graph.reshape(boxes, shape)


def _places(indices: Array, extent: int) -> tuple[bool, bool, int, int]:
    """Whether indices are in range, whether they are evenly apart, and then the first, and how far."""
    step = _step(indices)
    first = int(indices.reshape(-1)[0]) if indices.size else 0
    return bool(((indices >= 0) & (indices < extent)).all()), step is not None, first, step or 0


def _step(indices: Array) -> int | None:
    """How far indices are apart, if that is the same everywhere."""
    apart = np.diff(indices.reshape(-1).astype(np.int64))
    if apart.size == 0:
        return 1
    return int(apart[0]) if (apart == apart[0]).all() else None
