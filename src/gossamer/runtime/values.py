"""Values of tensors as users give and get them: what is checked, copied and lent."""

from __future__ import annotations

import math
import weakref
from typing import Any

import numpy as np

from gossamer.arrays import ArrayLike, NDArray
from gossamer.dtypes import is_packed
from gossamer.errors import InvokeError, SizeOverflowError
from gossamer.quantization import integer_range
from gossamer.runtime.tensor import Tensor
from gossamer.schema import TensorType

NO_DATA = "Tensor data is null. Run allocate_tensors() first"

_LARGEST = (1 << 31) - 1

_FLOAT8 = (TensorType.FLOAT8_E4M3FN, TensorType.FLOAT8_E5M2)
_TYPE_OF_KIND = {"O": "STRING", "S": "STRING", "U": "STRING", "b": "BOOL"}


class View:
    """The owner of a view that `Interpreter.tensor` gave out; alive as long as any array over it."""

    __slots__ = ("__array_interface__", "__weakref__", "array")

    def __init__(self, array: NDArray[Any]) -> None:
        self.array = array
        self.__array_interface__ = array.__array_interface__


def assign(tensor: Tensor, value: ArrayLike) -> None:
    """Copy a value into a tensor: see `Interpreter.set_tensor`. Raises `ValueError`."""
    array = np.asarray(value)
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if array.dtype.kind == "S" and not array.shape:
        array = np.array(array.tobytes(), object)  # whose last NULs NumPy would leave out
    if tensor.type in _FLOAT8 and array.dtype in (np.int8, np.uint8):
        array = array.view(tensor.dtype)
    got = _tflite_type_name(array.dtype)
    expected = "INT8" if tensor.type == TensorType.INT2 else tensor.type.name
    matches = array.dtype == tensor.dtype or (tensor.type == TensorType.STRING and array.dtype.kind in "SUO")
    if matches and array.dtype == np.object_ and tensor.type == TensorType.STRING:
        odd = next((type(item) for item in array.reshape(-1) if not isinstance(item, str | bytes)), None)
        matches, got = odd is None, f"object holding {odd.__name__}" if odd else got
    if not matches:
        raise ValueError(
            f"Cannot set tensor: Got value of type {got} but expected type {expected} "
            f"for input {tensor.index}, name: {tensor.name} "
        )
    if tensor.type in (TensorType.INT4, TensorType.UINT4) and array.size == math.prod(tensor.shape):
        array = array.reshape(tensor.shape)
    if array.ndim != len(tensor.shape):
        raise ValueError(
            f"Cannot set tensor: Dimension mismatch. Got {array.ndim} but expected {len(tensor.shape)} "
            f"for input {tensor.index}."
        )
    for axis, (size, wanted) in enumerate(zip(array.shape, tensor.shape, strict=True)):
        if size != wanted:
            raise ValueError(
                f"Cannot set tensor: Dimension mismatch. Got {size} but expected {wanted} "
                f"for dimension {axis} of input {tensor.index}."
            )
    if tensor.is_constant:
        raise ValueError(f"Cannot set tensor: {tensor.index}, name: {tensor.name}, is a constant of the model")
    if not tensor.has_data and not tensor.has_objects:
        raise ValueError("Cannot set tensor: Tensor is unallocated. Try calling allocate_tensors() first")
    if is_packed(tensor.type) and array.size:
        low, high = integer_range(tensor.type)
        if array.min() < low or array.max() > high:
            raise ValueError(f"Cannot set tensor: {tensor.type.name} holds {low} to {high}")
    tensor.assign(array)


def readable(tensor: Tensor) -> NDArray[Any]:
    """The value of a tensor where it lies. Raises `ValueError` if it has none."""
    tensor.make_readable()
    if not tensor.has_data or (tensor.postponed and tensor.awaited):
        raise ValueError(NO_DATA)
    return tensor.array()


def copied(tensor: Tensor) -> NDArray[Any]:
    """A copy of the value of a tensor: see `Interpreter.get_tensor`. Raises `ValueError` and `InvokeError`."""
    try:
        return _returned(np.array(readable(tensor)))
    except MemoryError as error:
        raise InvokeError(f'tensor {tensor.index} "{tensor.name}": not enough memory for a copy: {error}') from error


def lent(tensor: Tensor, held: set[weakref.ref[View]]) -> NDArray[Any]:
    """A live view of a tensor, which is among those that are held as long as it lives: see `Interpreter.tensor`."""
    array = readable(tensor)
    if array.dtype == np.object_:
        return array
    if not array.shape:
        return _returned(array)
    if array.dtype.isbuiltin != 1:
        return np.asarray(array)
    owner = View(array)
    held.add(weakref.ref(owner, held.discard))
    live: NDArray[Any] = np.asarray(owner)
    return live


def shape_of(sizes: ArrayLike) -> tuple[int, ...]:
    """The shape that somebody wants for a tensor. Raises `ValueError` for what is no list of integers, and
    `SizeOverflowError` for more than 32 bits."""
    if isinstance(sizes, (list, tuple)) and all(type(size) is int and abs(size) <= _LARGEST for size in sizes):
        return tuple(sizes)
    try:
        shape = np.array(sizes, dtype=np.int64)
    except OverflowError:
        raise SizeOverflowError(f"Shape should hold 32-bit integers, got {sizes!r}.") from None
    if (shape != shape.astype(np.int32)).any():
        raise SizeOverflowError(f"Shape should hold 32-bit integers, got {sizes!r}.")
    if shape.ndim != 1:
        raise ValueError(f"Shape should be 1D instead of {shape.ndim}.")
    return tuple(shape.tolist())


def _returned(array: NDArray[Any]) -> NDArray[Any]:
    # As functions of NumPy and LiteRT do: an array without dimensions is returned as a scalar, unless it is a string.
    scalar: NDArray[Any] = array if array.dtype == np.object_ else array[()]
    return scalar


def _tflite_type_name(dtype: np.dtype[Any]) -> str:
    name = _TYPE_OF_KIND.get(dtype.kind, dtype.name.upper())
    return name if name in TensorType.__members__ else "NOTYPE"
