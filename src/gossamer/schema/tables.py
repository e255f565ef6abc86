"""The tables of a .tflite model: schema version 3, file identifier ``TFL3``."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from gossamer.schema.enums import (
    BuiltinOperator,
    CustomOptionsFormat,
    DimensionType,
    TensorType,
)
from gossamer.schema.fields import (
    Array,
    Table,
    Union,
    array,
    boolean,
    data,
    enum,
    f32,
    i8,
    i32,
    i64,
    numbers,
    string,
    table,
    u16,
    u32,
    u64,
    union,
    vector,
)

FILE_IDENTIFIER = b"TFL3"
SCHEMA_VERSION = 3


def _options() -> Any:
    return import_module("gossamer.schema.options")


class CustomQuantization(Table):
    custom: Array = data(align=16)


class BlockwiseQuantization(Table):
    scales: int = i32()
    zero_points: int = i32()
    block_size: int = i32()
    block_shape: tuple[int, ...] = numbers(i32)


class MultiAxisQuantization(Table):
    scales: int = i32()
    zero_points: int = i32()
    block_size: int = i32()
    quantized_dimensions: tuple[int, ...] = numbers(i32)


QuantizationDetails = Union(CustomQuantization, BlockwiseQuantization, MultiAxisQuantization)


class QuantizationParameters(Table):
    min: Array = array(f32)
    max: Array = array(f32)
    scale: Array = array(f32)
    zero_point: Array = array(i64)
    details: Table | None = union(QuantizationDetails)
    quantized_dimension: int = i32()


class Int32Vector(Table):
    values: tuple[int, ...] = numbers(i32)


class Uint16Vector(Table):
    values: tuple[int, ...] = numbers(u16, align=4)


class Uint8Vector(Table):
    values: Array = data(align=4)


SparseIndexVector = Union(Int32Vector, Uint16Vector, Uint8Vector)


class DimensionMetadata(Table):
    format: DimensionType = enum(DimensionType, i8)
    dense_size: int = i32()
    array_segments: Table | None = union(SparseIndexVector)
    array_indices: Table | None = union(SparseIndexVector)


class SparsityParameters(Table):
    traversal_order: tuple[int, ...] = numbers(i32)
    block_map: tuple[int, ...] = numbers(i32)
    dim_metadata: tuple[DimensionMetadata, ...] = vector(DimensionMetadata)


class VariantSubType(Table):
    shape: tuple[int, ...] = numbers(i32)
    type: TensorType = enum(TensorType, i8)
    has_rank: bool = boolean()


class Tensor(Table):
    shape: tuple[int, ...] = numbers(i32)
    type: TensorType = enum(TensorType, i8)
    buffer: int = u32()
    name: str = string()
    quantization: QuantizationParameters | None = table(QuantizationParameters)
    is_variable: bool = boolean()
    sparsity: SparsityParameters | None = table(SparsityParameters)
    shape_signature: tuple[int, ...] = numbers(i32)
    has_rank: bool = boolean()
    variant_tensors: tuple[VariantSubType, ...] = vector(VariantSubType)
    external_buffer: int = u32()


class OperatorCode(Table):
    deprecated_builtin_code: int = i8()
    custom_code: str = string()
    version: int = i32(1)
    builtin_code: BuiltinOperator = enum(BuiltinOperator, i32)


class Operator(Table):
    opcode_index: int = u32()
    inputs: tuple[int, ...] = numbers(i32)
    outputs: tuple[int, ...] = numbers(i32)
    builtin_options: Table | None = union(lambda: _options().BuiltinOptions)
    custom_options: Array = data()
    custom_options_format: CustomOptionsFormat = enum(CustomOptionsFormat, i8)
    mutating_variable_inputs: tuple[bool, ...] = numbers(boolean)
    intermediates: tuple[int, ...] = numbers(i32)
    large_custom_options_offset: int = u64()
    large_custom_options_size: int = u64()
    builtin_options_2: Table | None = union(lambda: _options().BuiltinOptions2)
    debug_metadata_index: int = i32(-1)


class SubGraph(Table):
    tensors: tuple[Tensor, ...] = vector(Tensor)
    inputs: tuple[int, ...] = numbers(i32)
    outputs: tuple[int, ...] = numbers(i32)
    operators: tuple[Operator, ...] = vector(Operator)
    name: str = string()
    debug_metadata_index: int = i32(-1)


class Buffer(Table):
    data: Array = data(align=16)
    offset: int = u64()
    size: int = u64()


class ExternalBufferGroup(Table):
    name: str = string()


class ExternalBuffer(Table):
    id: int = u32()
    group: int = u32()
    offset: int = u64()
    length: int = u64()
    packing: str = string()


class Metadata(Table):
    name: str = string()
    buffer: int = u32()


class TensorMap(Table):
    name: str = string()
    tensor_index: int = u32()


class SignatureDef(Table):
    inputs: tuple[TensorMap, ...] = vector(TensorMap)
    outputs: tuple[TensorMap, ...] = vector(TensorMap)
    signature_key: str = string()
    deprecated_tag: str = string()
    subgraph_index: int = u32()


class ModelTable(Table):
    """The root, ``Model`` in the published schema: `gossamer.model.Model` is this table and the file it came from."""

    version: int = u32()
    operator_codes: tuple[OperatorCode, ...] = vector(OperatorCode)
    subgraphs: tuple[SubGraph, ...] = vector(SubGraph)
    description: str = string()
    buffers: tuple[Buffer, ...] = vector(Buffer)
    metadata_buffer: tuple[int, ...] = numbers(i32)
    metadata: tuple[Metadata, ...] = vector(Metadata)
    signature_defs: tuple[SignatureDef, ...] = vector(SignatureDef)
    external_buffer_groups: tuple[ExternalBufferGroup, ...] = vector(ExternalBufferGroup)
    external_buffers: tuple[ExternalBuffer, ...] = vector(ExternalBuffer)
