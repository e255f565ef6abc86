"""Columns of Arrow tables as cells that a model can be given, and outputs of a model as such columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.errors import InputError
from gossamer.inputs.port import Port

Array = NDArray[Any]

FILE, ROW = "file", "row"
"""The columns of keys where none is asked for: the name of a file, and the number of a row from 0 on."""


def arrow(what: str = "tables") -> Any:
    """The module pyarrow. Raises `InputError` that names the extra if it is missing."""
    try:
        import pyarrow
    except ImportError:
        raise InputError(f"{what} need pyarrow; install gossamer[batch].") from None
    return pyarrow


def is_plain(kind: Any) -> bool:
    """Whether an Arrow type is text, an integer, a truth value or a time, also as a dictionary of these."""
    from pyarrow import types

    if types.is_dictionary(kind):
        return is_plain(kind.value_type)
    return bool(
        types.is_integer(kind)
        or types.is_string(kind)
        or types.is_large_string(kind)
        or str(kind) == "string_view"  # pyarrow before 16 has neither it nor a function for it
        or types.is_boolean(kind)
        or types.is_temporal(kind)
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
    """The cells of an Arrow column: bytes and text as they are, numbers and lists of them as arrays of their type, and
    ``None`` where there is nothing."""
    pa = arrow()
    if isinstance(column, pa.ChunkedArray):
        return [cell for chunk in column.chunks for cell in cells(chunk)]
    if isinstance(column.type, pa.BaseExtensionType):
        shape = getattr(column.type, "shape", None)
        found = cells(column.storage)
        return found if shape is None else [None if one is None else np.reshape(one, shape) for one in found]
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    if not _is_number(_leaf(column.type)):
        return column.to_pylist()
    known = column.drop_null()
    found = _numbers(known)
    if found is None:
        return column.to_pylist()
    if len(known) == len(column):
        return found
    rest = iter(found)
    return [next(rest) if is_there else None for is_there in column.is_valid().to_pylist()]


def _numbers(column: Any) -> Any:
    """The cells of a column of numbers without nulls, as arrays; ``None`` if a number in one of them is missing."""
    types = arrow().types
    shape, inner = [], column.type
    while types.is_fixed_size_list(inner):
        shape.append(inner.list_size)
        inner = inner.value_type
    flat = column
    for _ in shape:
        flat = flat.flatten()
    if _is_number(inner):
        return None if flat.null_count else flat.to_numpy(zero_copy_only=False).reshape(len(column), *shape)
    leaf = _leaf(inner)
    if leaf == inner.value_type and not shape and not column.flatten().null_count:
        values = column.flatten().to_numpy(zero_copy_only=False)
        ends = np.cumsum(column.value_lengths().to_numpy(zero_copy_only=False))
        return np.split(values, ends[:-1])
    cells, dtype = column.to_pylist(), _dtype(leaf)
    # NumPy would take what is missing for NaN.
    is_whole = not _has_nulls(column)
    return [_array(cell, dtype) if is_whole or not _lacks(cell) else cell for cell in cells]


def _has_nulls(column: Any) -> bool:
    """Whether a list, or a number in it, is missing."""
    types = arrow().types
    while types.is_list(column.type) or types.is_large_list(column.type) or types.is_fixed_size_list(column.type):
        column = column.flatten()
        if column.null_count:
            return True
    return False


def _lacks(cell: Any) -> bool:
    return any(map(_lacks, cell)) if isinstance(cell, list) else cell is None


def _leaf(kind: Any) -> Any:
    """The type of what lists of lists hold."""
    types = arrow().types
    while types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        kind = kind.value_type
    return kind


def _is_number(kind: Any) -> bool:
    types = arrow().types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))


def _dtype(kind: Any) -> np.dtype[Any]:
    """NumPy's type of a column. What Arrow calls so, ``to_pandas_dtype``, asks for pandas before pyarrow 26."""
    return arrow().array([], kind).to_numpy(zero_copy_only=False).dtype  # type: ignore[no-any-return]  # has no types


def _array(cell: Any, dtype: Any) -> Any:
    """A nested list as an array, and as it is where it makes none."""
    try:
        return np.array(cell, dtype)
    except (ValueError, TypeError):
        return cell


def column_of(values: Sequence[Array | None], kind: Any) -> Any:
    """Rows of an output as an Arrow column, null where a row has none."""
    pa = arrow()
    shape, inner = [], kind
    while pa.types.is_fixed_size_list(inner):
        shape.append(inner.list_size)
        inner = inner.value_type
    if pa.types.is_list(inner) or pa.types.is_binary(inner):
        return pa.array([None if value is None else value.tolist() for value in values], kind)
    flat = np.zeros((len(values), *shape), _dtype(inner))
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


def in_files(schema: Any) -> Any:
    """The types that a file has for these: lists without a size, as Parquet knows them; pyarrow before 26 cannot read
    those of a fixed size back where one is null."""
    return arrow().schema([field.with_type(_plain(field.type)) for field in schema], schema.metadata)


def _plain(kind: Any) -> Any:
    types = arrow().types
    is_list = types.is_fixed_size_list(kind) or types.is_list(kind)
    return arrow().list_(_plain(kind.value_type)) if is_list else kind


def cast(batch: Any, schema: Any) -> Any:
    """A `pyarrow.RecordBatch` in the types of a schema."""
    columns = [_cast(column, field.type) for column, field in zip(batch.columns, schema, strict=True)]
    return arrow().RecordBatch.from_arrays(columns, schema=schema)


def _cast(column: Any, kind: Any) -> Any:
    """A column in another type. Lists that lose their size are made here: one that is missing has elements as well,
    with which pyarrow before 25 casts none."""
    pa = arrow()
    if not (pa.types.is_fixed_size_list(column.type) and pa.types.is_list(kind)):
        return column.cast(kind)
    there = column.is_valid().to_numpy(zero_copy_only=False)
    starts = np.concatenate([[0], np.cumsum(there * column.type.list_size)])
    values = _cast(column.flatten(), kind.value_type)
    return pa.ListArray.from_arrays(pa.array(starts, pa.int32()), values, mask=pa.array(~there))
