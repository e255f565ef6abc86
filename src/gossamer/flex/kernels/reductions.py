"""Reductions over axes, running totals, and the greatest elements."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gossamer.flex.kernels import Array, Call, Shape, kernel, like_first
from gossamer.flex.kernels._checks import (
    axes_of,
    axis_of,
    checked_shape,
    number,
    require_least_rank,
    require_rank,
    widened,
)
from gossamer.flex.node import FlexNode

Reduction = Callable[..., Any]


def _lowest(dtype: np.dtype[Any]) -> Any:
    return -np.inf if dtype.kind not in "iu" else np.iinfo(dtype).min


def _highest(dtype: np.dtype[Any]) -> Any:
    return np.inf if dtype.kind not in "iu" else np.iinfo(dtype).max


def _mean(x: Array, axis: tuple[int, ...], keepdims: bool) -> Any:
    """Of integers: their sum in their type, divided towards zero, and 0 of none."""
    total = np.sum(x, axis=axis, keepdims=keepdims, dtype=x.dtype)
    count = x.size // max(total.size, 1)
    if x.dtype.kind == "f":
        return total / np.asarray(count, x.dtype)
    if not count:
        return np.zeros_like(total)
    if x.dtype.kind == "c":
        return total / count
    return np.trunc(total / count) if x.dtype.itemsize < 8 else _divided(total, count)


def _divided(total: Array, count: int) -> Array:
    quotient: Array = np.abs(total) // count * np.sign(total)
    return quotient


def _euclidean(x: Array, axis: tuple[int, ...], keepdims: bool) -> Any:
    squares = (np.conj(x) * x).sum(axis=axis, keepdims=keepdims, dtype=x.dtype)
    return np.sqrt(squares)


_REDUCTIONS: dict[str, Reduction] = {
    "All": np.all,
    "Any": np.any,
    "EuclideanNorm": _euclidean,
    "Max": lambda x, **where: np.max(x, initial=_lowest(x.dtype), **where),
    "Mean": _mean,
    "Min": lambda x, **where: np.min(x, initial=_highest(x.dtype), **where),
    "Prod": lambda x, **where: np.prod(x, dtype=x.dtype, **where),
    "Sum": lambda x, **where: np.sum(x, dtype=x.dtype, **where),
}


@kernel(*_REDUCTIONS)
def reduction(call: Call, x: Array, axes: Array) -> Any:
    """What the operator is named after, over ``reduction_indices``; ``keep_dims`` leaves dimensions of 1."""
    axis = axes_of(call, axes, x.ndim, "reduction_indices")
    return _REDUCTIONS[call.op](widened(x), axis=axis, keepdims=call.attributes.bool("keep_dims"))


@kernel("ArgMax", "ArgMin")
def arg_max(call: Call, x: Array, dimension: Array) -> Any:
    """The first position of the greatest element, or of the least."""
    axis = axis_of(call, number(call, "dimension", dimension), x.ndim, "dimension")
    call.require(x.shape[axis], f"dimension {axis} of shape {list(x.shape)} is empty")
    return (np.argmax if call.op == "ArgMax" else np.argmin)(widened(x), axis=axis)


@kernel("Cumsum", "Cumprod", "CumulativeLogsumexp", shape=like_first)
def cumulative(call: Call, x: Array, axis: Array) -> Array:
    """Running totals along an axis; ``exclusive`` ones leave out the element itself, ``reverse`` runs from the end."""
    dimension = axis_of(call, number(call, "axis", axis), x.ndim)
    wide = widened(x)
    if call.attributes.bool("reverse"):
        wide = np.flip(wide, dimension)
    if call.op == "CumulativeLogsumexp":
        totals = np.logaddexp.accumulate(wide, axis=dimension) if wide.size else wide
        neutral = -np.inf
    else:
        totals = (np.cumsum if call.op == "Cumsum" else np.cumprod)(wide, axis=dimension, dtype=wide.dtype)
        neutral = 0.0 if call.op == "Cumsum" else 1.0
    if call.attributes.bool("exclusive") and x.shape[dimension]:
        ends = np.take(np.full_like(totals, neutral), [0], dimension)
        most = np.take(totals, range(x.shape[dimension] - 1), dimension)
        totals = np.concatenate([ends, most], dimension)
    return np.flip(totals, dimension) if call.attributes.bool("reverse") else totals


def _top_k_shape(node: FlexNode, shapes: Sequence[Shape]) -> list[Shape]:
    (x,) = shapes
    if not x or x[-1] < node.attributes.int("k"):
        raise ValueError(f"the last dimension of shape {list(x)} must be {node.attributes.int('k')} or more")
    return [(*x[:-1], node.attributes.int("k"))] * 2


@kernel("TopK", shape=_top_k_shape)
def top_k(call: Call, x: Array) -> tuple[Array, Array]:
    """The k greatest elements of the last dimension and where they are; of equal ones the first comes first."""
    return _top_k(call, x, call.attributes.int("k"))


@kernel("TopKV2")
def top_k_v2(call: Call, x: Array, k: Array) -> tuple[Array, Array]:
    """The same with k as an operand."""
    return _top_k(call, x, number(call, "k", k))


def _top_k(call: Call, x: Array, k: int) -> tuple[Array, Array]:
    require_least_rank(call, "input", x, 1)
    size = x.shape[-1]
    call.require(0 <= k <= size, f"k must be in [0, {size}], got {k}")
    if k == 1 and x.size:
        first = np.argmax(widened(x), -1)[..., None]
    else:
        # A stable order of the mirrored elements leaves the first of equal ones last.
        first = (size - 1 - np.argsort(widened(x)[..., ::-1], -1, kind="stable"))[..., ::-1][..., :k]
    return np.take_along_axis(x, first, -1), first


@kernel("NthElement", shape=lambda node, shapes: [tuple(shapes[0][:-1])])
def nth_element(call: Call, x: Array, n: Array) -> Array:
    """The element of each row that has n others before it in order; ``reverse``: in descending order."""
    require_least_rank(call, "input", x, 1)
    position = number(call, "n", n)
    size = x.shape[-1]
    call.require(0 <= position < size, f"n must be in [0, {size}), got {position}")
    position = size - 1 - position if call.attributes.bool("reverse") else position
    nth: Array = np.sort(x, -1)[..., position]
    return nth


@kernel("HistogramFixedWidth")
def histogram_fixed_width(call: Call, values: Array, value_range: Array, nbins: Array) -> Array:
    """How many values are in each of ``nbins`` equal parts of the range; the outer ones take what lies outside."""
    (bins,) = checked_shape(call, [number(call, "nbins", nbins)])
    call.require(bins > 0, "nbins must be positive")
    call.require(value_range.shape == (2,), f"value_range must have shape [2], got {list(value_range.shape)}")
    low, high = value_range
    call.require(low < high, f"value_range must be increasing, got {value_range.tolist()}")
    step = (np.float64(high) - np.float64(low)) / bins
    places = np.clip((values.reshape(-1) - low) / step, 0, bins - 1).astype(np.int64)
    return np.bincount(places, minlength=bins)


@kernel("Bincount")
def bincount(call: Call, arr: Array, size: Array, weights: Array) -> Array:
    """How often, or with what weight, each number below ``size`` is among ``arr``."""
    (counts,) = counted(call, arr.reshape(1, -1), size, weights.reshape(1, -1), binary=False)
    found: Array = counts
    return found


@kernel("DenseBincount")
def dense_bincount(call: Call, arr: Array, size: Array, weights: Array) -> Array:
    """`bincount` of a vector, or of each row of a matrix; ``binary_output`` says whether a number is there at all."""
    require_rank(call, "input", arr, 1, 2)
    call.require(
        weights.size == 0 or weights.shape == arr.shape,
        f"weights must be empty or have shape {list(arr.shape)}, got {list(weights.shape)}",
    )
    rows = arr.reshape(-1, arr.shape[-1])
    found = counted(call, rows, size, weights, binary=call.attributes.bool("binary_output"))
    return found if arr.ndim == 2 else found[0]


def counted(call: Call, rows: Array, size: Array, weights: Array, binary: bool) -> Array:
    """[rows, size]: counts of the numbers in each row, in the type of the weights."""
    lengths = np.full(rows.shape[0], rows.shape[1])
    return counted_flat(
        call, rows.reshape(-1), np.repeat(np.arange(len(rows)), lengths), len(rows), size, weights, binary
    )


def counted_flat(
    call: Call, values: Array, row_of: Array, rows: int, size: Array, weights: Array, binary: bool
) -> Array:
    """The same of values that each say in which row they are."""
    shape = checked_shape(call, [rows, number(call, "size", size)])
    call.require(not values.size or values.min() >= 0, "numbers to be counted must not be negative")
    weights = weights.reshape(-1)
    call.require(
        weights.size in (0, values.size), f"there are {weights.size} weights for {values.size} numbers to be counted"
    )
    counts = np.zeros(shape, weights.dtype)
    kept = values < shape[1]
    places = (row_of[kept], values[kept])
    if binary:
        counts[places] = 1
    else:
        np.add.at(counts, places, weights[kept] if weights.size else counts.dtype.type(1))
    return counts


@kernel("Unique", "UniqueWithCounts", "UniqueV2", "UniqueWithCountsV2")
def unique(call: Call, x: Array, *axes: Array) -> tuple[Array, ...]:
    """The different elements (along an axis) in the order in which they come, which of them each is, and how often."""
    if axes and axes[0].size:
        axis = axis_of(call, number(call, "axis", axes[0]), x.ndim)
    else:
        require_rank(call, "x", x, 1)
        axis = 0
    rows = np.moveaxis(x, axis, 0)
    places = row_numbers(rows)
    _, first, inverse, counts = np.unique(places, return_index=True, return_inverse=True, return_counts=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    y = np.moveaxis(rows[first[order]], 0, axis)
    results = (y, rank[inverse.reshape(-1)], counts[order])
    return results if call.op.startswith("UniqueWithCounts") else results[:2]


def row_numbers(rows: Array) -> Array:
    """A number for each row, the same for equal ones; a NaN equals nothing."""
    flat = rows.reshape(rows.shape[0], math.prod(rows.shape[1:]))
    numbers = np.zeros(rows.shape[0], np.int64)
    for column in range(flat.shape[1]):
        values = flat[:, column]
        _, part = np.unique(values, return_inverse=True, equal_nan=False)
        pairs = np.stack([numbers, part.reshape(-1)], 1)
        _, numbers = np.unique(pairs[:, 0] * (len(rows) + 1) + pairs[:, 1], return_inverse=True)
        numbers = numbers.reshape(-1)
    return numbers
