"""Parts of arrays by their bounds."""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer.flex.kernels import Array, Call, kernel, like_first
from gossamer.flex.kernels._checks import checked_shape, require_same_shape


@kernel("Slice")
def slice_(call: Call, x: Array, begin: Array, size: Array) -> Array:
    """``size`` elements of each dimension from ``begin``; a size of -1 takes all that follow."""
    require_same_shape(call, "begin and size", begin, size)
    call.require(begin.shape == (x.ndim,), f"begin must have {x.ndim} elements, got shape {list(begin.shape)}")
    parts = []
    for start, length, limit in zip(begin.tolist(), size.tolist(), x.shape, strict=True):
        count = limit - start if length == -1 else length
        call.require(
            0 <= start <= limit and 0 <= count <= limit - start,
            f"{length} elements from {start} are not within dimension {limit}",
        )
        parts.append(slice(start, start + count))
    return x[tuple(parts)]


def strided_index(call: Call, begin: Array, end: Array, strides: Array) -> tuple[Any, ...]:
    """NumPy's index for a strided slice with the masks among the attributes, which mean the same there."""
    require_same_shape(call, "begin, end and strides", begin, end, strides)
    call.require(begin.ndim == 1, f"begin must be a vector, got shape {list(begin.shape)}")
    masks = {
        name: call.attributes.int(f"{name}_mask") for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")
    }
    index: list[Any] = []
    for n, (first, last, step) in enumerate(zip(begin.tolist(), end.tolist(), strides.tolist(), strict=True)):
        marked = {name for name, mask in masks.items() if mask >> n & 1}
        if "ellipsis" in marked:
            call.require(Ellipsis not in index, "there are several ellipses")
            index.append(Ellipsis)
        elif "new_axis" in marked:
            index.append(None)
        elif "shrink_axis" in marked:
            call.require(step > 0, f"the stride of a single element must be positive, got {step}")
            index.append(first)
        else:
            call.require(step != 0, "strides must not be 0")
            index.append(slice(None if "begin" in marked else first, None if "end" in marked else last, step))
    return tuple(index)


@kernel("StridedSlice")
def strided_slice(call: Call, x: Array, begin: Array, end: Array, strides: Array) -> Any:
    """Elements from ``begin`` to ``end`` by ``strides``, with new and dropped dimensions."""
    return x[strided_index(call, begin, end, strides)]


@kernel("StridedSliceGrad")
def strided_slice_grad(call: Call, shape: Array, begin: Array, end: Array, strides: Array, dy: Array) -> Array:
    """``dy`` where the slice was taken from, zeros elsewhere."""
    whole = np.zeros(checked_shape(call, shape), dy.dtype)
    index = strided_index(call, begin, end, strides)
    call.require(whole[index].shape == dy.shape, f"dy must have shape {list(whole[index].shape)}, got {list(dy.shape)}")
    whole[index] = dy
    return whole


@kernel("TensorStridedSliceUpdate", shape=like_first)
def tensor_strided_slice_update(call: Call, x: Array, begin: Array, end: Array, strides: Array, value: Array) -> Array:
    """The operand with another value in the slice."""
    result = x.copy()
    result[strided_index(call, begin, end, strides)] = value
    return result
