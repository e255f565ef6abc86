"""Shapes: what they are, and arrays of the same elements in another one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gossamer.flex.kernels import Array, Call, Shape, kernel, like_first
from gossamer.flex.kernels._checks import axis_of, checked_shape, number, require_rank
from gossamer.flex.node import FlexNode


@kernel("Shape", shape=lambda node, shapes: [(len(shapes[0]),)])
def shape_of(call: Call, x: Any) -> Any:
    """The size of each dimension."""
    return np.array(np.shape(x), np.int64)


@kernel("ShapeN", shape=lambda node, shapes: [(len(shape),) for shape in shapes])
def shapes_of(call: Call, inputs: list[Array]) -> Any:
    """The shape of each operand."""
    return ([np.array(x.shape, np.int64) for x in inputs],)


@kernel("Size", "Rank", shape=lambda node, shapes: [()])
def size_or_rank(call: Call, x: Any) -> Any:
    """The number of elements, or of dimensions."""
    return np.size(x) if call.op == "Size" else np.ndim(x)


@kernel("Reshape")
def reshape(call: Call, tensor: Array, shape: Array) -> Array:
    """The elements in order; one size may be -1."""
    require_rank(call, "shape", shape, 1)
    return tensor.reshape(resolved(call, shape, tensor.shape))


def resolved(call: Call, shape: Array, old: Sequence[int]) -> Shape:
    """The shape with the size that is -1 computed from the old shape."""
    sizes = shape.reshape(-1).tolist()
    unknown = [n for n, size in enumerate(sizes) if size == -1]
    call.require(len(unknown) <= 1, f"shape {sizes} has several unknown sizes")
    if unknown:
        # Where a size is 0, the others are still the same as those of the operand.
        known, whole = [math.prod([size for size in one if size not in (-1, 0)]) for one in (sizes, old)]
        whole = whole if 0 in sizes else math.prod(old)
        call.require(known > 0 and whole % known == 0, f"shape {list(old)} does not fit {sizes}")
        sizes[unknown[0]] = whole // known
    found = checked_shape(call, sizes)
    elements = math.prod(old)
    call.require(math.prod(found) == elements, f"{elements} elements do not fit shape {shape.tolist()}")
    return found


@kernel("ExpandDims")
def expand_dims(call: Call, x: Array, dim: Array) -> Array:
    """A dimension of 1 before ``dim``."""
    return np.expand_dims(x, axis_of(call, number(call, "dim", dim), x.ndim + 1, "dim"))


def _squeeze_shape(node: FlexNode, shapes: Sequence[Shape]) -> list[Shape]:
    (shape,) = shapes
    given = node.attributes.ints("squeeze_dims")
    for axis in given:
        if not -len(shape) <= axis < len(shape) or shape[axis] != 1:
            raise ValueError(f"dimension {axis} of shape {list(shape)} is not 1")
    dropped = {axis % len(shape) for axis in given} or {n for n, size in enumerate(shape) if size == 1}
    return [tuple([size for n, size in enumerate(shape) if n not in dropped])]


@kernel("Squeeze", shape=_squeeze_shape)
def squeeze(call: Call, x: Array) -> Array:
    """Without the dimensions of 1, all or those that ``squeeze_dims`` names."""
    return x.reshape(_squeeze_shape(call.node, [x.shape])[0])


@kernel("EnsureShape", shape=like_first)
def ensure_shape(call: Call, x: Array) -> Array:
    """The operand, if its shape is the one that the attribute allows."""
    wanted = call.attributes.shape("shape")
    fits = wanted is None or (
        len(wanted) == x.ndim and all(size in (None, got) for size, got in zip(wanted, x.shape, strict=True))
    )
    call.require(fits, f"shape must be {wanted and [size or -1 for size in wanted]}, got {list(x.shape)}")
    return x


@kernel("BroadcastTo")
def broadcast_to(call: Call, x: Array, shape: Array) -> Array:
    """The elements repeated where the operand has a dimension of 1 or none."""
    target = checked_shape(call, shape)
    call.require(len(target) >= x.ndim, f"shape {list(x.shape)} cannot be broadcast to {list(target)}")
    return np.broadcast_to(x, target)


@kernel("BroadcastArgs")
def broadcast_args(call: Call, s0: Array, s1: Array) -> Any:
    """The shape that operands of two shapes broadcast to."""
    first, second = [s.tolist() for s in (s0, s1)]
    rank = max(len(first), len(second))
    first, second = [[1] * (rank - len(s)) + s for s in (first, second)]
    found = []
    for a, b in zip(first, second, strict=True):
        call.require(a == b or 1 in (a, b), f"shapes {s0.tolist()} and {s1.tolist()} do not fit")
        found.append(b if a == 1 else a)
    return np.array(found, s0.dtype)


@kernel("BroadcastGradientArgs")
def broadcast_gradient_args(call: Call, s0: Array, s1: Array) -> Any:
    """For each of two shapes the dimensions that a gradient of the broadcast shape is summed over."""
    rank = len(broadcast_args(call, s0, s1))
    if s0.tolist() == s1.tolist():
        return [], []
    return tuple([_spread(shape.tolist(), rank) for shape in (s0, s1)])


def _spread(shape: list[int], rank: int) -> list[int]:
    """The dimensions of the broadcast shape that the operand has not, or has once."""
    missing = rank - len(shape)
    return [n for n in range(rank) if n < missing or shape[n - missing] == 1]


@kernel("ConcatOffset", shape=lambda node, shapes: list(shapes[1:]))
def concat_offset(call: Call, axis: Array, shapes: list[Array]) -> Any:
    """Where each operand of a concatenation begins in its result."""
    rank = shapes[0].size
    axis_ = axis_of(call, number(call, "concat_dim", axis), rank, "concat_dim")
    offsets, start = [], 0
    for shape in shapes:
        call.require(shape.shape == (rank,), f"shapes must have {rank} sizes, got {shape.tolist()}")
        others = np.delete(shape, axis_) == np.delete(shapes[0], axis_)
        call.require(others.all(), f"shapes {shapes[0].tolist()} and {shape.tolist()} differ beside the axis")
        offset = np.zeros(rank, shape.dtype)
        offset[axis_] = start
        offsets.append(offset)
        start += int(shape[axis_])
    return (offsets,)


def _format_order(call: Call) -> list[int]:
    """For each letter of the destination format, its position in the source format."""
    source, target = call.attributes.text("src_format"), call.attributes.text("dst_format")
    fits = len(source) in (4, 5) and sorted(source) == sorted(target) and len(set(source)) == len(source)
    call.require(fits, f"formats {source!r} and {target!r} must have the same 4 or 5 letters")
    return [source.index(letter) for letter in target]


@kernel("DataFormatDimMap", shape=like_first)
def data_format_dim_map(call: Call, x: Array) -> Array:
    """The dimension of the destination format for one of the source format."""
    order = np.argsort(_format_order(call))
    call.require(np.all((x >= -order.size) & (x < order.size)), f"dimensions must be in [-{order.size}, {order.size})")
    return order[x]


@kernel("DataFormatVecPermute", shape=like_first)
def data_format_vec_permute(call: Call, x: Array) -> Array:
    """Rows in the order of the destination format: one for each dimension, or for each spatial one."""
    require_rank(call, "x", x, 1, 2)
    order = _format_order(call)
    rows = x.shape[0]
    if rows == len(order) - 2:  # only the spatial dimensions
        source = call.attributes.text("src_format")
        spatial = [n for n, letter in enumerate(source) if letter not in "NC"]
        order = [spatial.index(n) for n in order if n in spatial]
    call.require(rows == len(order), f"x must have {len(order)} rows or two less, got {rows}")
    return x[order]
