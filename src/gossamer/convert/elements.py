"""Elements and shapes of stored tensors, whatever format they are stored in."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.errors import ConvertError

MAX_RANK = 32
"""Dimensions of an array: what every NumPy that is supported can have."""

MAX_EXPANDED = 1 << 28
"""Bytes of an array that a file describes by fewer bytes than it has, where it takes memory."""


def element_dtype(name: str) -> np.dtype[Any]:
    """The dtype with this name, of NumPy or of ``ml_dtypes``. Raises `ConvertError` if the latter is too old for it."""
    if name.startswith(("bfloat", "float8_", "float4_")):
        import ml_dtypes

        if not hasattr(ml_dtypes, name):
            raise ConvertError(f"elements are {name}, which ml_dtypes {ml_dtypes.__version__} does not have")
        dtype: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
        return dtype
    return np.dtype(name)


def known_shape(sizes: Iterable[int], dtype: np.dtype[Any], what: str) -> tuple[int, ...]:
    """The shape, if an array can have it. Raises `ConvertError`; ``what`` names the tensor."""
    shape = tuple(sizes)
    if any(size < 0 for size in shape):
        raise ConvertError(f"{what} has values, but not all sizes of its shape {list(shape)}")
    if len(shape) > MAX_RANK:
        raise ConvertError(f"{what} has {len(shape)} dimensions; at most {MAX_RANK} can be had")
    if math.prod([size for size in shape if size]) * dtype.itemsize >= 1 << 63:  # as NumPy counts, zeros apart
        raise ConvertError(f"{what} has a shape {list(shape)} that no memory holds")
    return shape


def from_bytes(raw: memoryview, dtype: np.dtype[Any], shape: tuple[int, ...], what: str) -> NDArray[Any]:
    """A view of little-endian bytes. Raises `ConvertError` if they are more or less than the shape takes."""
    if len(raw) != math.prod(shape) * dtype.itemsize:
        raise ConvertError(
            f"{what} has {len(raw)} bytes; {dtype.name}{list(shape)} takes {math.prod(shape) * dtype.itemsize}"
        )
    return np.frombuffer(raw, dtype).reshape(shape)


def of_strings(values: Iterable[bytes]) -> NDArray[Any]:
    """A 1-D array of ``bytes`` objects."""
    items = list(values)
    array = np.empty(len(items), object)
    array[:] = items
    return array


def repeat_last(values: NDArray[Any], shape: tuple[int, ...], what: str) -> NDArray[Any]:
    """The values in this shape, the last one repeated as often as it takes; zeros if there are none.

    A single value becomes a read-only array without memory of its own. Raises `ConvertError` if there are more values
    than the shape has elements, or the array would take more than `MAX_EXPANDED` bytes.
    """
    count = math.prod(shape)
    if values.size == count:
        return values.reshape(shape)
    if not values.size:
        values = of_strings([b""]) if values.dtype.hasobject else np.zeros(1, values.dtype)
    if values.size > max(count, 1):
        raise ConvertError(f"{what} has {values.size} values; the shape {list(shape)} has {count} elements")
    if values.size == 1 or not count:
        return np.broadcast_to(values[:1].reshape(()), shape)
    if count * values.itemsize > MAX_EXPANDED:
        raise ConvertError(
            f"{what} repeats the last of {values.size} values to {count * values.itemsize} bytes; "
            f"at most {MAX_EXPANDED} are allowed"
        )
    array = np.empty(count, values.dtype)
    array[: values.size] = values
    array[values.size :] = values[-1]
    array.flags.writeable = False
    return array.reshape(shape)


BAND = 16
"""Columns that are copied at once: of 4-byte numbers, what a line of the cache holds."""

LARGE = 1 << 18
"""Elements of a matrix that the cache does not hold."""


def in_order(array: NDArray[Any]) -> NDArray[Any]:
    """The elements in the order of their indices: the array itself, or a copy.

    Large weights, whose last axis has become the first, are copied by bands of columns: whole rows would be read across
    all of the memory, again and again.
    """
    if array.flags.c_contiguous or array.size < LARGE:
        return np.ascontiguousarray(array)
    rows = array.reshape(len(array), -1)
    if not np.may_share_memory(rows, array):
        return rows.reshape(array.shape)
    copy = np.empty(rows.shape, array.dtype)
    for start in range(0, rows.shape[1], BAND):
        copy[:, start : start + BAND] = rows[:, start : start + BAND]
    return copy.reshape(array.shape)
