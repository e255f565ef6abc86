"""Sparse tensors: indices [n, rank] of elements, their values, and a shape."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gossamer.flex.kernels import Array, Call, Shape, kernel
from gossamer.flex.kernels._checks import (
    MOST_ELEMENTS,
    axes_of,
    checked_shape,
    require_range,
    require_rank,
    widened,
)
from gossamer.flex.kernels.matrices import adjoint
from gossamer.flex.kernels.reductions import counted_flat


def sparse_shape(call: Call, indices: Array, shape: Array, values: Array | None = None) -> Shape:
    """The shape as integers; fails unless the parts fit and the indices are inside."""
    require_rank(call, "indices", indices, 2)
    require_rank(call, "shape", shape, 1)
    call.require(
        indices.shape[1] == shape.size, f"indices of {indices.shape[1]} elements are for no shape {shape.tolist()}"
    )
    call.require(values is None or values.shape == indices.shape[:1], "there must be as many values as indices")
    sizes = tuple([int(size) for size in shape])
    call.require(all(size >= 0 for size in sizes), f"shape {list(sizes)} has a negative dimension")
    call.require(math.prod(sizes) < 1 << 62, f"shape {list(sizes)} is too large")
    outside = ((indices < 0) | (indices >= shape)).any(1)
    if outside.any():
        call.fail(f"index {indices[outside][0].tolist()} is not within shape {list(sizes)}")
    return sizes


def flat_index(indices: Array, shape: Shape) -> Array:
    """Each index as one number."""
    strides = np.array([math.prod(shape[n + 1 :]) for n in range(len(shape))], np.int64)
    return indices.astype(np.int64) @ strides


def _whole_index(flat: Array, shape: Shape) -> Array:
    if not shape:
        return np.zeros((flat.size, 0), np.int64)
    return np.stack(np.unravel_index(flat, tuple([max(size, 1) for size in shape])), -1).reshape(flat.size, len(shape))


def _dense(call: Call, indices: Array, values: Array, shape: Shape) -> Array:
    whole = np.zeros(checked_shape(call, shape), values.dtype)
    np.add.at(whole.reshape(-1), flat_index(indices, shape), values)
    return whole


@kernel("SparseToDense")
def sparse_to_dense(call: Call, indices: Array, shape: Array, values: Array, default: Array) -> Array:
    """Values at their indices (vectors, or numbers for a vector), the default elsewhere; with ``validate_indices``
    they are in order, each once."""
    call.require(indices.ndim <= 2, f"sparse_indices must have at most 2 dimensions, got shape {list(indices.shape)}")
    rows = indices if indices.ndim == 2 else indices.reshape(-1, 1)
    sizes = sparse_shape(call, rows, shape)
    call.require(values.ndim == 0 or values.shape == rows.shape[:1], "there must be one value, or one for each index")
    if call.attributes.bool("validate_indices"):
        call.require(np.all(np.diff(flat_index(rows, sizes)) > 0), "sparse_indices must be in order, each one once")
    whole = np.full(checked_shape(call, sizes), default.reshape(-1)[0], values.dtype)
    whole[tuple(rows.T)] = values
    return whole


@kernel("SparseTensorDenseMatMul")
def sparse_tensor_dense_mat_mul(call: Call, indices: Array, values: Array, shape: Array, b: Array) -> Array:
    """The product of a sparse matrix and a dense one, each adjoint or not."""
    require_rank(call, "b", b, 2)
    call.require(shape.shape == (2,), f"a_shape must have 2 elements, got {shape.tolist()}")
    rows, columns = sparse_shape(call, indices, shape, values)
    row, column = indices.T
    weights = widened(values)
    if call.attributes.bool("adjoint_a"):
        rows, columns, row, column, weights = columns, rows, column, row, np.conj(weights)
    right = widened(adjoint(b) if call.attributes.bool("adjoint_b") else b)
    call.require(right.shape[0] == columns, f"{rows} x {columns} elements do not fit {list(right.shape)}")
    result = np.zeros(checked_shape(call, (rows, right.shape[1])), right.dtype)
    step = max(MOST_ELEMENTS // 64 // max(right.shape[1], 1), 1)
    for start in range(0, len(row), step):
        part = slice(start, start + step)
        np.add.at(result, row[part], weights[part, None] * right[column[part]])
        call.poll()
    return result


@kernel("SparseReorder", shape=lambda node, shapes: [tuple(shapes[0]), tuple(shapes[1])])
def sparse_reorder(call: Call, indices: Array, values: Array, shape: Array) -> Any:
    """The elements in order, row by row."""
    order = np.argsort(flat_index(indices, sparse_shape(call, indices, shape, values)), kind="stable")
    return indices[order], values[order]


@kernel("SparseReshape", shape=lambda node, shapes: [(shapes[0][0], shapes[2][0]), tuple(shapes[2])])
def sparse_reshape(call: Call, indices: Array, shape: Array, new_shape: Array) -> Any:
    """The indices of the same elements in another shape, of which one size may be -1."""
    require_rank(call, "new_shape", new_shape, 1)
    sizes = sparse_shape(call, indices, shape)
    target = [int(size) for size in new_shape]
    call.require(min(target, default=0) >= -1 and target.count(-1) <= 1, f"new_shape {target} is no shape")
    elements = math.prod(sizes)
    if -1 in target:
        known = math.prod([size for size in target if size != -1])
        call.require(known > 0 and elements % known == 0, f"{elements} elements do not fit shape {target}")
        target[target.index(-1)] = elements // known
    call.require(math.prod(target) == elements, f"{elements} elements do not fit shape {target}")
    return _whole_index(flat_index(indices, sizes), tuple(target)), target


@kernel("SparseAdd")
def sparse_add(call: Call, *operands: Array) -> Any:
    """The sum of two sparse tensors in order, without sums of two elements that are below ``thresh`` in magnitude."""
    *tensors, threshold = operands
    (indices_a, values_a, shape_a), (indices_b, values_b, shape_b) = tensors[:3], tensors[3:]
    shape = sparse_shape(call, indices_a, shape_a, values_a)
    other = sparse_shape(call, indices_b, shape_b, values_b)
    call.require(shape == other, f"shapes {list(shape)} and {list(other)} differ")
    places = np.concatenate([flat_index(indices_a, shape), flat_index(indices_b, shape)])
    flat, inverse, counts = np.unique(places, return_inverse=True, return_counts=True)
    sums = np.zeros(flat.size, values_a.dtype)
    np.add.at(sums, inverse.reshape(-1), np.concatenate([values_a, values_b]))
    kept = (counts < 2) | (np.abs(sums) >= threshold.reshape(-1)[0])
    return _whole_index(flat[kept], shape), sums[kept], shape_a


@kernel("SparseFillEmptyRows")
def sparse_fill_empty_rows(call: Call, indices: Array, values: Array, shape: Array, default: Array) -> Any:
    """A first element of the default in each row that has none; which rows these are, and where each element went."""
    require_rank(call, "default_value", default, 0)
    call.require(shape.size, "dense_shape must not be empty")
    rows = sparse_shape(call, indices, shape, values)[0]
    checked_shape(call, [rows, indices.shape[1]])
    row = indices[:, 0]
    is_empty = np.bincount(row, minlength=rows) == 0 if row.size else np.ones(rows, bool)
    if row.size and np.all(np.diff(row) >= 0) and not is_empty.any():
        return indices, values, is_empty, np.arange(row.size)
    missing = np.flatnonzero(is_empty)
    extra = np.zeros((missing.size, indices.shape[1]), indices.dtype)
    extra[:, 0] = missing
    order = np.argsort(np.concatenate([row, missing]), kind="stable")
    places = np.empty_like(order)
    places[order] = np.arange(order.size)
    filled = np.full(missing.size, default[()], values.dtype)
    merged = np.concatenate([indices, extra])[order], np.concatenate([values, filled])[order]
    return *merged, is_empty, places[: row.size]


@kernel("SparseFillEmptyRowsGrad", shape=lambda node, shapes: [tuple(shapes[0]), ()])
def sparse_fill_empty_rows_grad(call: Call, places: Array, gradient: Array) -> Any:
    """The gradients for the values, and for the default."""
    require_rank(call, "grad_values", gradient, 1)
    require_range(call, "reverse_index_map", places, gradient.size)
    wide = widened(gradient)
    unvisited = np.ones(gradient.size, bool)
    unvisited[places] = False
    return gradient[places], wide[unvisited].sum()


@kernel("SparseReduceSum")
def sparse_reduce_sum(call: Call, indices: Array, values: Array, shape: Array, axes: Array) -> Array:
    """The sum over axes, none for an empty list, as a dense tensor."""
    sizes = sparse_shape(call, indices, shape, values)
    reduced = axes_of(call, axes, len(sizes), "reduction_axes")
    kept = [n for n in range(len(sizes)) if n not in reduced]
    total = _dense(call, indices[:, kept], widened(values), tuple([sizes[n] for n in kept]))
    return np.expand_dims(total, reduced) if call.attributes.bool("keep_dims") else total


@kernel("SparseSlice")
def sparse_slice(call: Call, indices: Array, values: Array, shape: Array, start: Array, size: Array) -> Any:
    """The elements in ``size`` from ``start``, with their indices there."""
    sizes = np.array(sparse_shape(call, indices, shape, values), np.int64)
    for name, one in (("start", start), ("size", size)):
        call.require(
            one.shape == shape.shape and np.all(one >= 0), f"{name} must be {shape.size} numbers, none negative"
        )
    # Subtracting first keeps a size near 2^63 from an overflow.
    stop = start + np.minimum(size, np.maximum(sizes - start, 0))
    inside = ((indices >= start) & (indices < stop)).all(1)
    return indices[inside] - start, values[inside], np.maximum(stop - start, 0)


@kernel("SparseSoftmax", shape=lambda node, shapes: [tuple(shapes[1])])
def sparse_softmax(call: Call, indices: Array, values: Array, shape: Array) -> Array:
    """Softmax over the elements that are there in each row of the last dimension."""
    sizes = sparse_shape(call, indices, shape, values)
    call.require(len(sizes) >= 2, f"shape must have 2 dimensions or more, got {list(sizes)}")
    wide = widened(values)
    _, row = np.unique(flat_index(indices[:, :-1], sizes[:-1]), return_inverse=True)
    row = row.reshape(-1)
    most = np.full(row.size, -np.inf, wide.dtype)
    np.maximum.at(most, row, wide)
    powers = np.exp(wide - most[row])
    sums = np.zeros_like(most)
    np.add.at(sums, row, powers)
    quotient: Array = powers / sums[row]
    return quotient


@kernel("SparseBincount")
def sparse_bincount(call: Call, indices: Array, values: Array, shape: Array, size: Array, weights: Array) -> Array:
    """How often each number is among the values, or among those of each row."""
    binary = call.attributes.bool("binary_output")
    call.require(shape.shape in ((1,), (2,)), f"dense_shape must have 1 or 2 elements, got {shape.tolist()}")
    if shape.size == 1:
        (counts,) = counted_flat(call, values, np.zeros(values.size, np.int64), 1, size, weights, binary)
        found: Array = counts
        return found
    sizes = sparse_shape(call, indices, shape, values)
    return counted_flat(call, values, indices[:, 0], sizes[0], size, weights, binary)
