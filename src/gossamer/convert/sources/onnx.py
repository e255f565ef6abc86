"""ONNX models: one ``.onnx`` file, and files beside it with the data of tensors that do not lie in it."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gossamer import dtypes
from gossamer.arrays import NDArray
from gossamer.convert.elements import MAX_EXPANDED, element_dtype, from_bytes, known_shape, of_strings
from gossamer.convert.files import inside, map_file
from gossamer.convert.messages.onnx import (
    DataType,
    FunctionProto,
    GraphProto,
    ModelProto,
    OperatorSetIdProto,
    SparseTensorProto,
    TensorProto,
    TypeProto,
    ValueInfoProto,
)
from gossamer.convert.wire import read
from gossamer.errors import ConvertError
from gossamer.schema.enums import TensorType

if TYPE_CHECKING:
    from typing_extensions import Buffer

EXTERNAL = 1
"""``data_location`` of tensors whose data lie in a file of their own."""

_ELEMENTS = {
    DataType.FLOAT: ("float32", "float_data"),
    DataType.UINT8: ("uint8", "int32_data"),
    DataType.INT8: ("int8", "int32_data"),
    DataType.UINT16: ("uint16", "int32_data"),
    DataType.INT16: ("int16", "int32_data"),
    DataType.INT32: ("int32", "int32_data"),
    DataType.INT64: ("int64", "int64_data"),
    DataType.STRING: ("object", "string_data"),
    DataType.BOOL: ("bool", "int32_data"),
    DataType.FLOAT16: ("float16", "int32_data"),
    DataType.DOUBLE: ("float64", "double_data"),
    DataType.UINT32: ("uint32", "uint64_data"),
    DataType.UINT64: ("uint64", "uint64_data"),
    DataType.COMPLEX64: ("complex64", "float_data"),
    DataType.COMPLEX128: ("complex128", "double_data"),
    DataType.BFLOAT16: ("bfloat16", "int32_data"),
    DataType.FLOAT8E4M3FN: ("float8_e4m3fn", "int32_data"),
    DataType.FLOAT8E4M3FNUZ: ("float8_e4m3fnuz", "int32_data"),
    DataType.FLOAT8E5M2: ("float8_e5m2", "int32_data"),
    DataType.FLOAT8E5M2FNUZ: ("float8_e5m2fnuz", "int32_data"),
    DataType.FLOAT8E8M0: ("float8_e8m0fnu", "int32_data"),
    DataType.UINT4: ("uint8", "int32_data"),
    DataType.INT4: ("int8", "int32_data"),
    DataType.FLOAT4E2M1: ("float4_e2m1fn", "int32_data"),
    DataType.UINT2: ("uint8", "int32_data"),
    DataType.INT2: ("int8", "int32_data"),
}
"""The NumPy dtype of the elements (a byte for those of less bits), and the field with values that are written out."""

_PACKED = {
    DataType.UINT4: TensorType.UINT4,
    DataType.INT4: TensorType.INT4,
    DataType.FLOAT4E2M1: TensorType.UINT4,
    DataType.UINT2: TensorType.INT2,
    DataType.INT2: TensorType.INT2,
}
"""Types with several elements in a byte, and what unpacks them."""


class TensorSpec(NamedTuple):
    """An input or output of the graph: sizes are numbers, names of what is not known, or ``None``; so a whole shape.

    ``dtype`` is `DataType.UNDEFINED` if the file does not say, or for a value that is no tensor (see ``stored``).
    """

    name: str
    dtype: DataType
    shape: tuple[int | str | None, ...] | None
    stored: ValueInfoProto


class OnnxModel(NamedTuple):
    """A model with its graph.

    ``inputs`` are those that a caller gives: initializers that are inputs too are defaults, in ``defaults``.
    ``initializers`` and ``sparse_initializers`` are by name; `array` and `sparse_array` make arrays of them.
    ``opsets`` are versions by domain, "" for ONNX's own; ``functions`` by domain, name and overload.
    """

    directory: str | None
    definition: ModelProto
    graph: GraphProto
    opsets: Mapping[str, int]
    inputs: Mapping[str, TensorSpec]
    defaults: Mapping[str, TensorSpec]
    outputs: Mapping[str, TensorSpec]
    initializers: Mapping[str, TensorProto]
    sparse_initializers: Mapping[str, SparseTensorProto]
    functions: Mapping[tuple[str, str, str], FunctionProto]

    def array(self, tensor: TensorProto) -> NDArray[Any]:
        """As `tensor_array`, with external data from where the model lies."""
        return tensor_array(tensor, self.directory)

    def sparse_array(self, tensor: SparseTensorProto) -> NDArray[Any]:
        """As `sparse_array`, with external data from where the model lies."""
        return sparse_array(tensor, self.directory)


def read_onnx(source: str | os.PathLike[str] | Buffer, directory: str | os.PathLike[str] | None = None) -> OnnxModel:
    """Reads a model from a file, which is mapped, or from bytes, which are referenced and must not change.

    ``directory`` is where the files of external data are, by default that of the model. Raises `ConvertError` for a
    file that cannot be opened or is damaged, has no graph or no operator sets, or contradicts itself.
    """
    name = "model"
    place = None if directory is None else os.fspath(directory)
    if isinstance(source, (str, os.PathLike)):
        name = os.fspath(source)
        place = os.path.dirname(os.path.abspath(name)) if place is None else place
        source = map_file(source)
    definition = read(ModelProto, source, name)
    graph = definition.graph
    if graph is None:
        raise ConvertError(f"{name}: a ModelProto without a graph")
    opsets = operator_sets(definition.opset_import, name)
    if not opsets:
        raise ConvertError(f"{name}: no operator set is imported, so nobody knows what its operators mean")
    initializers = {tensor.name: tensor for tensor in graph.initializer}
    sparse = {(item.values or TensorProto()).name: item for item in graph.sparse_initializer}
    stored = [*[tensor.name for tensor in graph.initializer], *sparse]
    _check_names(stored, len(graph.initializer) + len(graph.sparse_initializer), f"{name}: an initializer")
    inputs = _specs(graph.input, f"{name}: an input")
    outputs = _specs(graph.output, f"{name}: an output")
    functions = {(item.domain, item.name, item.overload): item for item in definition.functions}
    if len(functions) < len(definition.functions):
        raise ConvertError(f"{name}: two functions have the same domain, name and overload")
    return OnnxModel(
        place,
        definition,
        graph,
        opsets,
        {key: spec for key, spec in inputs.items() if key not in stored},
        {key: spec for key, spec in inputs.items() if key in stored},
        outputs,
        initializers,
        sparse,
        functions,
    )


def operator_sets(imported: tuple[OperatorSetIdProto, ...], what: str = "model") -> dict[str, int]:
    """The version of each domain; ONNX's own has the name "" (``ai.onnx`` is the same). Raises `ConvertError`."""
    versions: dict[str, int] = {}
    for item in imported:
        domain = "" if item.domain == "ai.onnx" else item.domain
        if versions.setdefault(domain, item.version) != item.version:
            raise ConvertError(f"{what}: imports versions {versions[domain]} and {item.version} of domain {domain!r}")
    return versions


def _check_names(names: list[str], count: int, what: str) -> None:
    if len(set(names)) < count or "" in names:
        raise ConvertError(f"{what} has no name, or that of another one")


def _specs(values: tuple[ValueInfoProto, ...], what: str) -> dict[str, TensorSpec]:
    _check_names([value.name for value in values], len(values), what)
    return {value.name: _spec(value) for value in values}


def _spec(value: ValueInfoProto) -> TensorSpec:
    stored = (value.type or TypeProto()).tensor_type or TypeProto.Tensor()
    if stored.shape is None:
        return TensorSpec(value.name, stored.elem_type, None, value)
    sizes = [dim.dim_value if dim.which("value") == "dim_value" else dim.dim_param or None for dim in stored.shape.dim]
    return TensorSpec(value.name, stored.elem_type, tuple(sizes), value)


def tensor_array(tensor: TensorProto, directory: str | os.PathLike[str] | None = None) -> NDArray[Any]:
    """The values: a read-only view of a file where it holds them as they are, else a new array.

    Elements of less than a byte are unpacked, one to a byte; strings are ``bytes`` objects. ``directory`` is where
    external data lie. Raises `ConvertError` if type, shape and values do not fit together, or a file is missing, too
    short or not inside the directory.
    """
    what = f"tensor {tensor.name!r}"
    if tensor.data_type not in _ELEMENTS:
        code = tensor.data_type
        raise ConvertError(f"{what} is of {getattr(code, 'name', f'type {code}')}, which is not read")
    if tensor.segment is not None:
        raise ConvertError(f"{what} is a segment of another one, which is not read")
    name, field = _ELEMENTS[tensor.data_type]
    dtype = element_dtype(name)
    shape = known_shape(tensor.dims, dtype, what)
    raw = _external(tensor, directory, what) if tensor.data_location == EXTERNAL else tensor.raw_data
    if tensor.has("raw_data") or tensor.data_location == EXTERNAL:
        if dtype.hasobject:
            raise ConvertError(f"{what} has strings as raw data; string_data is read")
        if tensor.data_type in _PACKED:
            return _unpacked(np.frombuffer(raw, np.uint8), tensor.data_type, shape, what)
        return from_bytes(raw, dtype, shape, what)
    stored = getattr(tensor, field)
    if tensor.data_type in _PACKED:
        return _unpacked(stored.astype(np.uint8), tensor.data_type, shape, what)
    values = _values(stored, dtype, what)
    if values.size != math.prod(shape):
        raise ConvertError(f"{what} has {values.size} values in {field}; {list(shape)} has {math.prod(shape)} elements")
    return values.reshape(shape)


def _values(stored: Any, dtype: np.dtype[Any], what: str) -> NDArray[Any]:
    """The values that are written out one by one."""
    if dtype.hasobject:
        return of_strings(stored)
    if dtype.kind == "c":
        if stored.size % 2:
            raise ConvertError(f"{what} has {stored.size} numbers; complex numbers take two each")
        return stored.view(dtype)  # type: ignore[no-any-return]
    if stored.dtype == np.int32 and dtype.kind not in "iub":  # their bits, as numbers
        return stored.astype(f"<u{dtype.itemsize}").view(dtype)  # type: ignore[no-any-return]
    return stored.astype(dtype, copy=False)  # type: ignore[no-any-return]


def _unpacked(packed: NDArray[np.uint8], data_type: DataType, shape: tuple[int, ...], what: str) -> NDArray[Any]:
    kind = _PACKED[data_type]
    count = math.prod(shape)
    if packed.size != dtypes.byte_size(kind, count):
        raise ConvertError(
            f"{what} has {packed.size} bytes; {data_type.name}{list(shape)} takes {dtypes.byte_size(kind, count)}"
        )
    values: NDArray[Any] = dtypes.unpack(packed, kind, count).reshape(shape)
    if data_type == DataType.UINT2:
        return values.view(np.uint8) & np.uint8(3)
    return values.view(element_dtype(_ELEMENTS[data_type][0]))


def _external(tensor: TensorProto, directory: str | os.PathLike[str] | None, what: str) -> memoryview:
    """The part of a file that holds the data."""
    entries = {entry.key: entry.value for entry in tensor.external_data}
    if directory is None:
        raise ConvertError(f"{what} has its data in {entries.get('location')!r}; say in which directory that is")
    data = map_file(inside(directory, entries.get("location", ""), f"{what}: its data"))
    numbers: list[int] = []
    for key, default in (("offset", 0), ("length", None)):
        text = entries.get(key, str(default) if default is not None else "")
        if text and not (text.isascii() and text.isdigit() and len(text) < 20):
            raise ConvertError(f"{what}: the {key} of its data is {text!r}, must be a number")
        numbers.append(int(text) if text else len(data) - numbers[0])
    offset, length = numbers
    if not 0 <= length <= len(data) - offset:
        raise ConvertError(f"{what} is at bytes {offset} to {offset + length} of a file that has {len(data)}")
    return data[offset : offset + length]


def sparse_array(tensor: SparseTensorProto, directory: str | os.PathLike[str] | None = None) -> NDArray[Any]:
    """The dense values, zero where none is stored; indices count elements or name them by an index per dimension.

    Raises `ConvertError` as `tensor_array` does, for indices outside of the shape, and for a dense array of more than
    `MAX_EXPANDED` bytes.
    """
    if tensor.values is None or tensor.indices is None:
        raise ConvertError("a sparse tensor has no values or no indices")
    what = f"sparse tensor {tensor.values.name!r}"
    values, indices = tensor_array(tensor.values, directory), tensor_array(tensor.indices, directory)
    shape = known_shape(tensor.dims, values.dtype, what)
    count = math.prod(shape)
    if not shape:
        raise ConvertError(f"{what} is a scalar, which cannot be sparse")
    if count * values.itemsize > MAX_EXPANDED:
        raise ConvertError(f"{what} takes {count * values.itemsize} bytes; at most {MAX_EXPANDED} are allowed")
    legal = values.shape == (values.size,) and indices.shape in ((values.size,), (values.size, len(shape)))
    if indices.dtype != np.int64 or values.dtype.hasobject or not legal:
        raise ConvertError(f"{what} has indices {indices.dtype}{list(indices.shape)} for values {list(values.shape)}")
    sizes = np.array([count] if indices.ndim == 1 else shape, np.int64)
    columns = indices if indices.ndim == 2 else indices[:, None]
    if values.size and not ((columns >= 0) & (columns < sizes)).all():
        raise ConvertError(f"{what} has an index outside of its shape {list(shape)}")
    dense = np.zeros(count, values.dtype)
    places = columns[:, 0] if indices.ndim == 1 else np.ravel_multi_index(tuple(columns.T), shape)
    dense[places] = values.reshape(-1)
    return dense.reshape(shape)
