"""TensorFlow's messages: SavedModels, graphs, functions, checkpoints; the numbers are those of its ``.proto`` files.

An enumeration that nothing here looks at is its number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gossamer.convert.wire import (
    Message,
    boolean,
    bytes_,
    double,
    enum,
    fixed32,
    fixed64,
    float_,
    int32,
    int64,
    mapping,
    message,
    messages,
    sint64,
    string,
    uint32,
    uint64,
    view,
)
from gossamer.schema.enumeration import IntEnum
from gossamer.schema.fields import Array


class DataType(IntEnum):
    DT_INVALID = 0
    DT_FLOAT = 1
    DT_DOUBLE = 2
    DT_INT32 = 3
    DT_UINT8 = 4
    DT_INT16 = 5
    DT_INT8 = 6
    DT_STRING = 7
    DT_COMPLEX64 = 8
    DT_INT64 = 9
    DT_BOOL = 10
    DT_QINT8 = 11
    DT_QUINT8 = 12
    DT_QINT32 = 13
    DT_BFLOAT16 = 14
    DT_QINT16 = 15
    DT_QUINT16 = 16
    DT_UINT16 = 17
    DT_COMPLEX128 = 18
    DT_HALF = 19
    DT_RESOURCE = 20
    DT_VARIANT = 21
    DT_UINT32 = 22
    DT_UINT64 = 23
    DT_FLOAT8_E5M2 = 24
    DT_FLOAT8_E4M3FN = 25
    DT_FLOAT8_E4M3FNUZ = 26
    DT_FLOAT8_E4M3B11FNUZ = 27
    DT_FLOAT8_E5M2FNUZ = 28
    DT_INT4 = 29
    DT_UINT4 = 30
    DT_INT2 = 31
    DT_UINT2 = 32
    DT_FLOAT4_E2M1FN = 33


data_type = enum(DataType)


class Endianness(IntEnum):
    LITTLE = 0
    BIG = 1


class SavedModel(Message):
    saved_model_schema_version: int = int64(1)
    meta_graphs: tuple[MetaGraphDef, ...] = messages(2, "MetaGraphDef")


class MetaGraphDef(Message):
    class MetaInfoDef(Message):
        meta_graph_version: str = string(1)
        stripped_op_list: OpList | None = message(2, "OpList")
        any_info: Any | None = message(3, "Any")
        tags: tuple[str, ...] = string.repeated(4)
        tensorflow_version: str = string(5)
        tensorflow_git_version: str = string(6)
        stripped_default_attrs: bool = boolean(7)
        function_aliases: Mapping[str, str] = mapping(8, string, string)

    meta_info_def: MetaGraphDef.MetaInfoDef | None = message(1, "MetaGraphDef.MetaInfoDef")
    graph_def: GraphDef | None = message(2, "GraphDef")
    saver_def: SaverDef | None = message(3, "SaverDef")
    collection_def: Mapping[str, CollectionDef] = mapping(4, string, "CollectionDef")
    signature_def: Mapping[str, SignatureDef] = mapping(5, string, "SignatureDef")
    asset_file_def: tuple[AssetFileDef, ...] = messages(6, "AssetFileDef")
    object_graph_def: SavedObjectGraph | None = message(7, "SavedObjectGraph")


class SavedObjectGraph(Message):
    nodes: tuple[SavedObject, ...] = messages(1, "SavedObject")
    concrete_functions: Mapping[str, SavedConcreteFunction] = mapping(2, string, "SavedConcreteFunction")


class SavedObject(Message):
    children: tuple[TrackableObjectGraph.TrackableObject.ObjectReference, ...] = messages(
        1, "TrackableObjectGraph.TrackableObject.ObjectReference"
    )
    slot_variables: tuple[TrackableObjectGraph.TrackableObject.SlotVariableReference, ...] = messages(
        3, "TrackableObjectGraph.TrackableObject.SlotVariableReference"
    )
    user_object: SavedUserObject | None = message(4, "SavedUserObject", oneof="kind")
    asset: SavedAsset | None = message(5, "SavedAsset", oneof="kind")
    function: SavedFunction | None = message(6, "SavedFunction", oneof="kind")
    variable: SavedVariable | None = message(7, "SavedVariable", oneof="kind")
    bare_concrete_function: SavedBareConcreteFunction | None = message(8, "SavedBareConcreteFunction", oneof="kind")
    constant: SavedConstant | None = message(9, "SavedConstant", oneof="kind")
    resource: SavedResource | None = message(10, "SavedResource", oneof="kind")
    saveable_objects: Mapping[str, SaveableObject] = mapping(11, string, "SaveableObject")
    captured_tensor: CapturedTensor | None = message(12, "CapturedTensor", oneof="kind")
    registered_name: str = string(13)
    serialized_user_proto: Any | None = message(14, "Any")
    dependencies: tuple[TrackableObjectGraph.TrackableObject.ObjectReference, ...] = messages(
        15, "TrackableObjectGraph.TrackableObject.ObjectReference"
    )
    registered_saver: str = string(16)


class CapturedTensor(Message):
    name: str = string(1)
    concrete_function: str = string(2)


class SavedResource(Message):
    device: str = string(1)


class SavedConstant(Message):
    operation: str = string(1)


class SavedBareConcreteFunction(Message):
    concrete_function_name: str = string(1)
    argument_keywords: tuple[str, ...] = string.repeated(2)
    allowed_positional_arguments: int = int64(3)
    function_spec: FunctionSpec | None = message(4, "FunctionSpec")


class SavedVariable(Message):
    dtype: DataType = data_type(1)
    shape: TensorShapeProto | None = message(2, "TensorShapeProto")
    trainable: bool = boolean(3)
    synchronization: int = int32(4)
    aggregation: int = int32(5)
    name: str = string(6)
    device: str = string(7)
    experimental_distributed_variable_components: tuple[SavedVariable, ...] = messages(8, "SavedVariable")


class SavedFunction(Message):
    concrete_functions: tuple[str, ...] = string.repeated(1)
    function_spec: FunctionSpec | None = message(2, "FunctionSpec")


class FunctionSpec(Message):
    fullargspec: StructuredValue | None = message(1, "StructuredValue")
    is_method: bool = boolean(2)
    input_signature: StructuredValue | None = message(5, "StructuredValue")
    jit_compile: int = int32(6)


class SavedAsset(Message):
    asset_file_def_index: int = int32(1)


class SavedUserObject(Message):
    identifier: str = string(1)
    version: VersionDef | None = message(2, "VersionDef")
    metadata: str = string(3)


class TrackableObjectGraph(Message):
    class TrackableObject(Message):
        class ObjectReference(Message):
            node_id: int = int32(1)
            local_name: str = string(2)

        class SerializedTensor(Message):
            name: str = string(1)
            full_name: str = string(2)
            checkpoint_key: str = string(3)

        class SlotVariableReference(Message):
            original_variable_node_id: int = int32(1)
            slot_name: str = string(2)
            slot_variable_node_id: int = int32(3)

        children: tuple[TrackableObjectGraph.TrackableObject.ObjectReference, ...] = messages(
            1, "TrackableObjectGraph.TrackableObject.ObjectReference"
        )
        attributes: tuple[TrackableObjectGraph.TrackableObject.SerializedTensor, ...] = messages(
            2, "TrackableObjectGraph.TrackableObject.SerializedTensor"
        )
        slot_variables: tuple[TrackableObjectGraph.TrackableObject.SlotVariableReference, ...] = messages(
            3, "TrackableObjectGraph.TrackableObject.SlotVariableReference"
        )
        registered_saver: RegisteredSaver | None = message(4, "RegisteredSaver")
        has_checkpoint_values: BoolValue | None = message(5, "BoolValue")

    nodes: tuple[TrackableObjectGraph.TrackableObject, ...] = messages(1, "TrackableObjectGraph.TrackableObject")


class BoolValue(Message):
    value: bool = boolean(1)


class RegisteredSaver(Message):
    name: str = string(1)
    object_name: str = string(2)


class SaveableObject(Message):
    save_function: int = int32(2)
    restore_function: int = int32(3)


class SavedConcreteFunction(Message):
    bound_inputs: tuple[int, ...] = int32.repeated(2)
    canonicalized_input_signature: StructuredValue | None = message(3, "StructuredValue")
    output_signature: StructuredValue | None = message(4, "StructuredValue")


class AssetFileDef(Message):
    tensor_info: TensorInfo | None = message(1, "TensorInfo")
    filename: str = string(2)


class SaverDef(Message):
    filename_tensor_name: str = string(1)
    save_tensor_name: str = string(2)
    restore_op_name: str = string(3)
    max_to_keep: int = int32(4)
    sharded: bool = boolean(5)
    keep_checkpoint_every_n_hours: float = float_(6)
    version: int = int32(7)


class GraphDef(Message):
    node: tuple[NodeDef, ...] = messages(1, "NodeDef")
    library: FunctionDefLibrary | None = message(2, "FunctionDefLibrary")
    version: int = int32(3)
    versions: VersionDef | None = message(4, "VersionDef")
    debug_info: GraphDebugInfo | None = message(5, "GraphDebugInfo")


class GraphDebugInfo(Message):
    class FileLineCol(Message):
        file_index: int = int32(1)
        line: int = int32(2)
        col: int = int32(3)
        func: str = string(4)
        code: str = string(5)

    class StackTrace(Message):
        file_line_cols: tuple[GraphDebugInfo.FileLineCol, ...] = messages(1, "GraphDebugInfo.FileLineCol")
        frame_id: tuple[int, ...] = fixed64.repeated(2)

    files: tuple[str, ...] = string.repeated(1)
    traces: Mapping[str, GraphDebugInfo.StackTrace] = mapping(2, string, "GraphDebugInfo.StackTrace")
    frames_by_id: Mapping[int, GraphDebugInfo.FileLineCol] = mapping(4, fixed64, "GraphDebugInfo.FileLineCol")
    name_to_trace_id: Mapping[str, int] = mapping(5, string, fixed64)
    traces_by_id: Mapping[int, GraphDebugInfo.StackTrace] = mapping(6, fixed64, "GraphDebugInfo.StackTrace")


class FunctionDefLibrary(Message):
    function: tuple[FunctionDef, ...] = messages(1, "FunctionDef")
    gradient: tuple[GradientDef, ...] = messages(2, "GradientDef")
    registered_gradients: tuple[RegisteredGradient, ...] = messages(3, "RegisteredGradient")


class RegisteredGradient(Message):
    gradient_func: str = string(1)
    registered_op_type: str = string(2)


class GradientDef(Message):
    function_name: str = string(1)
    gradient_func: str = string(2)


class FunctionDef(Message):
    class ArgAttrs(Message):
        attr: Mapping[str, AttrValue] = mapping(1, string, "AttrValue")

    signature: OpDef | None = message(1, "OpDef")
    node_def: Sequence[NodeDef] = messages(3, "NodeDef", late=True)
    ret: Mapping[str, str] = mapping(4, string, string)
    attr: Mapping[str, AttrValue] = mapping(5, string, "AttrValue")
    control_ret: Mapping[str, str] = mapping(6, string, string)
    arg_attr: Mapping[int, FunctionDef.ArgAttrs] = mapping(7, uint32, "FunctionDef.ArgAttrs")
    resource_arg_unique_id: Mapping[int, int] = mapping(8, uint32, uint32)


class VersionDef(Message):
    producer: int = int32(1)
    min_consumer: int = int32(2)
    bad_consumers: tuple[int, ...] = int32.repeated(3)


class NodeDef(Message):
    class ExperimentalDebugInfo(Message):
        original_node_names: tuple[str, ...] = string.repeated(1)
        original_func_names: tuple[str, ...] = string.repeated(2)

    name: str = string(1)
    op: str = string(2)
    input: tuple[str, ...] = string.repeated(3)
    device: str = string(4)
    attr: Mapping[str, AttrValue] = mapping(5, string, "AttrValue")
    experimental_debug_info: NodeDef.ExperimentalDebugInfo | None = message(6, "NodeDef.ExperimentalDebugInfo")
    experimental_type: FullTypeDef | None = message(7, "FullTypeDef")


class SignatureDef(Message):
    inputs: Mapping[str, TensorInfo] = mapping(1, string, "TensorInfo")
    outputs: Mapping[str, TensorInfo] = mapping(2, string, "TensorInfo")
    method_name: str = string(3)
    defaults: Mapping[str, TensorProto] = mapping(4, string, "TensorProto")


class TensorInfo(Message):
    class CooSparse(Message):
        values_tensor_name: str = string(1)
        indices_tensor_name: str = string(2)
        dense_shape_tensor_name: str = string(3)

    class CompositeTensor(Message):
        type_spec: TypeSpecProto | None = message(1, "TypeSpecProto")
        components: tuple[TensorInfo, ...] = messages(2, "TensorInfo")

    name: str = string(1, oneof="encoding")
    dtype: DataType = data_type(2)
    tensor_shape: TensorShapeProto | None = message(3, "TensorShapeProto")
    coo_sparse: TensorInfo.CooSparse | None = message(4, "TensorInfo.CooSparse", oneof="encoding")
    composite_tensor: TensorInfo.CompositeTensor | None = message(5, "TensorInfo.CompositeTensor", oneof="encoding")


class TypeSpecProto(Message):
    type_spec_class: int = int32(1)
    type_state: StructuredValue | None = message(2, "StructuredValue")
    type_spec_class_name: str = string(3)
    num_flat_components: int = int32(4)


class StructuredValue(Message):
    none_value: NoneValue | None = message(1, "NoneValue", oneof="kind")
    float64_value: float = double(11, oneof="kind")
    int64_value: int = sint64(12, oneof="kind")
    string_value: str = string(13, oneof="kind")
    bool_value: bool = boolean(14, oneof="kind")
    tensor_shape_value: TensorShapeProto | None = message(31, "TensorShapeProto", oneof="kind")
    tensor_dtype_value: DataType = data_type(32, oneof="kind")
    tensor_spec_value: TensorSpecProto | None = message(33, "TensorSpecProto", oneof="kind")
    type_spec_value: TypeSpecProto | None = message(34, "TypeSpecProto", oneof="kind")
    bounded_tensor_spec_value: BoundedTensorSpecProto | None = message(35, "BoundedTensorSpecProto", oneof="kind")
    list_value: ListValue | None = message(51, "ListValue", oneof="kind")
    tuple_value: TupleValue | None = message(52, "TupleValue", oneof="kind")
    dict_value: DictValue | None = message(53, "DictValue", oneof="kind")
    named_tuple_value: NamedTupleValue | None = message(54, "NamedTupleValue", oneof="kind")
    tensor_value: TensorProto | None = message(55, "TensorProto", oneof="kind")
    numpy_value: TensorProto | None = message(56, "TensorProto", oneof="kind")


class NamedTupleValue(Message):
    name: str = string(1)
    values: tuple[PairValue, ...] = messages(2, "PairValue")


class PairValue(Message):
    key: str = string(1)
    value: StructuredValue | None = message(2, "StructuredValue")


class DictValue(Message):
    fields: Mapping[str, StructuredValue] = mapping(1, string, "StructuredValue")


class TupleValue(Message):
    values: tuple[StructuredValue, ...] = messages(1, "StructuredValue")


class ListValue(Message):
    values: tuple[StructuredValue, ...] = messages(1, "StructuredValue")


class BoundedTensorSpecProto(Message):
    name: str = string(1)
    shape: TensorShapeProto | None = message(2, "TensorShapeProto")
    dtype: DataType = data_type(3)
    minimum: TensorProto | None = message(4, "TensorProto")
    maximum: TensorProto | None = message(5, "TensorProto")


class TensorSpecProto(Message):
    name: str = string(1)
    shape: TensorShapeProto | None = message(2, "TensorShapeProto")
    dtype: DataType = data_type(3)


class NoneValue(Message):
    pass


class CollectionDef(Message):
    class NodeList(Message):
        value: tuple[str, ...] = string.repeated(1)

    class BytesList(Message):
        value: tuple[bytes, ...] = bytes_.repeated(1)

    class Int64List(Message):
        value: tuple[int, ...] = int64.repeated(1)

    class FloatList(Message):
        value: tuple[float, ...] = float_.repeated(1)

    class AnyList(Message):
        value: tuple[Any, ...] = messages(1, "Any")

    node_list: CollectionDef.NodeList | None = message(1, "CollectionDef.NodeList", oneof="kind")
    bytes_list: CollectionDef.BytesList | None = message(2, "CollectionDef.BytesList", oneof="kind")
    int64_list: CollectionDef.Int64List | None = message(3, "CollectionDef.Int64List", oneof="kind")
    float_list: CollectionDef.FloatList | None = message(4, "CollectionDef.FloatList", oneof="kind")
    any_list: CollectionDef.AnyList | None = message(5, "CollectionDef.AnyList", oneof="kind")


class Any(Message):
    type_url: str = string(1)
    value: memoryview = view(2)


class OpList(Message):
    op: tuple[OpDef, ...] = messages(1, "OpDef")


class OpDef(Message):
    class ArgDef(Message):
        name: str = string(1)
        description: str = string(2)
        type: DataType = data_type(3)
        type_attr: str = string(4)
        number_attr: str = string(5)
        type_list_attr: str = string(6)
        handle_data: Sequence[ResourceHandleProto.DtypeAndShape] = messages(
            7, "ResourceHandleProto.DtypeAndShape", late=True
        )
        is_ref: bool = boolean(16)
        experimental_full_type: FullTypeDef | None = message(17, "FullTypeDef")

    class AttrDef(Message):
        name: str = string(1)
        type: str = string(2)
        default_value: AttrValue | None = message(3, "AttrValue")
        description: str = string(4)
        has_minimum: bool = boolean(5)
        minimum: int = int64(6)
        allowed_values: AttrValue | None = message(7, "AttrValue")

    name: str = string(1)
    input_arg: tuple[OpDef.ArgDef, ...] = messages(2, "OpDef.ArgDef")
    output_arg: tuple[OpDef.ArgDef, ...] = messages(3, "OpDef.ArgDef")
    attr: tuple[OpDef.AttrDef, ...] = messages(4, "OpDef.AttrDef")
    summary: str = string(5)
    description: str = string(6)
    deprecation: OpDeprecation | None = message(8, "OpDeprecation")
    is_aggregate: bool = boolean(16)
    is_stateful: bool = boolean(17)
    is_commutative: bool = boolean(18)
    allows_uninitialized_input: bool = boolean(19)
    control_output: tuple[str, ...] = string.repeated(20)
    is_distributed_communication: bool = boolean(21)


class OpDeprecation(Message):
    version: int = int32(1)
    explanation: str = string(2)


class AttrValue(Message):
    class ListValue(Message):
        s: tuple[bytes, ...] = bytes_.repeated(2)
        i: tuple[int, ...] = int64.repeated(3)
        f: tuple[float, ...] = float_.repeated(4)
        b: tuple[bool, ...] = boolean.repeated(5)
        type: tuple[DataType, ...] = data_type.repeated(6)
        shape: tuple[TensorShapeProto, ...] = messages(7, "TensorShapeProto")
        tensor: tuple[TensorProto, ...] = messages(8, "TensorProto")
        func: tuple[NameAttrList, ...] = messages(9, "NameAttrList")

    list: AttrValue.ListValue | None = message(1, "AttrValue.ListValue", oneof="value")
    s: bytes = bytes_(2, oneof="value")
    i: int = int64(3, oneof="value")
    f: float = float_(4, oneof="value")
    b: bool = boolean(5, oneof="value")
    type: DataType = data_type(6, oneof="value")
    shape: TensorShapeProto | None = message(7, "TensorShapeProto", oneof="value")
    tensor: TensorProto | None = message(8, "TensorProto", oneof="value")
    placeholder: str = string(9, oneof="value")
    func: NameAttrList | None = message(10, "NameAttrList", oneof="value")


class NameAttrList(Message):
    name: str = string(1)
    attr: Mapping[str, AttrValue] = mapping(2, string, "AttrValue")


class TensorProto(Message):
    dtype: DataType = data_type(1)
    tensor_shape: TensorShapeProto | None = message(2, "TensorShapeProto")
    version_number: int = int32(3)
    tensor_content: memoryview = view(4)
    float_val: Array = float_.array(5)
    double_val: Array = double.array(6)
    int_val: Array = int32.array(7)
    string_val: tuple[bytes, ...] = bytes_.repeated(8)
    scomplex_val: Array = float_.array(9)
    int64_val: Array = int64.array(10)
    bool_val: Array = boolean.array(11)
    dcomplex_val: Array = double.array(12)
    half_val: Array = int32.array(13)
    resource_handle_val: tuple[ResourceHandleProto, ...] = messages(14, "ResourceHandleProto")
    variant_val: tuple[VariantTensorDataProto, ...] = messages(15, "VariantTensorDataProto")
    uint32_val: Array = uint32.array(16)
    uint64_val: Array = uint64.array(17)
    float8_val: memoryview = view(18)


class VariantTensorDataProto(Message):
    type_name: str = string(1)
    metadata: memoryview = view(2)
    tensors: tuple[TensorProto, ...] = messages(3, "TensorProto")


class FullTypeDef(Message):
    type_id: int = int32(1)
    args: tuple[FullTypeDef, ...] = messages(2, "FullTypeDef")
    s: str = string(3, oneof="attr")
    i: int = int64(4, oneof="attr")


class ResourceHandleProto(Message):
    class DtypeAndShape(Message):
        dtype: DataType = data_type(1)
        shape: TensorShapeProto | None = message(2, "TensorShapeProto")

    device: str = string(1)
    container: str = string(2)
    name: str = string(3)
    hash_code: int = uint64(4)
    maybe_type_name: str = string(5)
    dtypes_and_shapes: tuple[ResourceHandleProto.DtypeAndShape, ...] = messages(6, "ResourceHandleProto.DtypeAndShape")


class TensorShapeProto(Message):
    class Dim(Message):
        size: int = int64(1)
        name: str = string(2)

    dim: tuple[TensorShapeProto.Dim, ...] = messages(2, "TensorShapeProto.Dim")
    unknown_rank: bool = boolean(3)


class BundleHeaderProto(Message):
    num_shards: int = int32(1)
    endianness: Endianness = enum(Endianness)(2)
    version: VersionDef | None = message(3, "VersionDef")


class BundleEntryProto(Message):
    dtype: DataType = data_type(1)
    shape: TensorShapeProto | None = message(2, "TensorShapeProto")
    shard_id: int = int32(3)
    offset: int = int64(4)
    size: int = int64(5)
    crc32c: int = fixed32(6)
    slices: tuple[TensorSliceProto, ...] = messages(7, "TensorSliceProto")


class TensorSliceProto(Message):
    class Extent(Message):
        start: int = int64(1)
        length: int = int64(2, oneof="has_length_hack")

    extent: tuple[TensorSliceProto.Extent, ...] = messages(1, "TensorSliceProto.Extent")
