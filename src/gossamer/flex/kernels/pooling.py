"""Maxima and averages of windows, with gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gossamer.flex.kernels import Array, Call, Shape, kernel
from gossamer.flex.kernels._checks import require_rank, require_same_shape, widened
from gossamer.flex.kernels._windows import Windows, checked_windows, explicit_pairs, spatial_of, windows
from gossamer.flex.node import FlexNode


def _geometry(node: FlexNode, shape: Sequence[int], ksize: Sequence[int], strides: Sequence[int]) -> Windows:
    """Windows over all dimensions. Raises `ValueError`."""
    attributes = node.attributes
    format = attributes.text("data_format", "NHWC" if len(ksize) == 4 else "NDHWC")
    if not len(shape) == len(ksize) == len(strides) == len(format):
        raise ValueError(f"shape {list(shape)}, ksize {list(ksize)} and strides {list(strides)} do not fit {format}")
    if ksize[format.index("N")] != 1 or strides[format.index("N")] != 1:
        raise ValueError(f"ksize {list(ksize)} and strides {list(strides)} must be 1 for the batch")
    pairs = explicit_pairs(attributes.ints("explicit_paddings", ()), format)
    explicit = None
    if pairs is not None:
        explicit = [(0, 0)] * len(format)
        for n, pair in zip(spatial_of(format), pairs, strict=True):
            explicit[n] = pair
    return windows(shape, ksize, strides, attributes.text("padding"), explicit=explicit)


def _of_attributes(call: Call, shape: Sequence[int]) -> Windows:
    found = _geometry(call.node, shape, call.attributes.ints("ksize"), call.attributes.ints("strides"))
    return checked_windows(call, found)


def _pool_shape(node: FlexNode, shapes: Sequence[Shape]) -> list[Shape]:
    counts = _geometry(node, shapes[0], node.attributes.ints("ksize"), node.attributes.ints("strides")).counts
    return [counts] * len(node.outputs)


def _lowest(x: Array) -> Any:
    return np.iinfo(x.dtype).min if x.dtype.kind in "iu" else -np.inf


@kernel("MaxPool", "MaxPool3D", shape=_pool_shape)
def max_pool(call: Call, x: Array) -> Array:
    """The greatest element of each window."""
    return _greatest(call, x, _of_attributes(call, x.shape))


@kernel("MaxPoolV2")
def max_pool_v2(call: Call, x: Array, ksize: Array, strides: Array) -> Array:
    """The same with windows as operands."""
    return _greatest(call, x, _of_operands(call, x.shape, ksize, strides))


def _of_operands(call: Call, shape: Sequence[int], ksize: Array, strides: Array) -> Windows:
    return checked_windows(call, _geometry(call.node, shape, ksize.tolist(), strides.tolist()))


def _greatest(call: Call, x: Array, pool: Windows) -> Array:
    padded = pool.padded(x, _lowest(x))
    result = np.full(pool.counts, _lowest(x), x.dtype)
    for _, index in pool.offsets(call):
        np.maximum(result, padded[index], out=result)
    return result


def _first_greatest(call: Call, x: Array, pool: Windows) -> tuple[Array, Array]:
    """The greatest element of each window, and where in x (flat) the first one is."""
    wide = widened(x)
    padded = pool.padded(wide, _lowest(wide))
    places = pool.padded(np.arange(x.size).reshape(x.shape), -1)
    best = np.full(pool.counts, _lowest(wide), wide.dtype)
    where = np.full(pool.counts, -1, np.int64)
    for _, index in pool.offsets(call):
        candidate, place = padded[index], places[index]
        better = (place >= 0) & ((candidate > best) | (where < 0))
        best, where = np.where(better, candidate, best), np.where(better, place, where)
    return best, where


@kernel("MaxPoolWithArgmax", shape=_pool_shape)
def max_pool_with_argmax(call: Call, x: Array) -> Any:
    """`max_pool`, and where the elements are in the flat image, or in the flat batch."""
    require_rank(call, "input", x, 4)
    best, where = _first_greatest(call, x, _of_attributes(call, x.shape))
    if not call.attributes.bool("include_batch_in_index"):
        where %= max(int(np.prod(x.shape[1:])), 1)
    return best, where


def _scattered(gradient: Array, where: Array, shape: Sequence[int]) -> Array:
    wide = widened(gradient)
    result = np.zeros(int(np.prod(shape)), wide.dtype)
    kept = where >= 0
    np.add.at(result, where[kept], wide[kept])
    return result.reshape(tuple(shape))


@kernel("MaxPoolGrad", shape=lambda node, shapes: [tuple(shapes[0])])
def max_pool_grad(call: Call, x: Array, y: Array, gradient: Array) -> Array:
    """The gradient at the first greatest element of each window."""
    return _max_pool_grad(call, x, gradient, _of_attributes(call, x.shape))


@kernel("MaxPoolGradV2", shape=lambda node, shapes: [tuple(shapes[0])])
def max_pool_grad_v2(call: Call, x: Array, y: Array, gradient: Array, ksize: Array, strides: Array) -> Array:
    """The same with windows as operands."""
    return _max_pool_grad(call, x, gradient, _of_operands(call, x.shape, ksize, strides))


def _max_pool_grad(call: Call, x: Array, gradient: Array, pool: Windows) -> Array:
    call.require(gradient.shape == pool.counts, f"grad must have shape {list(pool.counts)}, got {list(gradient.shape)}")
    return _scattered(gradient, _first_greatest(call, x, pool)[1], x.shape)


@kernel("MaxPool3DGrad", shape=lambda node, shapes: [tuple(shapes[0])])
def max_pool_3d_grad(call: Call, x: Array, y: Array, gradient: Array) -> Array:
    """The gradient at every element that is the greatest of its window."""
    pool = _of_attributes(call, x.shape)
    call.require(y.shape == pool.counts, f"orig_output must have shape {list(pool.counts)}, got {list(y.shape)}")
    require_same_shape(call, "orig_output and grad", y, gradient)
    padded = pool.padded(x, _lowest(x))
    wide = widened(gradient)
    result = np.zeros(pool.padded_shape(), wide.dtype)
    for _, index in pool.offsets(call):
        result[index] += np.where(padded[index] == y, wide, 0)
    return pool.cropped(result)


@kernel("MaxPoolGradGrad", "MaxPool3DGradGrad", shape=lambda node, shapes: [tuple(shapes[1])])
def max_pool_grad_grad(call: Call, x: Array, y: Array, gradient: Array) -> Array:
    """What ``grad``, of the operand's shape, has at the first greatest element of each window."""
    return _max_pool_grad_grad(call, x, gradient, _of_attributes(call, x.shape))


@kernel("MaxPoolGradGradV2", shape=lambda node, shapes: [tuple(shapes[1])])
def max_pool_grad_grad_v2(call: Call, x: Array, y: Array, gradient: Array, ksize: Array, strides: Array) -> Array:
    """The same with windows as operands."""
    return _max_pool_grad_grad(call, x, gradient, _of_operands(call, x.shape, ksize, strides))


def _max_pool_grad_grad(call: Call, x: Array, gradient: Array, pool: Windows) -> Array:
    require_same_shape(call, "orig_input and grad", x, gradient)
    where = _first_greatest(call, x, pool)[1]
    picked = gradient.reshape(-1)[np.maximum(where, 0)] if gradient.size else np.zeros(where.shape)
    return np.where(where >= 0, picked, 0)


@kernel("MaxPoolGradWithArgmax", shape=lambda node, shapes: [tuple(shapes[0])])
def max_pool_grad_with_argmax(call: Call, x: Array, gradient: Array, argmax: Array) -> Array:
    """The gradient where `max_pool_with_argmax` found the elements."""
    require_same_shape(call, "grad and argmax", gradient, argmax)
    where = argmax.astype(np.int64)
    if not call.attributes.bool("include_batch_in_index"):
        images = np.arange(len(x)) * int(np.prod(x.shape[1:]))
        where = where + images.reshape(-1, *[1] * (x.ndim - 1))
    call.require(not where.size or (where.min() >= 0 and where.max() < x.size), f"argmax must be in [0, {x.size})")
    return _scattered(gradient, where, x.shape)


@kernel("AvgPool", "AvgPool3D", shape=_pool_shape)
def avg_pool(call: Call, x: Array) -> Array:
    """The average of the elements that each window has."""
    pool = _of_attributes(call, x.shape)
    padded = pool.padded(widened(x))
    total = np.zeros(pool.counts, padded.dtype)
    for _, index in pool.offsets(call):
        total += padded[index]
    average: Array = total / _elements(call, pool).astype(padded.dtype)
    return average


def _elements(call: Call, pool: Windows) -> Array:
    """How many elements of the array each window has."""
    count = np.ones((1,) * len(pool.sizes), np.int64)
    for n, (size, extent, stride, (before, _), windows_) in enumerate(
        zip(pool.sizes, pool.kernel, pool.strides, pool.margins, pool.counts, strict=True)
    ):
        start = np.arange(windows_) * stride - before
        inside = np.minimum(start + extent, size) - np.maximum(start, 0)
        count = count * inside.reshape([-1 if axis == n else 1 for axis in range(len(pool.sizes))])
    return count


@kernel("AvgPoolGrad", "AvgPool3DGrad")
def avg_pool_grad(call: Call, shape: Array, gradient: Array) -> Array:
    """The gradient of an average spread over the elements of its window."""
    pool = _of_attributes(call, shape.tolist())
    call.require(gradient.shape == pool.counts, f"grad must have shape {list(pool.counts)}, got {list(gradient.shape)}")
    wide = widened(gradient)
    share = wide / _elements(call, pool).astype(wide.dtype)
    result = np.zeros(pool.padded_shape(), wide.dtype)
    for _, index in pool.offsets(call):
        result[index] += share
    return pool.cropped(result)
