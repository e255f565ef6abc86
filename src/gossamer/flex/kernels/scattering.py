"""Slices put, added or compared at places that indices name."""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer.flex.kernels import Array, Call, kernel, like_first
from gossamer.flex.kernels._checks import checked_shape, require_least_rank, require_rank
from gossamer.flex.kernels.arrays import zero_of
from gossamer.flex.kernels.gathering import nd_index

_COMBINE: dict[str, Any] = {
    "TensorScatterAdd": np.add,
    "TensorScatterMax": np.maximum,
    "TensorScatterMin": np.minimum,
    "TensorScatterSub": np.subtract,
    "ScatterNdNonAliasingAdd": np.add,
    "TensorScatterUpdate": None,
}


@kernel(*_COMBINE, shape=like_first)
def tensor_scatter(call: Call, tensor: Array, indices: Array, updates: Array) -> Array:
    """The tensor with updates put in (the last one stays), or combined with what is there, one after the other."""
    return scattered(call, tensor, indices, updates, _COMBINE[call.op])


def scattered(call: Call, target: Array, indices: Array, updates: Array, combine: Any) -> Array:
    """A copy of ``target`` with ``updates`` at vectors of indices, by a ufunc or, without one, in their place."""
    require_least_rank(call, "indices", indices, 1)
    depth = indices.shape[-1]
    call.require(depth <= target.ndim, f"indices of {depth} elements do not fit shape {list(target.shape)}")
    wanted = (*indices.shape[:-1], *target.shape[depth:])
    call.require(updates.shape == wanted, f"updates must have shape {list(wanted)}, got {list(updates.shape)}")
    result = target.copy()
    index, good = nd_index(call, indices, target.shape)
    if good is not None:
        updates = updates.reshape(good.size, *target.shape[depth:])[good]
    if not depth:  # every update is for the whole
        for update in updates.reshape(-1, *target.shape):
            result = update.copy() if combine is None else combine(result, update)
    elif combine is None:
        result[index] = updates
    else:
        combine.at(result, index, updates)
    return result


@kernel("ScatterNd")
def scatter_nd(call: Call, indices: Array, updates: Array, shape: Array) -> Array:
    """The sums of the updates for each place, zeros elsewhere."""
    zeros = np.full(checked_shape(call, shape), zero_of(updates.dtype), updates.dtype)
    return scattered(call, zeros, indices, updates, np.add)


@kernel("InplaceAdd", "InplaceSub", "InplaceUpdate", shape=like_first)
def inplace(call: Call, x: Array, i: Array, v: Array) -> Array:
    """The rows i of a copy of x added to, subtracted from, or replaced; rows are counted modulo their number."""
    require_least_rank(call, "x", x, 1)
    require_rank(call, "i", i, 1)
    call.require(v.shape == (i.size, *x.shape[1:]), f"v must have shape {[i.size, *x.shape[1:]]}, got {list(v.shape)}")
    call.require(not i.size or x.shape[0], "x has no rows")
    result = x.copy()
    rows = i % max(x.shape[0], 1)
    if call.op == "InplaceUpdate":
        result[rows] = v
    else:
        (np.add if call.op == "InplaceAdd" else np.subtract).at(result, rows, v)
    return result
