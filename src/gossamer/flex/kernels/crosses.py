"""Crosses: all combinations of the features of several columns, row by row."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from gossamer.flex.kernels import Array, Call, kernel
from gossamer.flex.kernels._checks import checked_shape, number, require_rank
from gossamer.flex.objects import strings
from gossamer.ops._farm_hash import fingerprint64

Row = list[Any]
Columns = list[list[Row]]
_MASK = (1 << 64) - 1


def _columns(call: Call, indices: list[Array], values: list[Array], shapes: list[Array], dense: list[Array]) -> Columns:
    """The features of each row of every column, sparse ones first."""
    columns: Columns = []
    counts = {int(shape[0]) for shape in shapes if shape.size == 2} | {one.shape[0] for one in dense if one.ndim}
    call.require(len(counts) == 1, f"columns must have one number of rows, got {sorted(counts)}")
    (rows,) = counts
    checked_shape(call, [rows])
    for index, value, shape in zip(indices, values, shapes, strict=True):
        fits = index.ndim == 2 and index.shape[1] == 2 and shape.shape == (2,) and value.shape == index.shape[:1]
        call.require(fits, "sparse columns must have indices [n, 2], n values and a shape of 2 elements")
        call.require(np.all((index[:, 0] >= 0) & (index[:, 0] < rows)), f"rows of indices must be in [0, {rows})")
        found: list[Row] = [[] for _ in range(rows)]
        for row, feature in zip(index[:, 0].tolist(), value.tolist(), strict=True):
            found[row].append(feature)
        columns.append(found)
    for column in dense:
        require_rank(call, "dense columns", column, 2)
        columns.append(column.tolist())
    return columns


def _crossed(call: Call, columns: Columns, combine: Callable[[Sequence[Any]], Any], is_text: bool) -> Any:
    """Indices, values and shape of the sparse matrix of combined features."""
    indices, results, widest, total = [], [], 0, 0
    for row, features in enumerate(zip(*columns, strict=True)):
        call.poll()
        count = int(np.prod([len(one) for one in features], dtype=np.float64))
        total += count
        checked_shape(call, [total, 2])
        widest = max(widest, count)
        indices += [(row, column) for column in range(count)]
        results += [combine(combination) for combination in itertools.product(*features)]
    values = strings(results, (len(results),)) if is_text else np.array(results, np.int64)
    return np.array(indices, np.int64).reshape(-1, 2), values, [len(columns[0]) if columns else 0, widest]


def _text(feature: Any) -> bytes:
    return feature if isinstance(feature, bytes) else b"%d" % feature


def _fingerprint(feature: Any) -> int:
    """Of a text, FarmHash's Fingerprint64; a number as it is."""
    if isinstance(feature, bytes):
        return int(fingerprint64(np.frombuffer(feature, np.uint8).reshape(1, -1))[0])
    return int(feature) & _MASK


def _joined_hash(first: int, second: int) -> int:
    """TensorFlow's FingerprintCat64."""
    multiplier = 0xC6A4A7935BD1E995

    def mix(value: int) -> int:
        return value ^ (value >> 47)

    result = first ^ multiplier
    result ^= mix(second * multiplier & _MASK) * multiplier & _MASK
    result = result * multiplier & _MASK
    return mix(mix(result) * multiplier & _MASK)


def _hashed(hashes: Iterable[int], buckets: int) -> int:
    """All hashes in one."""
    return reduce(_joined_hash, hashes) % (buckets or (1 << 63) - 1)


@kernel("SparseCross")
def sparse_cross(call: Call, indices: Any, values: Any, shapes: Any, dense: Any) -> Any:
    """Crosses as hashes (``hashed_output``), or as texts joined by ``_X_``."""
    columns = _columns(call, indices, values, shapes, dense)
    if not call.attributes.bool("hashed_output"):
        return _crossed(call, columns, lambda features: b"_X_".join(map(_text, features)), True)
    key = call.attributes.int("hash_key") & _MASK
    buckets = call.attributes.int("num_buckets")
    return _crossed(call, columns, lambda features: _hashed([key, *map(_fingerprint, features)], buckets), False)


@kernel("SparseCrossV2")
def sparse_cross_v2(call: Call, indices: Any, values: Any, shapes: Any, dense: Any, separator: Array) -> Any:
    """Crosses as texts joined by a separator."""
    between: bytes = separator.reshape(-1)[0]
    columns = _columns(call, indices, values, shapes, dense)
    return _crossed(call, columns, lambda features: between.join(map(_text, features)), True)


@kernel("SparseCrossHashed")
def sparse_cross_hashed(
    call: Call, indices: Any, values: Any, shapes: Any, dense: Any, num_buckets: Array, strong: Array, salt: Array
) -> Any:
    """Crosses as hashes; a strong one is keyed by the salt."""
    from gossamer.flex.kernels.hashes import siphash

    call.require(salt.shape == (2,), f"salt must have 2 elements, got {salt.tolist()}")
    buckets = number(call, "num_buckets", num_buckets)
    call.require(buckets >= 0, f"num_buckets must not be negative, got {buckets}")
    first, second = [int(one) & _MASK for one in salt]

    def keyed(feature: Any) -> int:
        if not isinstance(feature, bytes):
            return int(feature) & _MASK
        return int(siphash(np.frombuffer(feature, np.uint8).reshape(1, -1), (first, second))[0])

    # Of the integers of a sparse column TensorFlow takes the lower 4 bytes as a text.
    texts = [one if one.dtype == object else strings([n.tobytes()[:4] for n in one], one.shape) for one in values]
    hash = keyed if bool(strong.reshape(-1)[0]) else _fingerprint
    columns = _columns(call, indices, texts, shapes, dense)
    return _crossed(call, columns, lambda features: _hashed(map(hash, features), buckets), False)
