"""Arrays of tensors behind resources (TensorFlow's tensor_array.h): each element is written once.

``flow`` is a number that says nothing: it is handed on so that operators run in order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer.flex.kernels import Array, Call, kernel
from gossamer.flex.objects import (
    MOST_ITEMS,
    NO_SHAPE,
    TensorArray,
    boxed,
    fits,
    found,
    fresh,
    known,
    merged,
    require_item,
    require_same_type,
    shown,
    zeros,
)


@kernel("TensorArrayV3")
def tensor_array(call: Call, size: Array) -> tuple[Array, Array]:
    """An array of ``size`` elements that nobody wrote."""
    count = int(size.item())
    call.require(0 <= count <= MOST_ITEMS, f"an array may have 0 to {MOST_ITEMS} elements, got {count}")
    attributes = call.attributes
    made = TensorArray(
        attributes.type("dtype"),
        attributes.shape("element_shape"),
        [None] * count,
        set(),
        grows=attributes.bool("dynamic_size"),
        clears=attributes.bool("clear_after_read"),
        has_one_shape=attributes.bool("identical_element_shapes"),
    )
    return np.array(fresh(call, made)), np.zeros((), np.float32)


@kernel("TensorArrayWriteV3")
def write(call: Call, handle: int, index: Array, value: Any, flow: Array) -> Array:
    """Set an element."""
    _write(call, found(call, handle, TensorArray), int(index.item()), boxed(value), "T")
    return flow


@kernel("TensorArrayReadV3")
def read(call: Call, handle: int, index: Array, flow: Array) -> Array:
    """An element; one that nobody wrote is zeros, if its shape is known."""
    return _read(call, found(call, handle, TensorArray), int(index.item()))


@kernel("TensorArrayGatherV3")
def gather(call: Call, handle: int, indices: Array, flow: Array) -> Array:
    """The elements at ``indices``, stacked."""
    array = found(call, handle, TensorArray)
    places = indices.reshape(-1).tolist()
    if not places:
        require_same_type(call, call.attributes.type("dtype"), array.type)
        shape = known(merged(array.shape, call.attributes.shape("element_shape")))
        if shape is None:
            call.fail(f"the shape of no elements must be known, got {shown(array.shape)}")
        return zeros(call, array.type, (0, *shape))
    items = [_read(call, array, place) for place in places]
    wanted = call.attributes.shape("element_shape")
    for item in items:
        call.require(item.shape == items[0].shape, f"elements have shapes {items[0].shape} and {item.shape}")
        call.require(fits(item.shape, wanted), f"elements have shape {list(item.shape)}, {shown(wanted)} is wanted")
    return np.stack(items)


@kernel("TensorArrayScatterV3")
def scatter(call: Call, handle: int, indices: Array, value: Array, flow: Array) -> Array:
    """Set the elements at ``indices`` to the slices of ``value``."""
    array, places = found(call, handle, TensorArray), indices.reshape(-1).tolist()
    call.require(
        value.ndim and len(places) == len(value), f"{len(places)} indices are given for a value of {list(value.shape)}"
    )
    for at, place in enumerate(places):
        _write(call, array, place, value[at : at + 1].reshape(value.shape[1:]).copy(), "T")
    return flow


@kernel("TensorArraySplitV3")
def split(call: Call, handle: int, value: Array, lengths: Array, flow: Array) -> Array:
    """Set all elements to pieces of ``value``, of these lengths along its first dimension."""
    array, sizes = found(call, handle, TensorArray), lengths.reshape(-1).tolist()
    call.require(value.ndim and all(size >= 0 for size in sizes), "value must have rows, and lengths not be negative")
    call.require(sum(sizes) == len(value), f"lengths sum to {sum(sizes)}, value has {len(value)} rows")
    call.require(
        len(sizes) == len(array.items) or (array.grows and len(sizes) >= len(array.items)),
        f"{len(sizes)} lengths are given for an array of {len(array.items)} elements",
    )
    ends = np.cumsum([0, *sizes], dtype=np.int64)
    for at in range(len(sizes)):
        _write(call, array, at, np.array(value[ends[at] : ends[at + 1]]), "T")
    return flow


@kernel("TensorArrayConcatV3")
def concat(call: Call, handle: int, flow: Array) -> tuple[Array, Array]:
    """All elements one behind the other along their first dimension, and how long each is there."""
    array = found(call, handle, TensorArray)
    require_same_type(call, call.attributes.type("dtype"), array.type)
    rest = call.attributes.shape("element_shape_except0")
    if not array.items:
        sizes = known(rest)
        if sizes is None:
            call.fail(f"the shape of no elements must be known but for its first size, got {shown(rest)}")
        return zeros(call, array.type, (0, *sizes)), np.zeros(0, np.int64)
    items = [_read(call, array, at) for at in range(len(array.items))]
    for item in items:
        call.require(
            item.ndim and item.shape[1:] == items[0].shape[1:] and fits(item.shape[1:], rest),
            f"elements of shapes {items[0].shape} and {item.shape} cannot be joined to {shown(rest)}",
        )
    return np.concatenate(items), np.array([len(item) for item in items])


@kernel("TensorArraySizeV3")
def size(call: Call, handle: int, flow: Array) -> Array:
    """How many elements there are."""
    return np.array(len(found(call, handle, TensorArray).items))


@kernel("TensorArrayCloseV3")
def close(call: Call, handle: int) -> None:
    """Forget the array."""
    found(call, handle, TensorArray)
    del call.resources.objects[handle]


def _write(call: Call, array: TensorArray, index: int, value: Array, type: str) -> None:
    require_item(call, value, array.type, array.shape, call.attributes.type(type))
    if array.grows and len(array.items) <= index < MOST_ITEMS:
        array.items.extend([None] * (index + 1 - len(array.items)))
    call.require(0 <= index < len(array.items), f"index {index} is not among the {len(array.items)} elements")
    call.require(array.items[index] is None and index not in array.is_read, f"element {index} has been written already")
    array.items[index] = value
    if array.has_one_shape:
        array.shape = merged(array.shape, value.shape)


def _read(call: Call, array: TensorArray, index: int) -> Array:
    require_same_type(call, call.attributes.type("dtype"), array.type)
    call.require(0 <= index < len(array.items), f"index {index} is not among the {len(array.items)} elements")
    call.require(index not in array.is_read, f"element {index} has been read, and was cleared")
    item = array.items[index]
    if item is None:
        shape = merged(
            array.shape, call.attributes.shape("element_shape") if "element_shape" in call.attributes else None
        )
        sizes = known(shape)
        if shape is NO_SHAPE or sizes is None:
            call.fail(f"element {index} has not been written, and its shape is not known: {shown(shape)}")
        item = zeros(call, array.type, sizes)
    if array.clears:
        array.items[index] = None
        array.is_read.add(index)
    return item
