"""Operations on sets: the elements of the last dimension, for each index of the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gossamer.flex.kernels import Array, Call, kernel
from gossamer.flex.kernels._checks import checked_shape
from gossamer.flex.kernels.sparse import flat_index, sparse_shape

Groups = dict[tuple[int, ...], set[Any]]

_OPERATIONS: dict[str, Callable[[set[Any], set[Any]], set[Any]]] = {
    "a-b": lambda a, b: a - b,
    "b-a": lambda a, b: b - a,
    "intersection": lambda a, b: a & b,
    "union": lambda a, b: a | b,
}


def _dense_sets(call: Call, x: Array) -> tuple[Groups, tuple[int, ...]]:
    call.require(x.ndim >= 2, f"sets must have 2 dimensions or more, got shape {list(x.shape)}")
    batch = x.shape[:-1]
    rows = x.reshape(-1, x.shape[-1]).tolist()
    return {index: set(row) for index, row in zip(np.ndindex(*batch), rows, strict=True)}, batch


def _sparse_sets(call: Call, indices: Array, values: Array, shape: Array) -> tuple[Groups, tuple[int, ...]]:
    sizes = sparse_shape(call, indices, shape, values)
    call.require(len(sizes) >= 2, f"sets must have 2 dimensions or more, got shape {list(sizes)}")
    if call.attributes.bool("validate_indices"):
        call.require(np.all(np.diff(flat_index(indices, sizes)) > 0), "indices must be in order, each one once")
    groups: Groups = {}
    for *index, value in zip(*indices[:, :-1].T.tolist(), values.tolist(), strict=True):
        groups.setdefault(tuple(index), set()).add(value)
    return groups, sizes[:-1]


def _combined(call: Call, first: tuple[Groups, Any], second: tuple[Groups, Any], dtype: np.dtype[Any]) -> Any:
    name = call.attributes.text("set_operation").lower()
    call.require(name in _OPERATIONS, f"set_operation {name!r} must be one of {', '.join(_OPERATIONS)}")
    (groups, batch), (others, other_batch) = first, second
    call.require(batch == other_batch, f"sets of shapes {list(batch)} and {list(other_batch)} do not fit")
    indices, values, widest = [], [], 0
    for index in sorted({*groups, *others}):
        found = sorted(_OPERATIONS[name](groups.get(index, set()), others.get(index, set())))
        widest = max(widest, len(found))
        indices += [(*index, position) for position in range(len(found))]
        values += found
        call.poll()
    result = np.empty(len(values), dtype)
    result[:] = values
    return np.array(indices, np.int64).reshape(-1, len(batch) + 1), result, [*batch, widest]


@kernel("DenseToDenseSetOperation")
def dense_to_dense(call: Call, set1: Array, set2: Array) -> Any:
    """A sparse tensor of the elements, in order, of the operation on two dense tensors of sets."""
    checked_shape(call, set1.shape)
    return _combined(call, _dense_sets(call, set1), _dense_sets(call, set2), set1.dtype)


@kernel("DenseToSparseSetOperation")
def dense_to_sparse(call: Call, set1: Array, indices: Array, values: Array, shape: Array) -> Any:
    """The same with a sparse second operand."""
    return _combined(call, _dense_sets(call, set1), _sparse_sets(call, indices, values, shape), set1.dtype)


@kernel("SparseToSparseSetOperation")
def sparse_to_sparse(call: Call, *operands: Array) -> Any:
    """The same with two sparse operands."""
    first, second = _sparse_sets(call, *operands[:3]), _sparse_sets(call, *operands[3:])
    return _combined(call, first, second, operands[1].dtype)
