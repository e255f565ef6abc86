"""ONNX's messages, as of IR version 14; the numbers are those of its ``.proto`` file."""

from __future__ import annotations

from gossamer.convert.wire import (
    Message,
    bytes_,
    double,
    enum,
    float_,
    int32,
    int64,
    message,
    messages,
    string,
    uint64,
    view,
)
from gossamer.schema.enumeration import IntEnum
from gossamer.schema.fields import Array


class DataType(IntEnum):
    """Of elements; not of their bytes in a file: the types of less than 8 bits are packed there, low bits first."""

    UNDEFINED = 0
    FLOAT = 1
    UINT8 = 2
    INT8 = 3
    UINT16 = 4
    INT16 = 5
    INT32 = 6
    INT64 = 7
    STRING = 8
    BOOL = 9
    FLOAT16 = 10
    DOUBLE = 11
    UINT32 = 12
    UINT64 = 13
    COMPLEX64 = 14
    COMPLEX128 = 15
    BFLOAT16 = 16
    FLOAT8E4M3FN = 17
    FLOAT8E4M3FNUZ = 18
    FLOAT8E5M2 = 19
    FLOAT8E5M2FNUZ = 20
    UINT4 = 21
    INT4 = 22
    FLOAT4E2M1 = 23
    FLOAT8E8M0 = 24
    UINT2 = 25
    INT2 = 26
    FLOAT6E2M3 = 27
    FLOAT6E3M2 = 28


element_type = enum(DataType)


class AttributeType(IntEnum):
    UNDEFINED = 0
    FLOAT = 1
    INT = 2
    STRING = 3
    TENSOR = 4
    GRAPH = 5
    SPARSE_TENSOR = 11
    TYPE_PROTO = 13
    FLOATS = 6
    INTS = 7
    STRINGS = 8
    TENSORS = 9
    GRAPHS = 10
    SPARSE_TENSORS = 12
    TYPE_PROTOS = 14


class ModelProto(Message):
    ir_version: int = int64(1)
    producer_name: str = string(2)
    producer_version: str = string(3)
    domain: str = string(4)
    model_version: int = int64(5)
    doc_string: str = string(6)
    graph: GraphProto | None = message(7, "GraphProto")
    opset_import: tuple[OperatorSetIdProto, ...] = messages(8, "OperatorSetIdProto")
    metadata_props: tuple[StringStringEntryProto, ...] = messages(14, "StringStringEntryProto")
    training_info: tuple[TrainingInfoProto, ...] = messages(20, "TrainingInfoProto")
    functions: tuple[FunctionProto, ...] = messages(25, "FunctionProto")
    configuration: tuple[DeviceConfigurationProto, ...] = messages(26, "DeviceConfigurationProto")


class DeviceConfigurationProto(Message):
    name: str = string(1)
    num_devices: int = int32(2)
    device: tuple[str, ...] = string.repeated(3)


class FunctionProto(Message):
    name: str = string(1)
    input: tuple[str, ...] = string.repeated(4)
    output: tuple[str, ...] = string.repeated(5)
    attribute: tuple[str, ...] = string.repeated(6)
    node: tuple[NodeProto, ...] = messages(7, "NodeProto")
    doc_string: str = string(8)
    opset_import: tuple[OperatorSetIdProto, ...] = messages(9, "OperatorSetIdProto")
    domain: str = string(10)
    attribute_proto: tuple[AttributeProto, ...] = messages(11, "AttributeProto")
    value_info: tuple[ValueInfoProto, ...] = messages(12, "ValueInfoProto")
    overload: str = string(13)
    metadata_props: tuple[StringStringEntryProto, ...] = messages(14, "StringStringEntryProto")


class TrainingInfoProto(Message):
    initialization: GraphProto | None = message(1, "GraphProto")
    algorithm: GraphProto | None = message(2, "GraphProto")
    initialization_binding: tuple[StringStringEntryProto, ...] = messages(3, "StringStringEntryProto")
    update_binding: tuple[StringStringEntryProto, ...] = messages(4, "StringStringEntryProto")


class GraphProto(Message):
    node: tuple[NodeProto, ...] = messages(1, "NodeProto")
    name: str = string(2)
    initializer: tuple[TensorProto, ...] = messages(5, "TensorProto")
    doc_string: str = string(10)
    input: tuple[ValueInfoProto, ...] = messages(11, "ValueInfoProto")
    output: tuple[ValueInfoProto, ...] = messages(12, "ValueInfoProto")
    value_info: tuple[ValueInfoProto, ...] = messages(13, "ValueInfoProto")
    quantization_annotation: tuple[TensorAnnotation, ...] = messages(14, "TensorAnnotation")
    sparse_initializer: tuple[SparseTensorProto, ...] = messages(15, "SparseTensorProto")
    metadata_props: tuple[StringStringEntryProto, ...] = messages(16, "StringStringEntryProto")


class TensorAnnotation(Message):
    tensor_name: str = string(1)
    quant_parameter_tensor_names: tuple[StringStringEntryProto, ...] = messages(2, "StringStringEntryProto")


class ValueInfoProto(Message):
    name: str = string(1)
    type: TypeProto | None = message(2, "TypeProto")
    doc_string: str = string(3)
    metadata_props: tuple[StringStringEntryProto, ...] = messages(4, "StringStringEntryProto")


class NodeProto(Message):
    input: tuple[str, ...] = string.repeated(1)
    output: tuple[str, ...] = string.repeated(2)
    name: str = string(3)
    op_type: str = string(4)
    attribute: tuple[AttributeProto, ...] = messages(5, "AttributeProto")
    doc_string: str = string(6)
    domain: str = string(7)
    overload: str = string(8)
    metadata_props: tuple[StringStringEntryProto, ...] = messages(9, "StringStringEntryProto")
    device_configurations: tuple[NodeDeviceConfigurationProto, ...] = messages(10, "NodeDeviceConfigurationProto")


class NodeDeviceConfigurationProto(Message):
    configuration_id: str = string(1)
    sharding_spec: tuple[ShardingSpecProto, ...] = messages(2, "ShardingSpecProto")
    pipeline_stage: int = int32(3)


class ShardingSpecProto(Message):
    tensor_name: str = string(1)
    device: tuple[int, ...] = int64.repeated(2, packed=False)
    index_to_device_group_map: tuple[IntIntListEntryProto, ...] = messages(3, "IntIntListEntryProto")
    sharded_dim: tuple[ShardedDimProto, ...] = messages(4, "ShardedDimProto")


class ShardedDimProto(Message):
    axis: int = int64(1)
    simple_sharding: tuple[SimpleShardedDimProto, ...] = messages(2, "SimpleShardedDimProto")


class SimpleShardedDimProto(Message):
    dim_value: int = int64(1, oneof="dim")
    dim_param: str = string(2, oneof="dim")
    num_shards: int = int64(3)


class IntIntListEntryProto(Message):
    key: int = int64(1)
    value: tuple[int, ...] = int64.repeated(2, packed=False)


class AttributeProto(Message):
    name: str = string(1)
    f: float = float_(2)
    i: int = int64(3)
    s: bytes = bytes_(4)
    t: TensorProto | None = message(5, "TensorProto")
    g: GraphProto | None = message(6, "GraphProto")
    floats: tuple[float, ...] = float_.repeated(7, packed=False)
    ints: tuple[int, ...] = int64.repeated(8, packed=False)
    strings: tuple[bytes, ...] = bytes_.repeated(9)
    tensors: tuple[TensorProto, ...] = messages(10, "TensorProto")
    graphs: tuple[GraphProto, ...] = messages(11, "GraphProto")
    doc_string: str = string(13)
    tp: TypeProto | None = message(14, "TypeProto")
    type_protos: tuple[TypeProto, ...] = messages(15, "TypeProto")
    type: AttributeType = enum(AttributeType)(20)
    ref_attr_name: str = string(21)
    sparse_tensor: SparseTensorProto | None = message(22, "SparseTensorProto")
    sparse_tensors: tuple[SparseTensorProto, ...] = messages(23, "SparseTensorProto")


class TypeProto(Message):
    class Tensor(Message):
        elem_type: DataType = element_type(1)
        shape: TensorShapeProto | None = message(2, "TensorShapeProto")

    class Sequence(Message):
        elem_type: TypeProto | None = message(1, "TypeProto")

    class Map(Message):
        key_type: DataType = element_type(1)
        value_type: TypeProto | None = message(2, "TypeProto")

    class Optional(Message):
        elem_type: TypeProto | None = message(1, "TypeProto")

    class SparseTensor(Message):
        elem_type: DataType = element_type(1)
        shape: TensorShapeProto | None = message(2, "TensorShapeProto")

    class Opaque(Message):
        domain: str = string(1)
        name: str = string(2)

    tensor_type: TypeProto.Tensor | None = message(1, "TypeProto.Tensor", oneof="value")
    sequence_type: TypeProto.Sequence | None = message(4, "TypeProto.Sequence", oneof="value")
    map_type: TypeProto.Map | None = message(5, "TypeProto.Map", oneof="value")
    denotation: str = string(6)
    opaque_type: TypeProto.Opaque | None = message(7, "TypeProto.Opaque", oneof="value")
    sparse_tensor_type: TypeProto.SparseTensor | None = message(8, "TypeProto.SparseTensor", oneof="value")
    optional_type: TypeProto.Optional | None = message(9, "TypeProto.Optional", oneof="value")


class TensorShapeProto(Message):
    class Dimension(Message):
        dim_value: int = int64(1, oneof="value")
        dim_param: str = string(2, oneof="value")
        denotation: str = string(3)

    dim: tuple[TensorShapeProto.Dimension, ...] = messages(1, "TensorShapeProto.Dimension")


class SparseTensorProto(Message):
    values: TensorProto | None = message(1, "TensorProto")
    indices: TensorProto | None = message(2, "TensorProto")
    dims: tuple[int, ...] = int64.repeated(3, packed=False)


class TensorProto(Message):
    class Segment(Message):
        begin: int = int64(1)
        end: int = int64(2)

    dims: tuple[int, ...] = int64.repeated(1, packed=False)
    data_type: DataType = element_type(2)
    segment: TensorProto.Segment | None = message(3, "TensorProto.Segment")
    float_data: Array = float_.array(4)
    int32_data: Array = int32.array(5)
    string_data: tuple[bytes, ...] = bytes_.repeated(6)
    int64_data: Array = int64.array(7)
    name: str = string(8)
    raw_data: memoryview = view(9)
    double_data: Array = double.array(10)
    uint64_data: Array = uint64.array(11)
    doc_string: str = string(12)
    external_data: tuple[StringStringEntryProto, ...] = messages(13, "StringStringEntryProto")
    data_location: int = int32(14)
    metadata_props: tuple[StringStringEntryProto, ...] = messages(16, "StringStringEntryProto")


class StringStringEntryProto(Message):
    key: str = string(1)
    value: str = string(2)


class OperatorSetIdProto(Message):
    domain: str = string(1)
    version: int = int64(2)
