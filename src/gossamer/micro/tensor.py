"""A tensor of a model on a device: what the file says of it, and where its bytes are (TfLiteEvalTensor)."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.dtypes import byte_size, is_packed, numpy_dtype, type_name, unpack
from gossamer.errors import ModelError
from gossamer.quantization import UNQUANTIZED, Quantization
from gossamer.schema.enums import TensorType
from gossamer.schema.fields import Table
from gossamer.schema.tables import Tensor as StoredTensor

Array = NDArray[Any]
Shape = tuple[int, ...]

_ELEMENT_BYTES = {
    TensorType.FLOAT16: 2,
    TensorType.BFLOAT16: 2,
    TensorType.FLOAT32: 4,
    TensorType.FLOAT64: 8,
    TensorType.INT4: 1,
    TensorType.INT8: 1,
    TensorType.INT16: 2,
    TensorType.INT32: 4,
    TensorType.INT64: 8,
    TensorType.UINT8: 1,
    TensorType.UINT16: 2,
    TensorType.UINT32: 4,
    TensorType.UINT64: 8,
    TensorType.BOOL: 1,
    TensorType.COMPLEX64: 8,
    TensorType.COMPLEX128: 16,
    TensorType.RESOURCE: 4,
}
"""TfLiteTypeSizeOf of TFLite Micro: a 4-bit integer takes a byte in the arena, a resource is the 32 bits of its id."""

MAX_BYTES = 2**31 - 1


class EvalTensor:
    """One tensor. ``data`` are its bytes: a piece of the arena, of the file, or ``None`` before memory is planned.

    ``shape`` is that of the file: nothing is resized on a device.
    """

    is_dynamic = False
    has_objects = False

    def __init__(self, index: int, stored: StoredTensor, constant: NDArray[np.uint8] | None) -> None:
        self.index = index
        self.stored = stored
        self.type = stored.type
        self.shape: Shape = stored.shape
        self.is_stored = constant is not None and constant.size > 0
        self.is_compressed = False
        self.data = constant if self.is_stored else None
        self._quantization: Quantization | None = None
        if self.type not in _ELEMENT_BYTES:
            raise ModelError(f'tensor {index} "{self.name}": TFLite Micro has no type {type_name(self.type)}')
        if self.is_stored and constant is not None and constant.size < self._stored_bytes:
            raise ModelError(
                f'tensor {index} "{self.name}" needs {self._stored_bytes} bytes, its buffer has {constant.size}'
            )

    @property
    def name(self) -> str:
        """As the file has it."""
        return self.stored.name

    @property
    def bytes(self) -> int:
        """Bytes in the arena. Raises `ModelError` for more than a device can count."""
        count = prod(self.shape) * _ELEMENT_BYTES[self.type]
        if not 0 <= count <= MAX_BYTES:
            raise ModelError(f'tensor {self.index} "{self.name}" of shape {list(self.shape)} needs {count} bytes')
        return count

    @property
    def _stored_bytes(self) -> int:
        return byte_size(self.type, prod(self.shape)) if self.type != TensorType.RESOURCE else self.bytes

    @property
    def shape_signature(self) -> Shape:
        """The shape: a device does not know others."""
        return self.shape

    @property
    def quantization(self) -> Quantization:
        """Scales and zero points; `UNQUANTIZED` if the file gives none."""
        if self._quantization is None:
            parameters = self.stored.quantization
            if parameters is None or not len(parameters.scale):
                self._quantization = UNQUANTIZED
            else:
                self._quantization = Quantization(
                    parameters.scale, parameters.zero_point, parameters.quantized_dimension
                )
        return self._quantization

    @property
    def scale_count(self) -> int:
        """The number of scales that a TfLiteTensor carries: 0 where scales or zero points are missing in the file."""
        parameters = self.stored.quantization
        if parameters is None or not len(parameters.zero_point):
            return 0
        return len(parameters.scale)

    @property
    def sparsity(self) -> Table | None:
        """The stored sparsity record, of a sparse constant."""
        return self.stored.sparsity if self.is_stored else None

    @property
    def is_variable(self) -> bool:
        """Whether the value stays from one invocation to the next."""
        return self.stored.is_variable

    @property
    def is_constant(self) -> bool:
        """Whether the value is stored in the file."""
        return self.is_stored

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of `array`: a 4-bit integer is an int8, a resource an int32."""
        return np.dtype(np.int32) if self.type == TensorType.RESOURCE else numpy_dtype(self.type)

    def array(self) -> Array:
        """The value in its shape: a view of ``data``; packed constants are unpacked. Raises `ValueError` if none."""
        if self.data is None:
            if 0 in self.shape:
                return np.zeros(self.shape, self.dtype)
            raise ValueError(f'tensor {self.index} "{self.name}" has no value')
        if self.is_stored and is_packed(self.type):
            return unpack(self.data, self.type, prod(self.shape)).reshape(self.shape)
        return self.data[: self.bytes].view(self.dtype).reshape(self.shape)

    def store(self, value: Array) -> None:
        """Write a value of as many elements. Raises `ValueError` for another dtype or number."""
        if value.dtype != self.dtype:
            raise ValueError(f"is {type_name(self.type)}, got {value.dtype}")
        if value.size != prod(self.shape):
            raise ValueError(f"has shape {list(self.shape)}, got {list(value.shape)}")
        if value.size:
            self.array()[...] = value.reshape(self.shape)

    def reset(self) -> None:
        """Zero the bytes; those of an int8 tensor get its zero point."""
        if self.data is not None and not self.is_stored:
            zero_points = self.quantization.zero_points
            quantized = self.type == TensorType.INT8 and len(zero_points) > 0
            self.data[...] = int(zero_points[0]) & 0xFF if quantized else 0
