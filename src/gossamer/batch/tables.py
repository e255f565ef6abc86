"""Columns of Arrow tables as cells that a model can be given, and outputs of a model as such columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.errors import InputError
from gossamer.inputs.port import Port

Array = NDArray[Any]


def arrow(what: str = "tables") -> Any:
    """The module pyarrow. Raises `InputError` that names the extra if it is missing."""
    try:
        import pyarrow
    except ImportError:
        raise InputError(f"{what} need pyarrow; install gossamer[batch].") from None
    return pyarrow


def is_plain(kind: Any) -> bool:
    """Whether an Arrow type is text, an integer or a truth value."""
    from pyarrow import types

    return bool(
        types.is_integer(kind)
        or types.is_string(kind)
        or types.is_large_string(kind)
        or types.is_boolean(kind)
        or types.is_temporal(kind)
        or types.is_dictionary(kind)
    )


def element_type(port: Port, dequantize: bool) -> Any:
    """The Arrow type of an output's elements. Raises `InputError` where Arrow has none."""
    pa = arrow()
    if port.is_text:
        return pa.binary()
    if (dequantize and port.is_quantized) or (port.is_float and port.dtype.kind != "f"):
        return pa.float32()  # bfloat16 and float8 are not known there, and fit
    try:
        return pa.from_numpy_dtype(port.dtype)
    except pa.ArrowNotImplementedError:
        raise InputError(
            f"the output {port.describe()} has no Arrow type; choose other outputs by a signature."
        ) from None


def cells(column: Any) -> Any:
    """The cells of an Arrow column: bytes and text as they are, lists of numbers as arrays."""
    pa = arrow()
    if isinstance(column, pa.ChunkedArray):
        return [cell for chunk in column.chunks for cell in cells(chunk)]
    if isinstance(column.type, pa.BaseExtensionType):
        shape = getattr(column.type, "shape", None)
        found = cells(column.storage)
        return found if shape is None else [None if one is None else np.reshape(one, shape) for one in found]
    shape, inner = [], column.type
    while pa.types.is_fixed_size_list(inner):
        shape.append(inner.list_size)
        inner = inner.value_type
    if shape and pa.types.is_primitive(inner) and not pa.types.is_boolean(inner) and not column.null_count:
        flat = column
        for _ in shape:
            flat = flat.flatten()
        if not flat.null_count:
            return flat.to_numpy(zero_copy_only=False).reshape(len(column), *shape)
    if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
        inner = column.type.value_type
        if pa.types.is_primitive(inner) and not pa.types.is_boolean(inner) and not column.values.null_count:
            values = column.values.to_numpy(zero_copy_only=False)
            ends = column.offsets.to_numpy()
            valid = column.is_valid().to_numpy(zero_copy_only=False)
            return [values[a:b] if v else None for a, b, v in zip(ends[:-1], ends[1:], valid, strict=True)]
    return column.to_pylist()


def column_of(values: Sequence[Array | None], kind: Any) -> Any:
    """Rows of an output as an Arrow column, null where a row has none."""
    pa = arrow()
    shape, inner = [], kind
    while pa.types.is_fixed_size_list(inner):
        shape.append(inner.list_size)
        inner = inner.value_type
    if pa.types.is_list(inner) or pa.types.is_binary(inner):
        return pa.array([None if value is None else value.tolist() for value in values], kind)
    flat = np.zeros((len(values), *shape), inner.to_pandas_dtype())
    for place, value in enumerate(values):
        if value is not None:
            flat[place] = value
    missing = np.array([value is None for value in values], bool)
    if not shape:
        return pa.array(flat, inner, mask=missing)
    column = pa.array(flat.reshape(-1), inner)
    for size in reversed(shape[1:]):
        column = pa.FixedSizeListArray.from_arrays(column, size)
    return pa.FixedSizeListArray.from_arrays(column, shape[0], mask=pa.array(missing))
