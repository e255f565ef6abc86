"""Arrays made, joined, cut, turned and filled up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gossamer.flex.kernels import Array, Call, Shape, kernel, like_first
from gossamer.flex.kernels._checks import axes_of, axis_of, checked_shape, number, require_rank, require_same_shape
from gossamer.flex.node import FlexNode


def zero_of(dtype: np.dtype[Any]) -> Any:
    """The element that new arrays are filled with: 0, or an empty string."""
    return b"" if dtype.kind == "O" else np.zeros((), dtype)


@kernel("Const", "ImmutableConst")
def constant(call: Call) -> Array:
    """The value among the attributes."""
    call.require("value" in call.attributes, "its values are in a file of another machine")
    return call.attributes.tensor("value")


@kernel("Fill")
def fill(call: Call, dims: Array, value: Array) -> Array:
    """An array of one value."""
    require_rank(call, "dims", dims, 1)
    require_rank(call, "value", value, 0)
    return np.full(checked_shape(call, dims), value[()], value.dtype)


@kernel("ZerosLike", shape=like_first)
def zeros_like(call: Call, x: Array) -> Array:
    """Zeros in the operand's shape."""
    return np.full(x.shape, zero_of(x.dtype), x.dtype)


@kernel("OnesLike", shape=like_first)
def ones_like(call: Call, x: Array) -> Array:
    """Ones in the operand's shape."""
    return np.ones_like(x)


@kernel("Empty")
def empty(call: Call, shape: Array) -> Array:
    """An array of what nobody may rely on; here zeros."""
    dtype = call.dtype("dtype")
    return np.full(checked_shape(call, shape), zero_of(dtype), dtype)


@kernel("Range")
def range_(call: Call, start: Array, limit: Array, delta: Array) -> Array:
    """``start``, ``start + delta``, … before ``limit``."""
    dtype = start.dtype
    first, last, step = [one.item() if one.dtype.kind in "iu" else float(one) for one in (start, limit, delta)]
    call.require(step != 0, "delta must not be 0")
    call.require(first == last or (first < last) == (step > 0), f"no steps of delta {step} lead from {first} to {last}")
    count = abs(-((first - last) // step)) if dtype.kind in "iu" else np.ceil(abs((last - first) / step))
    count = -((first - last) // step) if dtype.kind in "iu" else count
    call.require(np.isfinite(count), f"there are {count} numbers")
    (size,) = checked_shape(call, [count])
    if dtype.kind in "iu":
        return first + step * np.arange(size)
    return np.arange(size).astype(np.float64) * step + first if dtype == np.float64 else _ranged(start, delta, size)


def _ranged(start: Array, delta: Array, size: int) -> Array:
    values: Array = start + np.arange(size).astype(start.dtype) * delta
    return values


@kernel("LinSpace")
def lin_space(call: Call, start: Array, stop: Array, num: Array) -> Array:
    """``num`` numbers, evenly apart, from start to stop."""
    (size,) = checked_shape(call, [number(call, "num", num)])
    call.require(size > 0, f"num must be positive, got {size}")
    if size == 1:
        return start.reshape(1)
    step = (stop - start) / np.array(size - 1, start.dtype)
    values: Array = start + step * np.arange(size).astype(start.dtype)
    values[-1] = stop
    return values


@kernel("OneHot")
def one_hot(call: Call, indices: Array, depth: Array, on_value: Array, off_value: Array) -> Array:
    """``on_value`` where the new axis has the index, else ``off_value``; indices out of range are nowhere."""
    rank = indices.ndim + 1
    axis = call.attributes.int("axis")
    axis = indices.ndim if axis == -1 else axis
    call.require(0 <= axis < rank, f"axis must be in [-1, {rank}), got {axis}")
    depth_ = number(call, "depth", depth)
    shape = checked_shape(call, [*indices.shape[:axis], depth_, *indices.shape[axis:]])
    positions = np.arange(depth_).reshape(-1, *[1] * (rank - 1 - axis))
    hot = np.expand_dims(indices.astype(np.int64), axis) == positions
    return np.where(np.broadcast_to(hot, shape), on_value, off_value)


def _pack_shape(node: FlexNode, shapes: Sequence[Shape]) -> list[Shape]:
    first = tuple(shapes[0])
    if any(tuple(shape) != first for shape in shapes):
        raise ValueError(f"values must have one shape, got {sorted({str(list(shape)) for shape in shapes})}")
    axis = node.attributes.int("axis")
    if not -len(first) - 1 <= axis <= len(first):
        raise ValueError(f"axis {axis} must be in [{-len(first) - 1}, {len(first)}]")
    axis %= len(first) + 1
    return [(*first[:axis], len(shapes), *first[axis:])]


@kernel("Pack", shape=_pack_shape)
def pack(call: Call, values: list[Array]) -> Array:
    """The operands side by side along a new axis."""
    require_same_shape(call, "values", *values)
    return np.stack(values, axis_of(call, call.attributes.int("axis"), values[0].ndim + 1))


@kernel("ParallelConcat")
def parallel_concat(call: Call, values: list[Array]) -> Array:
    """The operands, each of one row, one below the other."""
    return np.concatenate(values, 0)


@kernel("Unpack")
def unpack(call: Call, value: Array) -> Any:
    """The slices along an axis, without it."""
    axis = axis_of(call, call.attributes.int("axis"), value.ndim)
    count = call.attributes.int("num")
    call.require(value.shape[axis] == count, f"dimension {axis} must be {count}, got {value.shape[axis]}")
    return (list(np.moveaxis(value, axis, 0)),)


@kernel("Concat")
def concat(call: Call, axis: Array, values: list[Array]) -> Array:
    """The operands one behind the other along an axis."""
    return _joined(call, values, axis)


@kernel("ConcatV2")
def concat_v2(call: Call, values: list[Array], axis: Array) -> Array:
    """The same, with the axis last."""
    return _joined(call, values, axis)


def _joined(call: Call, values: list[Array], axis: Array) -> Array:
    dimension = axis_of(call, number(call, "axis", axis), values[0].ndim)
    for value in values:
        same = value.ndim == values[0].ndim and all(
            n == dimension or size == values[0].shape[n] for n, size in enumerate(value.shape)
        )
        call.require(
            same, f"shapes {list(values[0].shape)} and {list(value.shape)} differ beside dimension {dimension}"
        )
    return np.concatenate(values, dimension)


@kernel("Split")
def split(call: Call, axis: Array, value: Array) -> Any:
    """Equal parts along an axis."""
    dimension = axis_of(call, number(call, "split_dim", axis), value.ndim, "split_dim")
    count = call.attributes.int("num_split")
    call.require(value.shape[dimension] % count == 0, f"{value.shape[dimension]} cannot be split into {count} parts")
    return (np.split(value, count, dimension),)


@kernel("SplitV")
def split_v(call: Call, value: Array, sizes: Array, axis: Array) -> Any:
    """Parts of these sizes along an axis; one size may be -1."""
    dimension = axis_of(call, number(call, "split_dim", axis), value.ndim, "split_dim")
    lengths = sizes.reshape(-1).tolist()
    total = value.shape[dimension]
    call.require(len(lengths) == call.attributes.int("num_split"), f"there are {len(lengths)} sizes")
    call.require(lengths.count(-1) <= 1 and min(lengths) >= -1, f"size_splits {lengths} must not be negative")
    if -1 in lengths:
        lengths[lengths.index(-1)] = total - sum(lengths) - 1
    call.require(min(lengths) >= 0 and sum(lengths) == total, f"size_splits {sizes.tolist()} must add up to {total}")
    return (np.split(value, np.cumsum(lengths)[:-1].tolist(), dimension),)


@kernel("Tile")
def tile(call: Call, x: Array, multiples: Array) -> Array:
    """The operand repeated in each dimension."""
    call.require(multiples.shape == (x.ndim,), f"multiples must have {x.ndim} elements, got {multiples.tolist()}")
    call.require(np.all(multiples >= 0), f"multiples must not be negative, got {multiples.tolist()}")
    checked_shape(call, [int(size) * int(times) for size, times in zip(x.shape, multiples, strict=True)])
    return np.tile(x, multiples.tolist())


@kernel("Transpose", "ConjugateTranspose")
def transpose(call: Call, x: Array, perm: Array) -> Array:
    """Dimensions in the order of ``perm``."""
    call.require(perm.shape == (x.ndim,), f"perm must have {x.ndim} elements, got {perm.tolist()}")
    turned = x.transpose(axes_of(call, perm, x.ndim, "perm"))
    return np.conj(turned) if call.op == "ConjugateTranspose" and x.dtype.kind == "c" else turned


@kernel("Reverse", shape=like_first)
def reverse(call: Call, tensor: Array, dims: Array) -> Array:
    """The dimensions that ``dims`` says are true run backwards."""
    call.require(dims.shape == (tensor.ndim,), f"dims must have {tensor.ndim} elements, got {list(dims.shape)}")
    return np.flip(tensor, tuple(np.flatnonzero(dims).tolist()))


@kernel("ReverseV2", shape=like_first)
def reverse_v2(call: Call, tensor: Array, axis: Array) -> Array:
    """The dimensions named run backwards."""
    return np.flip(tensor, axes_of(call, axis, tensor.ndim))


@kernel("ReverseSequence", shape=like_first)
def reverse_sequence(call: Call, x: Array, lengths: Array) -> Array:
    """The first so many steps of each batch run backwards along ``seq_dim``."""
    steps = axis_of(call, call.attributes.int("seq_dim"), x.ndim, "seq_dim")
    batch = axis_of(call, call.attributes.int("batch_dim"), x.ndim, "batch_dim")
    call.require(steps != batch, f"seq_dim and batch_dim are both {steps}")
    call.require(lengths.shape == (x.shape[batch],), f"seq_lengths must have {x.shape[batch]} elements")
    size = x.shape[steps]
    call.require(np.all((lengths >= 0) & (lengths <= size)), f"seq_lengths must be in [0, {size}]")
    position = np.arange(size)
    counted = lengths[:, None].astype(np.int64)
    source = np.where(position < counted, counted - 1 - position, position)
    moved = np.moveaxis(x, (batch, steps), (0, 1))
    return np.moveaxis(moved[np.arange(len(lengths))[:, None], source], (0, 1), (batch, steps))


@kernel("Roll", shape=like_first)
def roll(call: Call, x: Array, shift: Array, axis: Array) -> Array:
    """Elements moved along axes, those that fall out coming in at the other end."""
    require_rank(call, "shift", shift, 0, 1)
    require_same_shape(call, "shift and axis", shift, axis)
    axes = [axis_of(call, one, x.ndim) for one in axis.reshape(-1)]
    return np.roll(x, shift.reshape(-1).tolist(), axes)


def paddings_of(call: Call, x: Array, paddings: Array) -> list[tuple[int, int]]:
    """How many elements come before and behind each dimension; fails for negative ones and too many."""
    call.require(paddings.shape == (x.ndim, 2), f"paddings must have shape [{x.ndim}, 2], got {list(paddings.shape)}")
    call.require(np.all(paddings >= 0), f"paddings must not be negative, got {paddings.tolist()}")
    pairs = [(int(before), int(behind)) for before, behind in paddings]
    checked_shape(call, [size + sum(pair) for size, pair in zip(x.shape, pairs, strict=True)])
    return pairs


@kernel("Pad")
def pad(call: Call, x: Array, paddings: Array) -> Array:
    """Zeros around."""
    return np.pad(x, paddings_of(call, x, paddings), constant_values=zero_of(x.dtype))


@kernel("PadV2")
def pad_v2(call: Call, x: Array, paddings: Array, value: Array) -> Array:
    """A value around."""
    require_rank(call, "constant_values", value, 0)
    return np.pad(x, paddings_of(call, x, paddings), constant_values=value[()])


@kernel("MirrorPad")
def mirror_pad(call: Call, x: Array, paddings: Array) -> Array:
    """Mirror images around, without (REFLECT) or with (SYMMETRIC) the element at the border."""
    pairs, mode = mirrored(call, x.shape, paddings)
    return np.pad(x, pairs, mode)  # type: ignore[call-overload,no-any-return]  # it is one of two modes


def mirrored(call: Call, shape: Shape, paddings: Array) -> tuple[list[tuple[int, int]], str]:
    """The paddings and NumPy's name for the mode; fails if a mirror image is longer than what it shows."""
    call.require(paddings.shape == (len(shape), 2), f"paddings must have shape [{len(shape)}, 2]")
    mode = call.attributes.text("mode").lower()
    pairs = [(int(before), int(behind)) for before, behind in paddings]
    for size, pair in zip(shape, pairs, strict=True):
        most = size - (mode == "reflect")
        call.require(min(pair) >= 0 and max(pair) <= max(most, 0), f"paddings must be in [0, {most}], got {list(pair)}")
    return pairs, mode


@kernel("Cast", shape=like_first)
def cast(call: Call, x: Array) -> Array:
    """The numbers in another type; of complex ones the real part. ``Truncate`` cuts digits instead of rounding."""
    dtype = call.dtype("DstT")
    if x.dtype.kind == "c" and dtype.kind not in "cb":
        x = x.real
    if call.attributes.bool("Truncate") and x.dtype in (np.float32, np.float64) and dtype.itemsize < x.dtype.itemsize:
        x = _truncated(x, dtype)
    return x.astype(dtype)


_MANTISSA = {"float32": 23, "float16": 10, "bfloat16": 7}


def _truncated(x: Array, dtype: np.dtype[Any]) -> Array:
    if dtype.name not in _MANTISSA:
        return x
    bits: Any = np.uint32 if x.dtype == np.float32 else np.uint64
    dropped = (23 if x.dtype == np.float32 else 52) - _MANTISSA[dtype.name]
    kept: Array = (x.view(bits) >> bits(dropped) << bits(dropped)).view(x.dtype)
    return kept


@kernel("Bitcast")
def bitcast(call: Call, x: Array) -> Array:
    """The same bits as another type: a larger one takes the last dimension, a smaller one adds one."""
    dtype = call.dtype("type")
    old, new = x.dtype.itemsize, dtype.itemsize
    shape: Shape = x.shape
    x = np.ascontiguousarray(x).reshape(x.shape)
    if old == new:
        return x.view(dtype) if x.ndim else x.reshape(1).view(dtype).reshape(())
    if old > new:
        return x[..., None].view(dtype)
    fits = len(shape) > 0 and shape[-1] == new // old
    call.require(fits, f"the last dimension must be {new // old}, got shape {list(shape)}")
    wide: Array = x.view(dtype)
    return wide.reshape(shape[:-1])
