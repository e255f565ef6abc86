"""Resource variables on a device: a fixed number of them, in the arena (MicroResourceVariables)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.errors import InvokeError, PrepareError
from gossamer.micro import structs
from gossamer.micro.abi import Array
from gossamer.micro.allocator import Memory, MicroAllocator
from gossamer.micro.tensor import EvalTensor
from gossamer.schema.enums import TensorType


class _Variable:
    def __init__(self, container: str, shared_name: str) -> None:
        self.container = container
        self.shared_name = shared_name
        self.buffer: Memory | None = None
        self.default = 0


class MicroResourceVariables:
    """A table of at most ``count`` variables in the tail of an allocator's arena.

    A variable gets its bytes, and its default value, when the first operator that assigns it is prepared.
    Raises `ArenaError` if the table does not fit.
    """

    def __init__(self, allocator: MicroAllocator, count: int) -> None:
        allocator.allocate_persistent_buffer(structs.RESOURCE_VARIABLES.size(allocator.abi))
        allocator.allocate_persistent_buffer(Array(structs.RESOURCE_VARIABLE, count).size(allocator.abi))
        self.count = count
        self._variables: list[_Variable] = []

    def create_id_if_none_found(self, container: str, shared_name: str) -> int:
        """The id of a variable, which may be new. Raises `PrepareError` for one more than there is room for."""
        for i, variable in enumerate(self._variables):
            if variable.shared_name == shared_name and container in ("", variable.container):
                return i
        if len(self._variables) >= self.count:
            raise PrepareError(
                f"Failed to allocate resource variable. Maximum resource variable count ({self.count}) reached."
            )
        self._variables.append(_Variable(container, shared_name))
        return len(self._variables) - 1

    def allocate(self, number: int, take: Callable[[int], Memory], tensor: EvalTensor) -> None:
        """Give a variable, unless it has them, the bytes of a tensor, filled with its zero point."""
        variable = self._find(number)
        if variable.buffer is None:
            variable.buffer = take(tensor.bytes)
            zero_points = tensor.quantization.zero_points
            variable.default = int(zero_points[0]) & 0xFF if len(zero_points) else 0
            variable.buffer[...] = variable.default

    def read(self, number: int, dtype: np.dtype[Any], size: int) -> NDArray[Any]:
        """The value of a variable. Raises `InvokeError` if it has none, or other than so many bytes."""
        return self._bytes(number, size).view(dtype)

    def assign(self, number: int, value: NDArray[Any]) -> None:
        """Write a variable. Raises `InvokeError` if it has no memory, or other than that of the value."""
        data = np.ascontiguousarray(value).reshape(-1).view(np.uint8)
        self._bytes(number, data.size)[...] = data

    def reset_all(self) -> None:
        """Give every variable its default value."""
        for variable in self._variables:
            if variable.buffer is not None:
                variable.buffer[...] = variable.default

    def _bytes(self, number: int, size: int) -> Memory:
        buffer = self._find(number).buffer
        if buffer is None:
            raise InvokeError(f"resource variable {number} has no memory: no ASSIGN_VARIABLE was prepared for it")
        if buffer.size != size:
            raise InvokeError(f"resource variable {number} has {buffer.size} bytes, the tensor has {size}")
        return buffer

    def _find(self, number: int) -> _Variable:
        if not 0 <= number < len(self._variables):
            raise InvokeError(f"Attempting to read non-existent resource variable {number}")
        return self._variables[number]


def is_resource(tensor: EvalTensor) -> bool:
    """Whether a tensor may hold the id of a variable."""
    return tensor.type in (TensorType.RESOURCE, TensorType.INT32)
