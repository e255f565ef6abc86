"""Element types: `TensorType` of the schema, its NumPy dtype, its bits in memory, its names.

int4, uint4 and int2 are packed in a tensor (low bits first) and unpacked to int8 or uint8 for kernels and users.
bfloat16 and the float8 types are those of ``ml_dtypes``, imported when a model first uses one.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.schema.enums import TensorType

_NUMPY: dict[int, Any] = {
    TensorType.FLOAT32: np.float32,
    TensorType.FLOAT16: np.float16,
    TensorType.INT32: np.int32,
    TensorType.UINT8: np.uint8,
    TensorType.INT64: np.int64,
    TensorType.STRING: np.object_,
    TensorType.BOOL: np.bool_,
    TensorType.INT16: np.int16,
    TensorType.COMPLEX64: np.complex64,
    TensorType.INT8: np.int8,
    TensorType.FLOAT64: np.float64,
    TensorType.COMPLEX128: np.complex128,
    TensorType.UINT64: np.uint64,
    TensorType.RESOURCE: np.int32,
    TensorType.VARIANT: np.object_,
    TensorType.UINT32: np.uint32,
    TensorType.UINT16: np.uint16,
    TensorType.INT4: np.int8,
    TensorType.INT2: np.int8,
    TensorType.UINT4: np.uint8,
}
_ML_DTYPES = {
    TensorType.BFLOAT16: "bfloat16",
    TensorType.FLOAT8_E4M3FN: "float8_e4m3fn",
    TensorType.FLOAT8_E5M2: "float8_e5m2",
}
_PACKED_BITS = {TensorType.INT4: 4, TensorType.UINT4: 4, TensorType.INT2: 2}
_DTYPES: dict[int, np.dtype[Any]] = {}
_BITS: dict[int, int] = {int(packed): bits for packed, bits in _PACKED_BITS.items()}
_BITS[TensorType.STRING] = _BITS[TensorType.VARIANT] = 0

NO_ARENA = frozenset({TensorType.STRING, TensorType.RESOURCE, TensorType.VARIANT})
"""Types whose values are not plain numbers: never in an arena, and of no fixed size."""


def numpy_dtype(tensor_type: int) -> np.dtype[Any]:
    """The dtype of a tensor's elements as kernels and users see them. Raises `KeyError` for an unknown type."""
    dtype = _DTYPES.get(tensor_type)
    if dtype is None:
        if tensor_type in _ML_DTYPES:
            import ml_dtypes

            dtype = np.dtype(getattr(ml_dtypes, _ML_DTYPES[TensorType(tensor_type)]))
        else:
            dtype = np.dtype(_NUMPY[tensor_type])
        _DTYPES[tensor_type] = dtype
    return dtype


def element_bits(tensor_type: int) -> int:
    """Bits that one element takes in memory; 0 for strings and variants, whose size their values decide."""
    bits = _BITS.get(tensor_type)
    if bits is None:
        bits = _BITS[tensor_type] = 8 * numpy_dtype(tensor_type).itemsize
    return bits


def is_packed(tensor_type: int) -> bool:
    """Whether several elements share a byte."""
    return tensor_type in _PACKED_BITS


def unpacked_type(tensor_type: int) -> TensorType:
    """The type of elements that have a byte each instead of sharing one (int4: int8); any other type itself."""
    return TensorType[numpy_dtype(tensor_type).name.upper()] if is_packed(tensor_type) else TensorType(tensor_type)


def byte_size(tensor_type: int, elements: int) -> int:
    """Bytes of a tensor of so many elements: packed types round up to a whole byte."""
    return (element_bits(tensor_type) * elements + 7) // 8


def unpack(packed: NDArray[np.uint8], tensor_type: int, elements: int) -> NDArray[Any]:
    """The elements of a packed tensor, low bits first, one to a byte, sign extended. A new 1-D array."""
    bits = _PACKED_BITS[TensorType(tensor_type)]
    per_byte = 8 // bits
    shifts = np.arange(per_byte, dtype=np.uint8) * bits
    values = ((packed[:, None] >> shifts) & ((1 << bits) - 1)).reshape(-1)[:elements]
    if tensor_type == TensorType.UINT4:
        return values
    sign = 1 << (bits - 1)
    return ((values ^ sign).astype(np.int16) - sign).astype(np.int8)


def pack(values: NDArray[Any], tensor_type: int) -> NDArray[np.uint8]:
    """The inverse of `unpack`; the unused bits of the last byte are 0."""
    bits = _PACKED_BITS[TensorType(tensor_type)]
    per_byte = 8 // bits
    flat = np.zeros(-(-values.size // per_byte) * per_byte, np.uint8)
    flat[: values.size] = values.reshape(-1).astype(np.uint8) & ((1 << bits) - 1)
    shifts = np.arange(per_byte, dtype=np.uint8) * bits
    packed: NDArray[np.uint8] = np.bitwise_or.reduce(flat.reshape(-1, per_byte) << shifts, axis=1)
    return packed


def type_name(tensor_type: int) -> str:
    """Lower-case name for messages and tables: ``int8``, ``float32``; an unknown code reads ``type 77``."""
    try:
        return TensorType(tensor_type).name.lower()
    except ValueError:
        return f"type {int(tensor_type)}"


def decode_strings(serialized: NDArray[np.uint8], shape: tuple[int, ...]) -> NDArray[np.object_]:
    """The strings of a TFLite string buffer (int32 count, count + 1 int32 offsets, characters) as ``bytes`` objects.

    Raises `ValueError` when the buffer is not one, or holds another number of strings than the shape says.
    """
    raw = serialized.tobytes()
    count = int.from_bytes(raw[:4], "little", signed=True) if len(raw) >= 4 else 0
    if count < 0 or 4 * (count + 2) > max(len(raw), 8):
        raise ValueError(f"string buffer of {len(raw)} bytes cannot hold {count} strings")
    offsets = np.frombuffer(raw, "<i4", count + 1, 4).tolist() if count else []
    if any(not 4 * (count + 2) <= a <= b <= len(raw) for a, b in itertools.pairwise(offsets)):
        raise ValueError("string buffer has offsets outside itself")
    if count != math.prod(shape):
        raise ValueError(f"string buffer holds {count} strings, shape {list(shape)} has {math.prod(shape)}")
    values = np.empty(count, object)
    for i in range(count):
        values[i] = raw[offsets[i] : offsets[i + 1]]
    return values.reshape(shape)


def string_items(values: NDArray[Any]) -> list[bytes]:
    """The values in C order; ``str`` is encoded as UTF-8."""
    return [v if type(v) is bytes else v.encode() if isinstance(v, str) else bytes(v) for v in values.ravel().tolist()]


def string_array(values: NDArray[Any]) -> NDArray[np.object_]:
    """A new array of the same shape, with the `string_items`."""
    if values.dtype == np.object_ and {bytes}.issuperset(map(type, values.ravel().tolist())):
        return values.copy()
    items = string_items(values)
    return np.fromiter(items, object, len(items)).reshape(values.shape)


def encode_strings(values: NDArray[Any]) -> bytes:
    """A TFLite string buffer with the values in C order; ``str`` is encoded as UTF-8."""
    items = string_items(values)
    offsets = np.cumsum([4 * (len(items) + 2), *(len(item) for item in items)], dtype="<i4")
    return len(items).to_bytes(4, "little") + offsets.tobytes() + b"".join(items)
