"""Maps of tensors in variants (TensorFlow's map_kernels.h): values, so that whoever adds an entry has another map."""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer.flex.kernels import Array, Call, kernel
from gossamer.flex.objects import TensorMap, boxed, map_key


@kernel("EmptyTensorMap")
def empty(call: Call) -> TensorMap:
    """A map without entries."""
    return TensorMap()


@kernel("TensorMapSize")
def size(call: Call, handle: Any) -> Array:
    """How many entries there are."""
    return np.array(len(_map(call, handle).entries))


@kernel("TensorMapHasKey")
def has_key(call: Call, handle: Any, key: Any) -> Array:
    """Whether there is an entry."""
    return np.array(map_key(boxed(key)) in _map(call, handle).entries)


@kernel("TensorMapLookup")
def lookup(call: Call, handle: Any, key: Any) -> Array:
    """The value of a key, which must be there."""
    entry = _map(call, handle).entries.get(map_key(boxed(key)))
    if entry is None:
        call.fail("the map has no such key")
    value = entry[1]
    call.require(
        value.dtype == call.dtype("value_dtype"), f"the value is {value.dtype}, {call.dtype('value_dtype')} is wanted"
    )
    return value


@kernel("TensorMapInsert")
def insert(call: Call, handle: Any, key: Any, value: Any) -> TensorMap:
    """The map with one more entry, or another value of a key."""
    entry = boxed(key), boxed(value)
    return TensorMap({**_map(call, handle).entries, map_key(entry[0]): entry})


@kernel("TensorMapErase")
def erase(call: Call, handle: Any, key: Any) -> TensorMap:
    """The map without a key, which must be there."""
    entries, gone = dict(_map(call, handle).entries), map_key(boxed(key))
    call.require(gone in entries, "the map has no such key")
    del entries[gone]
    return TensorMap(entries)


@kernel("TensorMapStackKeys")
def stack_keys(call: Call, handle: Any) -> Array:
    """All keys, stacked: in the order in which they came (in TensorFlow in no order)."""
    keys = [key for key, _ in _map(call, handle).entries.values()]
    call.require(keys, "the map is empty")
    call.require(len({key.shape for key in keys}) == 1, "the keys have different shapes")
    call.require(
        all(key.dtype == call.dtype("key_dtype") for key in keys), f"not all keys are {call.dtype('key_dtype')}"
    )
    return np.stack(keys)


def _map(call: Call, handle: Any) -> TensorMap:
    if not isinstance(handle, TensorMap):
        call.fail(f"the variant must hold a map of tensors, it holds {type(handle).__name__}")
    return handle
