"""Elements and slices picked by indices, and put in order."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gossamer.flex.kernels import Array, Call, kernel
from gossamer.flex.kernels._checks import (
    axis_of,
    checked_shape,
    number,
    require_least_rank,
    require_range,
    require_rank,
)
from gossamer.flex.kernels.arrays import zero_of


@kernel("Gather", shape=lambda node, shapes: [(*shapes[1], *shapes[0][1:])])
def gather(call: Call, params: Array, indices: Array) -> Array:
    """Slices along the first dimension."""
    require_least_rank(call, "params", params, 1)
    return gathered(call, params, indices, 0, 0)


@kernel("GatherV2")
def gather_v2(call: Call, params: Array, indices: Array, axis: Array) -> Array:
    """Slices along an axis; the first ``batch_dims`` dimensions of both operands are walked together."""
    dimension = axis_of(call, number(call, "axis", axis), params.ndim)
    batch = call.attributes.int("batch_dims")
    call.require(
        -indices.ndim <= batch <= indices.ndim, f"batch_dims {batch} must be in [-{indices.ndim}, {indices.ndim}]"
    )
    batch = batch + indices.ndim if batch < 0 else batch
    call.require(batch <= dimension, f"batch_dims {batch} must not be above axis {dimension}")
    call.require(
        params.shape[:batch] == indices.shape[:batch],
        f"the first {batch} dimensions of {list(params.shape)} and {list(indices.shape)} differ",
    )
    return gathered(call, params, indices, dimension, batch)


def gathered(call: Call, params: Array, indices: Array, axis: int, batch: int) -> Array:
    """``params`` with the indices in place of the axis; fails for indices that are out of range."""
    require_range(call, "indices", indices, params.shape[axis])
    if not batch:
        return np.take(params, indices, axis)
    count = math.prod(params.shape[:batch])
    outer, inner = params.shape[batch:axis], params.shape[axis + 1 :]
    rows = params.reshape(count, math.prod(outer), params.shape[axis], math.prod(inner))
    places = indices.reshape(count, -1)
    picked = rows[np.arange(count)[:, None], :, places].transpose(0, 2, 1, 3)
    return picked.reshape(*params.shape[:batch], *outer, *indices.shape[batch:], *inner)


@kernel("GatherNd", shape=lambda node, shapes: [_nd_shape(*shapes)])
def gather_nd(call: Call, params: Array, indices: Array) -> Array:
    """Slices at vectors of indices; ``bad_indices_policy`` IGNORE gives zeros for those that are out of range."""
    require_least_rank(call, "indices", indices, 1)
    _nd_shape(params.shape, indices.shape)
    index, good = nd_index(call, indices, params.shape)
    if good is None:
        return np.array(params[index]) if index else np.broadcast_to(params, (*indices.shape[:-1], *params.shape))
    result = np.full((good.size, *params.shape[indices.shape[-1] :]), zero_of(params.dtype), params.dtype)
    result[good] = params[index]
    return result.reshape(*indices.shape[:-1], *params.shape[indices.shape[-1] :])


def _nd_shape(params: tuple[int, ...], indices: tuple[int, ...]) -> tuple[int, ...]:
    if not indices or indices[-1] > len(params):
        raise ValueError(f"indices of shape {list(indices)} do not fit {list(params)}")
    return (*indices[:-1], *params[indices[-1] :])


def nd_index(call: Call, indices: Array, shape: tuple[int, ...]) -> tuple[tuple[Array, ...], Array | None]:
    """NumPy's index for vectors of indices, flat where some are left out: which stay, else ``None``."""
    depth = indices.shape[-1]
    limits = np.array(shape[:depth], np.int64)
    bad = ((indices < 0) | (indices >= limits)).any(-1)
    policy = call.attributes.text("bad_indices_policy") if "bad_indices_policy" in call.attributes else ""
    call.require(policy in ("", "DEFAULT", "ERROR", "IGNORE"), f"bad_indices_policy {policy!r} is not known")
    if not bad.any():
        return tuple(np.moveaxis(indices, -1, 0)), None
    if policy != "IGNORE":
        call.fail(f"indices {indices[bad][0].tolist()} are not within {list(shape)}")
    good = ~bad.reshape(-1)
    return tuple(indices.reshape(-1, depth)[good].T), good


@kernel("Where")
def where(call: Call, x: Array) -> Array:
    """The indices of the elements that are not 0, in order."""
    return np.argwhere(x)


@kernel("DynamicPartition")
def dynamic_partition(call: Call, data: Array, partitions: Array) -> Any:
    """The slices of data by the part that each belongs to."""
    count = call.attributes.int("num_partitions")
    call.require(
        data.shape[: partitions.ndim] == partitions.shape,
        f"partitions {list(partitions.shape)} must be the first dimensions of data {list(data.shape)}",
    )
    require_range(call, "partitions", partitions, count)
    return ([data[partitions == n] for n in range(count)],)


@kernel("DynamicStitch", "ParallelDynamicStitch")
def dynamic_stitch(call: Call, indices: list[Array], data: list[Array]) -> Array:
    """The slices of data in the places that the indices say; of several for one place the last stays."""
    rest = data[0].shape[indices[0].ndim :]
    size = 0
    for where, what in zip(indices, data, strict=True):
        call.require(
            what.shape == (*where.shape, *rest),
            f"data must have shape {[*where.shape, *rest]}, got {list(what.shape)}",
        )
        size = max(size, int(where.max(initial=-1)) + 1)
    merged = np.full(checked_shape(call, [size, *rest]), zero_of(data[0].dtype), data[0].dtype)
    for where, what in zip(indices, data, strict=True):
        require_range(call, "indices", where, size)
        merged[where.reshape(-1)] = what.reshape(where.size, *rest)
    return merged


@kernel("InvertPermutation", shape=lambda node, shapes: [tuple(shapes[0])])
def invert_permutation(call: Call, x: Array) -> Array:
    """Where each number of 0 to n - 1 stands."""
    require_rank(call, "x", x, 1)
    require_range(call, "x", x, x.size)
    inverse = np.full(x.size, -1, x.dtype)
    inverse[x] = np.arange(x.size, dtype=x.dtype)
    call.require(np.all(inverse >= 0), "x must be a permutation, it has a number twice")
    return inverse


@kernel("ListDiff")
def list_diff(call: Call, x: Array, y: Array) -> tuple[Array, Array]:
    """The elements of x that are not in y, and where they are."""
    require_rank(call, "x", x, 1)
    require_rank(call, "y", y, 1)
    places = np.flatnonzero(~np.isin(x, y))
    return x[places], places
