"""Lists of tensors in variants (TensorFlow's list_kernels.h): values, who sets an element has another one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from gossamer.flex.kernels import Array, Call, kernel
from gossamer.flex.objects import (
    MOST_ITEMS,
    NO_SHAPE,
    Partial,
    TensorList,
    boxed,
    fits,
    known,
    merged,
    partial_shape,
    require_item,
    require_same_type,
    shown,
    zeros,
)
from gossamer.records import replace


@kernel("EmptyTensorList")
def empty(call: Call, element_shape: Array, max_num_elements: Array) -> TensorList:
    """A list without elements, of which there may be ``max_num_elements``, or any number if that is -1."""
    type, shape = call.attributes.type("element_dtype"), partial_shape(call, element_shape)
    return TensorList(type, shape, (), int(max_num_elements.item()))


@kernel("TensorListReserve")
def reserve(call: Call, element_shape: Array, num_elements: Array) -> TensorList:
    """A list of elements that nobody set."""
    count = _count(call, num_elements)
    type, shape = call.attributes.type("element_dtype"), partial_shape(call, element_shape)
    return TensorList(type, shape, (None,) * count)


@kernel("TensorListLength")
def length(call: Call, handle: Any) -> Array:
    """How many elements there are."""
    return np.array(len(_list(call, handle).items))


@kernel("TensorListElementShape")
def element_shape(call: Call, handle: Any) -> Array:
    """The shape that elements must have, -1 for what is not known."""
    shape = _list(call, handle).shape
    return np.array(-1 if shape is None else [-1 if size is None else size for size in shape])


@kernel("TensorListResize")
def resize(call: Call, handle: Any, size: Array) -> TensorList:
    """The first ``size`` elements; those that there are not yet, nobody set."""
    return _resized(_list(call, handle), _count(call, size))


@kernel("TensorListPushBack")
def push_back(call: Call, handle: Any, tensor: Any) -> TensorList:
    """One more element at the end."""
    held, item = _list(call, handle), boxed(tensor)
    require_item(call, item, held.type, held.shape, call.attributes.type("element_dtype"))
    call.require(held.most < 0 or len(held.items) < held.most, f"the list is full: it has {held.most} elements")
    return replace(held, items=(*held.items, item))


@kernel("TensorListPushBackBatch")
def push_back_batch(call: Call, handles: Any, tensor: Array) -> Array:
    """To each list of a tensor of lists, a slice of ``tensor`` as one more element."""
    lists = boxed(handles)
    call.require(
        lists.shape == tensor.shape[: lists.ndim], f"tensor has shape {list(tensor.shape)}, lists {list(lists.shape)}"
    )
    pushed = np.empty(lists.shape, object)
    for place in np.ndindex(lists.shape):
        pushed[place] = push_back(call, lists[place], np.asarray(tensor[place]))
    return pushed


@kernel("TensorListPopBack")
def pop_back(call: Call, handle: Any, element_shape: Array) -> tuple[TensorList, Array]:
    """The list without its last element, and that."""
    held = _list(call, handle)
    call.require(held.items, "the list is empty")
    return replace(held, items=held.items[:-1]), _item(call, held, held.items[-1], element_shape)


@kernel("TensorListGetItem")
def get_item(call: Call, handle: Any, index: Array, element_shape: Array) -> Array:
    """An element; one that nobody set is zeros, if its shape is known."""
    held = _list(call, handle)
    return _item(call, held, held.items[_index(call, index, len(held.items))], element_shape)


@kernel("TensorListSetItem")
def set_item(call: Call, handle: Any, index: Array, item: Any) -> TensorList:
    """The list with another element at ``index``."""
    held, value = _list(call, handle), boxed(item)
    require_item(call, value, held.type, held.shape, call.attributes.type("element_dtype"))
    if call.attributes.bool("resize_if_index_out_of_bounds") and index.item() >= len(held.items):
        call.require(index.item() < MOST_ITEMS, f"index {index.item()} is too large")
        held = _resized(held, index.item() + 1)
    at = _index(call, index, len(held.items))
    return replace(held, items=(*held.items[:at], value, *held.items[at + 1 :]))


@kernel("TensorListStack")
def stack(call: Call, handle: Any, element_shape: Array) -> Array:
    """All elements, one behind the other along a new first dimension."""
    held = _list(call, handle)
    wanted = call.attributes.int("num_elements")
    call.require(wanted < 0 or wanted == len(held.items), f"{wanted} elements are expected, got {len(held.items)}")
    return _stacked(call, held, held.items, element_shape)


@kernel("TensorListGather")
def gather(call: Call, handle: Any, indices: Array, element_shape: Array) -> Array:
    """The elements at ``indices``, stacked."""
    held = _list(call, handle)
    chosen = [held.items[_index(call, one, len(held.items))] for one in indices.reshape(-1)]
    return _stacked(call, held, chosen, element_shape)


@kernel("TensorListFromTensor")
def from_tensor(call: Call, tensor: Array, element_shape: Array) -> TensorList:
    """The slices of a tensor along its first dimension."""
    call.require(tensor.ndim, "tensor must have a dimension along which it is taken apart")
    return _made(call, np.array(tensor), element_shape)


@kernel("TensorListScatter", "TensorListScatterV2")
def scatter(
    call: Call, tensor: Array, indices: Array, element_shape: Array, num_elements: Array | None = None
) -> TensorList:
    """A list with the slices of ``tensor`` at ``indices``: ``num_elements`` long, or as long as needed."""
    slices = _made(call, np.array(tensor), element_shape)
    count = -1 if num_elements is None else int(num_elements.item())
    call.require(count >= -1, f"num_elements must be -1 or more, got {count}")
    return _scattered(call, replace(slices, items=(None,) * max(count, 0)), slices.items, indices, count < 0)


@kernel("TensorListScatterIntoExistingList")
def scatter_into(call: Call, handle: Any, tensor: Array, indices: Array) -> TensorList:
    """The list with the slices of ``tensor`` at ``indices``."""
    held, values = _list(call, handle), np.array(tensor)
    call.require(values.ndim, "tensor must have a dimension along which it is taken apart")
    slices = [_slice(values, at) for at in range(len(values))]
    for item in slices[:1]:
        require_item(call, item, held.type, held.shape, call.attributes.type("element_dtype"))
    return _scattered(call, held, slices, indices, True)


@kernel("TensorListSplit")
def split(call: Call, tensor: Array, element_shape: Array, lengths: Array) -> TensorList:
    """A tensor cut along its first dimension into pieces of these lengths."""
    call.require(tensor.ndim and lengths.ndim == 1, "tensor must have a dimension, and lengths must be a vector")
    sizes, shape = lengths.tolist(), partial_shape(call, element_shape)
    call.require(all(size >= 0 for size in sizes), "lengths must not be negative")
    call.require(sum(sizes) == tensor.shape[0], f"lengths sum to {sum(sizes)}, tensor has {tensor.shape[0]} rows")
    call.require(
        shape is None or (shape and fits(tensor.shape[1:], shape[1:])),
        f"elements have shape {shown(shape)}, got pieces of {list(tensor.shape)}",
    )
    pieces = np.split(np.array(tensor), np.cumsum(sizes)[:-1]) if sizes else []
    return TensorList(call.attributes.type("element_dtype"), shape, tuple(pieces))


@kernel("TensorListConcat", "TensorListConcatV2")
def concat(
    call: Call, handle: Any, element_shape: Array | None = None, leading_dims: Array | None = None
) -> tuple[Array, Array]:
    """All elements one behind the other along their first dimension, and how long each is there."""
    held = _list(call, handle)
    require_same_type(call, call.attributes.type("element_dtype"), held.type)
    given: Partial = (
        call.attributes.shape("element_shape") if element_shape is None else partial_shape(call, element_shape)
    )
    shape = merged(held.shape, given)
    call.require(shape is not NO_SHAPE, f"elements have shape {shown(held.shape)}, {shown(given)} is wanted")
    call.require(shape is None or shape, "elements without dimensions cannot be joined")
    for item in held.items:
        if item is not None:
            call.require(item.ndim, "elements without dimensions cannot be joined")
            rest = merged(item.shape[1:], None if shape is None else shape[1:])
            call.require(rest is not NO_SHAPE, f"an element has shape {list(item.shape)}, others {shown(shape)}")
            shape = ((None if shape is None else shape[0]), *(rest or ()))
    tail = known(None if shape is None else shape[1:])
    if tail is None:
        call.fail(f"all but the first size must be known of elements that nobody set, got {shown(shape)}")
    first = None if shape is None else shape[0]
    pieces = []
    for at, item in enumerate(held.items):
        if item is None:
            rows = first if first is not None else _leading(call, leading_dims, at)
            item = zeros(call, held.type, (rows, *tail))
        call.require(first is None or item.shape[0] == first, f"elements must have {first} rows, got {item.shape[0]}")
        pieces.append(item)
    lengths = np.array([len(piece) for piece in pieces], np.int64)
    return np.concatenate([zeros(call, held.type, (0, *tail)), *pieces]), lengths


@kernel("TensorListConcatLists")
def concat_lists(call: Call, a: Any, b: Any) -> Any:
    """The elements of one list behind those of another; tensors of lists in pairs."""
    left, right = boxed(a), boxed(b)
    call.require(left.shape == right.shape, f"lists have shapes {list(left.shape)} and {list(right.shape)}")
    joined = np.empty(left.shape, object)
    for place in np.ndindex(left.shape):
        first, second = _list(call, left[place]), _list(call, right[place])
        for held in (first, second):
            require_same_type(call, call.attributes.type("element_dtype"), held.type)
        call.require(
            first.shape == second.shape, f"elements have shapes {shown(first.shape)} and {shown(second.shape)}"
        )
        joined[place] = replace(first, items=first.items + second.items)
    return joined


def _list(call: Call, handle: Any) -> TensorList:
    if not isinstance(handle, TensorList):
        call.fail(f"the variant must hold a list of tensors, it holds {type(handle).__name__}")
    return handle


def _count(call: Call, number: Array) -> int:
    count = int(number.item())
    call.require(0 <= count <= MOST_ITEMS, f"a list may have 0 to {MOST_ITEMS} elements, got {count}")
    return count


def _index(call: Call, index: Array, count: int) -> int:
    at = int(index.item())
    call.require(0 <= at < count, f"index {at} is not among the {count} elements of the list")
    return at


def _resized(held: TensorList, size: int) -> TensorList:
    return replace(held, items=held.items[:size] + (None,) * (size - len(held.items)))


def _item(call: Call, held: TensorList, item: Array | None, element_shape: Array) -> Array:
    require_same_type(call, call.attributes.type("element_dtype"), held.type)
    wanted = partial_shape(call, element_shape)
    if item is not None:
        call.require(fits(item.shape, wanted), f"the element has shape {list(item.shape)}, {shown(wanted)} is wanted")
        return item
    return zeros(call, held.type, _item_shape(call, held, held.items, wanted))


def _item_shape(call: Call, held: TensorList, items: Iterable[Array | None], wanted: Partial) -> tuple[int, ...]:
    """The shape of elements that nobody set: what the list, the operator and the other elements say."""
    shape = merged(held.shape, wanted)
    for item in items:
        if shape is NO_SHAPE or known(shape) is not None:
            break
        if item is not None:
            shape = merged(shape, item.shape)
    call.require(shape is not NO_SHAPE, f"elements have shape {shown(held.shape)}, {shown(wanted)} is wanted")
    sizes = known(shape)
    if sizes is None:
        call.fail(f"the shape of elements that nobody set must be known, got {shown(shape)}")
    return sizes


def _stacked(call: Call, held: TensorList, items: Sequence[Array | None], element_shape: Array) -> Array:
    require_same_type(call, call.attributes.type("element_dtype"), held.type)
    shape = _item_shape(call, held, items, partial_shape(call, element_shape))
    result = zeros(call, held.type, (len(items), *shape))
    for at, item in enumerate(items):
        if item is not None:
            call.require(item.shape == shape, f"element {at} has shape {list(item.shape)}, others {list(shape)}")
            result[at] = item if item.dtype != object or item.ndim else item.item()
    return result


def _made(call: Call, tensor: Array, element_shape: Array) -> TensorList:
    shape = partial_shape(call, element_shape)
    call.require(
        tensor.ndim and fits(tensor.shape[1:], shape),
        f"elements have shape {shown(shape)}, got a tensor of shape {list(tensor.shape)}",
    )
    return TensorList(
        call.attributes.type("element_dtype"), shape, tuple([_slice(tensor, at) for at in range(len(tensor))])
    )


def _slice(tensor: Array, at: int) -> Array:
    """A slice as an array, also of a vector of strings, of which NumPy would give the string."""
    return tensor[at : at + 1].reshape(tensor.shape[1:])


def _scattered(call: Call, held: TensorList, slices: Sequence[Array | None], indices: Array, grows: bool) -> TensorList:
    places = indices.reshape(-1).tolist()
    call.require(len(places) == len(slices), f"there are {len(places)} indices for {len(slices)} slices")
    items = list(held.items)
    for place, item in zip(places, slices, strict=True):
        call.require(place >= 0, f"index {place} is negative")
        if place >= len(items):
            call.require(grows and place < MOST_ITEMS, f"index {place} is not among the {len(items)} elements")
            items.extend([None] * (place + 1 - len(items)))
        items[place] = item
    return replace(held, items=tuple(items))


def _leading(call: Call, leading_dims: Array | None, at: int) -> int:
    if leading_dims is None or at >= leading_dims.size or leading_dims.reshape(-1)[at] < 0:
        call.fail(f"it is not known how many rows element {at} has, which nobody set")
    return int(leading_dims.reshape(-1)[at])
