"""Ragged tensors: values, and for each ragged dimension the row splits, where each row begins and the last one ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gossamer.flex.kernels import Array, Call, kernel
from gossamer.flex.kernels._checks import checked_shape, require_least_rank, require_range, require_rank
from gossamer.flex.kernels.reductions import counted_flat
from gossamer.flex.objects import Ragged, boxed


def _checked(call: Call, splits: Sequence[Array], values: Array) -> None:
    """Fail unless each splits are sorted from 0 to the number of rows of what follows."""
    require_least_rank(call, "values", values, 1)
    for n, one in enumerate(splits):
        require_rank(call, "row splits", one, 1)
        call.require(one.size > 0 and one[0] == 0 and np.all(np.diff(one) >= 0), "row splits must rise from 0")
        rows = splits[n + 1].size - 1 if n + 1 < len(splits) else values.shape[0]
        call.require(one[-1] == rows, f"row splits must end with {rows}, got {int(one[-1])}")


def _row_of(splits: Array) -> Array:
    """The row of each value."""
    return np.repeat(np.arange(splits.size - 1), np.diff(splits))


def _ranges(starts: Array, lengths: Array) -> Array:
    """``start, start + 1, …`` of each row, one behind the other."""
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if ends.size else 0
    positions: Array = np.arange(total) - np.repeat(ends - lengths - starts, lengths)
    return positions


@kernel("RaggedRange")
def ragged_range(call: Call, starts: Array, limits: Array, deltas: Array) -> Any:
    """A range in each row."""
    for name, one in (("starts", starts), ("limits", limits), ("deltas", deltas)):
        require_rank(call, name, one, 0, 1)
    sizes = {one.size for one in (starts, limits, deltas) if one.ndim}
    call.require(len(sizes) <= 1, f"starts, limits and deltas must have one size, got {sorted(sizes)}")
    rows = sizes.pop() if sizes else 1
    start, limit, delta = [np.broadcast_to(one, (rows,)) for one in (starts, limits, deltas)]
    call.require(np.all(delta != 0), "deltas must not be 0")
    if start.dtype.kind in "iu":
        wide = [one.astype(object) for one in (start, limit, delta)]
        lengths = -((wide[0] - wide[1]) // wide[2])
    else:
        lengths = np.ceil((limit - start).astype(np.float64) / delta)
        call.require(np.all(np.isfinite(lengths)), "ranges must be finite")
    lengths = np.where((delta > 0) == (start < limit), lengths, 0)
    lengths = np.where(start == limit, 0, lengths)
    checked_shape(call, [sum(lengths.tolist())])
    counts = lengths.astype(np.int64)
    steps = _ranges(np.zeros(rows, np.int64), counts).astype(start.dtype)
    splits = np.concatenate([[0], np.cumsum(counts)])
    return splits, np.repeat(start, counts) + steps * np.repeat(delta, counts)


@kernel("RaggedGather")
def ragged_gather(call: Call, splits: list[Array], values: Array, indices: Array) -> Any:
    """The rows at the indices: each dimension of these beyond the first adds splits of even rows, and a single one
    takes off the outermost."""
    _checked(call, splits, values)
    require_range(call, "indices", indices, splits[0].size - 1)
    picked = indices.reshape(-1).astype(np.int64)
    results = []
    for n in range(1, indices.ndim):
        count, step = int(np.prod(indices.shape[:n])), indices.shape[n]
        results.append(np.arange(count + 1) * step)
    for n, one in enumerate(splits):
        lengths = np.diff(one)[picked]
        checked_shape(call, [int(lengths.sum())])
        if n or indices.ndim:
            results.append(np.concatenate([[0], np.cumsum(lengths)]))
        picked = _ranges(one[:-1][picked], lengths)
    wanted = sum(len(argument.types) for argument in call.node.outputs) - 1
    call.require(len(results) == wanted, f"OUTPUT_RAGGED_RANK must be {len(results)}, got {wanted}")
    return results, values[picked]


@kernel("RaggedTensorToSparse")
def ragged_to_sparse(call: Call, splits: list[Array], values: Array) -> Any:
    """Indices, values and shape of the same elements as a sparse tensor."""
    _checked(call, splits, values)
    rows = _row_of(splits[0])
    indices = np.stack([rows, _ranges(np.zeros(splits[0].size - 1, np.int64), np.diff(splits[0]))], 1)
    sizes = [splits[0].size - 1, int(np.diff(splits[0]).max(initial=0))]
    for one in splits[1:]:
        within = _ranges(np.zeros(one.size - 1, np.int64), np.diff(one))
        indices = np.concatenate([indices[_row_of(one)], within[:, None]], 1)
        sizes.append(int(np.diff(one).max(initial=0)))
    inner = values.shape[1:]
    count = int(np.prod(inner))
    if inner:
        deeper = np.array(list(np.ndindex(*inner)), np.int64).reshape(count, len(inner))
        indices = np.concatenate([np.repeat(indices, count, 0), np.tile(deeper, (len(indices), 1))], 1)
    return indices, values.reshape(-1), [*sizes, *inner]


def _partitions(call: Call, tensors: list[Array], values: Array) -> tuple[list[Array], int]:
    """Row splits of every ragged dimension, and how many rows there are at first."""
    kinds = list(call.attributes.texts("row_partition_types"))
    call.require(len(kinds) == len(tensors), f"there are {len(tensors)} row partitions of {len(kinds)} types")
    if kinds and kinds[0] == "FIRST_DIM_SIZE":
        call.require(tensors[0].size == 1, "the first dimension's size must be one number")
        rows = int(tensors[0].reshape(-1)[0])
        kinds, tensors = kinds[1:], tensors[1:]
    else:
        call.require(kinds and kinds[0] == "ROW_SPLITS", f"row partitions {kinds} must begin with ROW_SPLITS")
        rows = tensors[0].size - 1
    splits: list[Array] = []
    count = rows
    call.require(rows >= 0, f"there cannot be {rows} rows")
    for n, (kind, tensor) in enumerate(zip(kinds, tensors, strict=True)):
        require_rank(call, "row partitions", tensor, 1)
        if kind == "ROW_SPLITS":
            call.require(tensor.size == count + 1, f"row splits must have {count + 1} elements, got {tensor.size}")
            call.require(tensor[0] == 0 and np.all(np.diff(tensor) >= 0), "row splits must rise from 0")
            splits.append(tensor.astype(np.int64))
        elif kind == "VALUE_ROWIDS":
            call.require(np.all(np.diff(tensor) >= 0), "row ids must be sorted")
            require_range(call, "row ids", tensor, count)
            checked_shape(call, [count])
            splits.append(np.concatenate([[0], np.cumsum(np.bincount(tensor, minlength=count))]))
        else:
            call.fail(f"row partition {kind!r} is not known; it must be ROW_SPLITS or VALUE_ROWIDS")
        count = int(splits[-1][-1])
        last = n == len(kinds) - 1
        call.require(not last or count == values.shape[0], f"there are {values.shape[0]} values for {count} places")
    return splits, rows


@kernel("RaggedTensorToTensor")
def ragged_to_tensor(call: Call, shape: Array, values: Array, default: Array, partitions: list[Array]) -> Array:
    """The rows filled with the default, or cut, to one shape, in which -1 is the size that holds all."""
    require_least_rank(call, "values", values, 1)
    splits, rows = _partitions(call, partitions, values)
    ragged = [rows, *[int(np.diff(one).max(initial=0)) for one in splits]]
    inner = values.shape[1:]
    wanted = shape.tolist() if shape.ndim else [-1] * (len(ragged) + len(inner))
    call.require(shape.ndim <= 1 and (shape.ndim or shape == -1), f"shape must be a vector or -1, got {shape.tolist()}")
    call.require(
        len(wanted) == len(ragged) + len(inner), f"shape {wanted} must have {len(ragged) + len(inner)} dimensions"
    )
    sizes = [own if size < 0 else size for own, size in zip([*ragged, *inner], wanted, strict=True)]
    call.require(tuple(sizes[len(ragged) :]) == inner, f"shape {wanted} must end with {list(inner)}")
    checked_shape(call, sizes)
    result = np.empty(sizes, values.dtype)
    result[...] = np.broadcast_to(default, inner) if inner else default.reshape(-1)[0]
    places = np.arange(rows)
    kept = places < sizes[0]
    for one, size in zip(splits, sizes[1:], strict=False):
        within = _ranges(np.zeros(one.size - 1, np.int64), np.diff(one))
        row = _row_of(one)
        kept = kept[row] & (within < size)
        places = places[row] * size + within
    flat = result.reshape(-1, *inner) if inner else result.reshape(-1)
    flat[places[kept]] = values[kept]
    return result


@kernel("RaggedBincount")
def ragged_bincount(call: Call, splits: Array, values: Array, size: Array, weights: Array) -> Array:
    """How often each number is in each row."""
    _checked(call, [splits], values)
    binary = call.attributes.bool("binary_output")
    return counted_flat(call, values, _row_of(splits), splits.size - 1, size, weights, binary)


@kernel("RaggedTensorToVariant")
def ragged_to_variant(call: Call, splits: list[Array], values: Array) -> Any:
    """The ragged tensor as one variant; with ``batched_input``, each of its rows."""
    copies = [one.copy() for one in splits]
    if not call.attributes.bool("batched_input"):
        return boxed(Ragged(tuple(copies), values.copy()))
    call.require(splits, "batched_input needs row splits")
    _checked(call, splits, values)
    rows = np.empty(splits[0].size - 1, object)
    for row in range(rows.size):
        start, stop = int(splits[0][row]), int(splits[0][row + 1])
        inner = []
        for one in splits[1:]:
            part = one[start : stop + 1]
            inner.append(part - part[0])
            start, stop = int(part[0]), int(part[-1])
        rows[row] = Ragged(tuple(inner), values[start:stop].copy())
    return rows


@kernel("RaggedTensorFromVariant")
def ragged_from_variant(call: Call, encoded: Any) -> Any:
    """The ragged tensor of variants of ragged tensors, of which each dimension adds row splits."""
    variants = encoded if isinstance(encoded, np.ndarray) else boxed(encoded)
    rank = call.attributes.int("output_ragged_rank")
    items = variants.reshape(-1).tolist()
    call.require(all(isinstance(one, Ragged) for one in items), "the variant is no ragged tensor")
    inner = call.attributes.int("input_ragged_rank")
    inner = rank - variants.ndim if inner == -1 else inner
    call.require(inner >= 0 and inner + variants.ndim == rank, f"output_ragged_rank must be {inner + variants.ndim}")
    dtype = call.dtype("Tvalues")
    for one in items:
        call.require(len(one.splits) == inner, f"a variant has {len(one.splits)} ragged dimensions, not {inner}")
        call.require(one.values.dtype == dtype, f"a variant has values of {one.values.dtype}, not {dtype}")
    results = [np.arange(int(np.prod(variants.shape[:n])) + 1) * variants.shape[n] for n in range(1, variants.ndim)]
    if variants.ndim:
        lengths = [one.splits[0].size - 1 if one.splits else one.values.shape[0] for one in items]
        results.append(np.concatenate([[0], np.cumsum(lengths)]))
        results += [_joined([one.splits[n] for one in items]) for n in range(inner)]
        parts = [one.values for one in items]
        return results, np.concatenate(parts) if parts else np.zeros(0, dtype)
    return list(items[0].splits), items[0].values


def _joined(splits: list[Array]) -> Array:
    """The row splits of what follows each other."""
    lengths = [np.diff(one) for one in splits]
    return np.concatenate([[0], np.cumsum(np.concatenate(lengths) if lengths else [])])


@kernel("RaggedTensorToVariantGradient")
def ragged_to_variant_gradient(call: Call, encoded: Any, row_splits: Array, shape: Array) -> Array:
    """The values of variants of gradients, one behind the other, in the shape of the dense values."""
    variants = encoded if isinstance(encoded, np.ndarray) else boxed(encoded)
    items = variants.reshape(-1).tolist()
    call.require(items and all(isinstance(one, Ragged) for one in items), "the variant is no ragged tensor")
    values = np.concatenate([one.values for one in items])
    return values.reshape(checked_shape(call, shape))
