"""The name of ``ai_edge_litert.tensor_buffer``: memory for an input or output of a compiled model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.errors import CompiledModelError

_DTYPES = (
    "bfloat16",
    "float8_e4m3fn",
    "float8_e5m2",
    "float32",
    "float16",
    "int32",
    "int8",
    "uint8",
    "bool",
)
"""Those in which LiteRT writes and reads; what is written and read are bytes, whatever the tensor's own type."""

_ALIGNMENT = 64


class HostMemory:
    """The bytes of a buffer, the name of its element type, and its shape."""

    def __init__(self, content: NDArray[np.uint8], dtype: str, shape: Sequence[int]) -> None:
        self.content = content
        self.dtype = dtype
        self.shape = tuple(shape)


class TensorBuffer:
    """Memory that `write` fills, a model reads or fills, and `read` copies; made by a
    `gossamer.compiled_model.CompiledModel`, or over an array by `create_from_host_memory`."""

    def __init__(self, capsule: HostMemory, environment: object = None) -> None:
        self._capsule: HostMemory | None = capsule
        self._environment = environment

    def __repr__(self) -> str:
        """``<TensorBuffer float32[1, 4]>``."""
        memory = self._capsule
        what = f"{memory.dtype}{list(memory.shape)}" if memory is not None else "destroyed"
        return f"<{type(self).__name__} {what}>"

    @classmethod
    def create_from_host_memory(cls, data_array: NDArray[Any]) -> TensorBuffer:
        """A buffer of one dimension over the memory of an array, or over a copy if that is not aligned to 64 bytes.

        Raises `ValueError` for what is no array, not contiguous, or of a dtype that buffers do not have.
        """
        dtype = _checked(data_array)
        if not data_array.flags.c_contiguous:
            raise ValueError("data_array must be C-contiguous for zero-copy host-memory binding")
        content = data_array.reshape(-1).view(np.uint8)
        if data_array.ctypes.data % _ALIGNMENT:
            content = content.copy()
        return cls(HostMemory(content, dtype, (data_array.size,)))

    def write(self, data_array: NDArray[Any]) -> None:
        """Copy the bytes of an array to the beginning.

        Raises `ValueError` as `create_from_host_memory` does, `CompiledModelError`, a `RuntimeError`, for too many.
        """
        _checked(data_array)
        content = np.ascontiguousarray(data_array).reshape(-1).view(np.uint8)
        memory = self.capsule.content
        if content.size > memory.size:
            raise CompiledModelError("WriteTensorBuffer: source buffer is larger than the tensor buffer")
        memory[: content.size] = content

    def read(self, num_elements: int, output_dtype: Any) -> NDArray[Any]:
        """A copy of so many elements from the beginning, as an array of one dimension.

        Raises `ValueError` for a dtype that buffers do not have, `CompiledModelError`, a `RuntimeError`, for too many.
        """
        dtype = _known(output_dtype)
        memory = self.capsule.content
        if num_elements * dtype.itemsize > memory.size:
            raise CompiledModelError("ReadTensorToBuffer: destination buffer is larger than the tensor buffer")
        return memory[: num_elements * dtype.itemsize].copy().view(dtype)

    def get_tensor_details(self) -> dict[str, Any]:
        """Its ``dtype``, by name, and ``shape``."""
        return {"dtype": self.capsule.dtype, "shape": list(self.capsule.shape)}

    def destroy(self) -> None:
        """Let go of the memory. It can be done again, but nothing else."""
        self._capsule = self._environment = None

    @property
    def capsule(self) -> HostMemory:
        """The memory. Raises `ValueError` after `destroy`."""
        if self._capsule is None:
            raise ValueError("TensorBuffer has been destroyed")
        return self._capsule


def _checked(array: NDArray[Any]) -> str:
    if not isinstance(array, np.ndarray):
        raise ValueError("data_array must be a NumPy array")
    return _known(array.dtype).name


def _known(dtype: Any) -> np.dtype[Any]:
    try:
        known: np.dtype[Any] = np.dtype(dtype)
    except TypeError as error:
        raise ValueError(f"Unsupported dtype: {dtype}") from error
    if known.name not in _DTYPES:
        raise ValueError(f"Unsupported dtype: {dtype}")
    return known
