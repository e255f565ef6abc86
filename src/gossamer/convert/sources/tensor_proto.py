"""TensorFlow's ``TensorProto`` as NumPy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.convert.elements import element_dtype, from_bytes, known_shape, of_strings, repeat_last
from gossamer.convert.messages.tensorflow import DataType, TensorProto, TensorShapeProto
from gossamer.errors import ConvertError
from gossamer.schema.enums import TensorType

_ELEMENTS = {
    DataType.DT_FLOAT: ("float32", "float_val"),
    DataType.DT_DOUBLE: ("float64", "double_val"),
    DataType.DT_INT32: ("int32", "int_val"),
    DataType.DT_UINT8: ("uint8", "int_val"),
    DataType.DT_INT16: ("int16", "int_val"),
    DataType.DT_INT8: ("int8", "int_val"),
    DataType.DT_STRING: ("object", "string_val"),
    DataType.DT_COMPLEX64: ("complex64", "scomplex_val"),
    DataType.DT_INT64: ("int64", "int64_val"),
    DataType.DT_BOOL: ("bool", "bool_val"),
    DataType.DT_QINT8: ("int8", "int_val"),
    DataType.DT_QUINT8: ("uint8", "int_val"),
    DataType.DT_QINT32: ("int32", "int_val"),
    DataType.DT_BFLOAT16: ("bfloat16", "half_val"),
    DataType.DT_QINT16: ("int16", "int_val"),
    DataType.DT_QUINT16: ("uint16", "int_val"),
    DataType.DT_UINT16: ("uint16", "int_val"),
    DataType.DT_COMPLEX128: ("complex128", "dcomplex_val"),
    DataType.DT_HALF: ("float16", "half_val"),
    DataType.DT_UINT32: ("uint32", "uint32_val"),
    DataType.DT_UINT64: ("uint64", "uint64_val"),
    DataType.DT_FLOAT8_E5M2: ("float8_e5m2", "float8_val"),
    DataType.DT_FLOAT8_E4M3FN: ("float8_e4m3fn", "float8_val"),
    DataType.DT_FLOAT8_E4M3FNUZ: ("float8_e4m3fnuz", "float8_val"),
    DataType.DT_FLOAT8_E4M3B11FNUZ: ("float8_e4m3b11fnuz", "float8_val"),
    DataType.DT_FLOAT8_E5M2FNUZ: ("float8_e5m2fnuz", "float8_val"),
    DataType.DT_INT4: ("int8", "int_val"),
    DataType.DT_UINT4: ("uint8", "int_val"),
    DataType.DT_INT2: ("int8", "int_val"),
    DataType.DT_UINT2: ("uint8", "int_val"),
}
"""The NumPy dtype of the elements (a byte for those of less bits), and the field with values that are written out."""


_RENAMED = {"FLOAT": "FLOAT32", "DOUBLE": "FLOAT64", "HALF": "FLOAT16"}
"""The types that have another name in a .tflite model."""

_REFERENCE = 100
"""What is added to a type for a reference to a variable of TensorFlow 1."""


def type_name(data_type: int) -> str:
    """``DT_FLOAT``; an unknown code reads ``DataType 77``."""
    return data_type.name if isinstance(data_type, DataType) else f"DataType {int(data_type)}"


def numpy_dtype(data_type: int, what: str = "tensor") -> np.dtype[Any]:
    """The dtype of the elements; ``object`` for strings. Raises `ConvertError` for types that are no values."""
    if data_type not in _ELEMENTS:
        raise ConvertError(f"{what} is of {type_name(data_type)}, which has no values in a file")
    return element_dtype(_ELEMENTS[DataType(data_type)][0])


def tensor_type(data_type: int, what: str = "tensor") -> TensorType:
    """The type in a .tflite model; of a reference, that of the variable. Raises `ConvertError` if there is none."""
    referred = data_type - _REFERENCE
    name = type_name(DataType(referred) if referred in DataType._value2member_map_ else data_type)
    short = name.removeprefix("DT_")
    short = _RENAMED.get(short, short)
    if short not in TensorType.__members__:
        raise ConvertError(f"{what} is of {name}, which no .tflite model has")
    return TensorType[short]


def shape_of(shape: TensorShapeProto | None) -> tuple[int | None, ...] | None:
    """The sizes, ``None`` for those that are not known; ``None`` if the rank is not known."""
    if shape is None or shape.unknown_rank:
        return None
    return tuple([dim.size if dim.size >= 0 else None for dim in shape.dim])


def tensor_array(tensor: TensorProto, what: str = "tensor") -> NDArray[Any]:
    """The values: a read-only view of the file where it holds them as they are, else a new array.

    A tensor that is one value, repeated, takes no memory. Strings are ``bytes`` objects. Raises `ConvertError` if type,
    shape and values do not fit together; ``what`` names the tensor in messages.
    """
    dtype = numpy_dtype(tensor.dtype, what)
    sizes = tensor.tensor_shape.dim if tensor.tensor_shape is not None else ()
    if tensor.tensor_shape is not None and tensor.tensor_shape.unknown_rank:
        raise ConvertError(f"{what} has values, but its shape is not known")
    shape = known_shape([dim.size for dim in sizes], dtype, what)
    if len(tensor.tensor_content):
        if dtype.hasobject:
            raise ConvertError(f"{what} has strings as tensor_content; string_val is read")
        return from_bytes(tensor.tensor_content, dtype, shape, what)
    return repeat_last(_values(tensor, dtype, what), shape, what)


def _values(tensor: TensorProto, dtype: np.dtype[Any], what: str) -> NDArray[Any]:
    field = _ELEMENTS[tensor.dtype][1]
    stored = getattr(tensor, field)
    if field == "string_val":
        return of_strings(stored)
    if field == "half_val":
        return stored.astype(np.uint16).view(dtype)  # type: ignore[no-any-return]
    if field == "float8_val":
        return np.frombuffer(stored, dtype)
    if dtype.kind == "c":
        if stored.size % 2:
            raise ConvertError(f"{what} has {stored.size} values in {field}; complex numbers take two each")
        return stored.view(dtype)  # type: ignore[no-any-return]
    return stored.astype(dtype, copy=False)  # type: ignore[no-any-return]
