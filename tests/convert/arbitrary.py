"""Messages that say something in every field, and files that are made of messages: small, whole and different."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from gossamer.convert.crc32c import crc32c, masked
from gossamer.convert.messages import onnx
from gossamer.convert.messages import tensorflow as tf
from gossamer.convert.messages.tensorflow import AttrValue, DataType, NodeDef, OpDef, TensorProto, TensorShapeProto
from gossamer.convert.wire import Message, Scalar, fields_of, write

NUMBERS = {"float": 1.5, "double": -2.5, "bool": True, "string": "ä", "bytes": b"\x00\xff"}
LOWEST = {"int32": -(1 << 31), "int64": -(1 << 63), "sint32": -(1 << 31), "sint64": -(1 << 63), "enum": 3}
HIGHEST = {"uint32": (1 << 32) - 1, "uint64": (1 << 64) - 1, "fixed32": (1 << 32) - 1, "fixed64": (1 << 64) - 1}
VALUES: Mapping[str, Any] = {**NUMBERS, **LOWEST, **HIGHEST}


def all_messages(module: ModuleType) -> dict[str, type[Message]]:
    """The message classes of a module, those inside others too, by their dotted names."""
    found: dict[str, type[Message]] = {}

    def collect(holder: Any, prefix: str) -> None:
        for name, value in vars(holder).items():
            place = getattr(value, "__module__", ""), getattr(value, "__qualname__", "")
            if isinstance(value, type) and place == (module.__name__, f"{prefix}{name}") and issubclass(value, Message):
                found[f"{prefix}{name}"] = value
                collect(value, f"{prefix}{name}.")

    collect(module, "")
    return found


def filled(cls: type[Message], depth: int = 2) -> Message:
    """A message with a value in every field, the last one of each oneof; messages within down to ``depth``."""
    values: dict[str, Any] = {}
    chosen: dict[str, str] = {}
    for field in fields_of(cls):
        of = field.of
        if not isinstance(of, Scalar) and not depth:
            continue
        if field.kind == "map":
            entry = filled(of, depth - 1)
            key = entry.key  # type: ignore[attr-defined]
            empty = of.FIELD["value"].of() if of.FIELD["value"].kind == "message" else None
            values[field.name] = {key: entry.value if empty is None else entry.value or empty}  # type: ignore[attr-defined]
        elif isinstance(of, Scalar):
            value = VALUES[of.name]
            many = np.array([value, of.default], of.dtype) if field.kind == "array" else (value, of.default)
            values[field.name] = value if field.kind == "scalar" else many
        else:
            inner = filled(of, depth - 1)
            values[field.name] = inner if field.kind == "message" else (inner, of())
        if field.oneof:
            values.pop(chosen.get(field.oneof, ""), None)
            chosen[field.oneof] = field.name
    return cls(**values)


def varint(value: int) -> bytes:
    return bytes([value & 127 | 128]) + varint(value >> 7) if value > 127 else bytes([value])


def block(entries: Mapping[bytes, bytes]) -> bytes:
    """A block of a LevelDB table: keys share what they have in common with the one before; one restart."""
    data, before = b"", b""
    for key, value in sorted(entries.items()):
        shared = next((i for i in range(len(key)) if key[: i + 1] != before[: i + 1]), len(key))
        data += varint(shared) + varint(len(key) - shared) + varint(len(value)) + key[shared:] + value
        before = key
    return data + (0).to_bytes(4, "little") + (1).to_bytes(4, "little")


def table(entries: Mapping[bytes, bytes]) -> bytes:
    """A LevelDB table of two blocks with entries."""
    data, index = b"", {}
    keys = sorted(entries)
    for part in (keys[: len(keys) // 2], keys[len(keys) // 2 :]):
        if part:
            content = block({key: entries[key] for key in part})
            index[part[-1]] = varint(len(data)) + varint(len(content))
            data += sealed(content)
    content = block(index)
    footer = varint(0) + varint(0) + varint(len(data)) + varint(len(content))
    return data + sealed(content) + footer.ljust(40, b"\0") + bytes.fromhex("57fb808b247547db")


def sealed(content: bytes) -> bytes:
    return content + b"\0" + masked(crc32c(content + b"\0")).to_bytes(4, "little")


def shape(*sizes: int) -> TensorShapeProto:
    return TensorShapeProto(dim=tuple([TensorShapeProto.Dim(size=size) for size in sizes]))


def write_bundle(prefix: Path, tensors: Mapping[str, tuple[DataType, Any]], shards: int = 1) -> None:
    """A checkpoint whose tensors lie in so many files in turn."""
    prefix.parent.mkdir(parents=True, exist_ok=True)
    data = [b""] * shards
    entries = {b"": write(tf.BundleHeaderProto(num_shards=shards, version=tf.VersionDef(producer=1)))}
    for number, (key, (dtype, value)) in enumerate(sorted(tensors.items())):
        array = np.asarray(value)
        if dtype == DataType.DT_STRING:
            items = [bytes(item) for item in np.asarray(value, object).ravel()]
            array = np.asarray(value, object)
            sizes = b"".join([len(item).to_bytes(4, "little") for item in items])
            sealed_sizes = masked(crc32c(sizes)).to_bytes(4, "little")
            raw = b"".join([*[varint(len(item)) for item in items], sealed_sizes, *items])
            checksum = masked(crc32c(sizes + sealed_sizes + b"".join(items)))
        else:
            raw = array.tobytes()
            checksum = masked(crc32c(raw))
        shard = number % shards
        entry = tf.BundleEntryProto(
            dtype=dtype,
            shape=shape(*array.shape),
            shard_id=shard,
            offset=len(data[shard]),
            size=len(raw),
            crc32c=checksum,
        )
        entries[key.encode()] = write(entry)
        data[shard] += raw
    for shard, content in enumerate(data):
        prefix.with_name(f"{prefix.name}.data-{shard:05d}-of-{shards:05d}").write_bytes(content)
    prefix.with_name(f"{prefix.name}.index").write_bytes(table(entries))


def node(name: str, op: str, *inputs: str, **attributes: AttrValue) -> NodeDef:
    return NodeDef(name=name, op=op, input=inputs, **({"attr": attributes} if attributes else {}))


def of_type(dtype: DataType) -> AttrValue:
    return AttrValue(type=dtype)


def strings(*values: bytes) -> AttrValue:
    tensor = TensorProto(dtype=DataType.DT_STRING, tensor_shape=shape(len(values)), string_val=values)
    return AttrValue(tensor=tensor)


def argument(name: str, dtype: DataType) -> OpDef.ArgDef:
    return OpDef.ArgDef(name=name, type=dtype)


def info(name: str, dtype: DataType, *sizes: int) -> tf.TensorInfo:
    return tf.TensorInfo(name=name, dtype=dtype, tensor_shape=shape(*sizes))


KERNEL = np.arange(6, dtype=np.float32).reshape(3, 2)
FLOAT, RESOURCE, STRING = DataType.DT_FLOAT, DataType.DT_RESOURCE, DataType.DT_STRING


def write_saved_model(directory: Path, shards: int = 1) -> None:
    """A SavedModel of TensorFlow 2: ``y = x @ kernel + bias``, a vocabulary and a constant captured too."""
    result = write_saved_model_pb(directory)
    write_bundle(directory / "variables" / "variables", result, shards)
    (directory / "assets").mkdir()
    (directory / "assets" / "words.txt").write_bytes(b"one\ntwo\n")


def write_saved_model_pb(directory: Path, **changes: Any) -> dict[str, tuple[DataType, Any]]:
    """Its ``saved_model.pb`` alone; returns what belongs into the checkpoint."""
    directory.mkdir(parents=True, exist_ok=True)
    call = tf.NameAttrList(name="wrapper")
    captured = [("bias", RESOURCE), ("path", STRING), ("table", RESOURCE), ("kernel", RESOURCE), ("factor", FLOAT)]
    wrapper = tf.FunctionDef(
        signature=OpDef(
            name="wrapper",
            input_arg=(argument("x", FLOAT), *[argument(name, dtype) for name, dtype in captured]),
            output_arg=(argument("identity", FLOAT),),
        ),
        node_def=(
            node("MatMul/Read", "ReadVariableOp", "kernel"),
            node("MatMul", "MatMul", "x", "MatMul/Read:value:0"),
            node("Identity", "Identity", "MatMul:product:0", "^MatMul/Read"),
        ),
        ret={"identity": "Identity:output:0"},
        control_ret={"MatMul/Read": "MatMul/Read"},
    )
    restore = tf.FunctionDef(
        signature=OpDef(
            name="restore",
            input_arg=(argument("prefix", STRING), argument("first", RESOURCE), argument("second", RESOURCE)),
        ),
        node_def=(
            node("names", "Const", value=strings(b"layer/kernel/.ATTRIBUTES/VARIABLE_VALUE", b"layer/bias")),
            # As TensorFlow stores a vector of equal strings: once.
            node("slices", "Const", value=AttrValue(tensor=TensorProto(dtype=STRING, tensor_shape=shape(2)))),
            node("RestoreV2", "RestoreV2", "prefix", "names:output:0", "slices:output:0"),
            node("Identity", "Identity", "RestoreV2:tensors:0"),
            node("Assign", "AssignVariableOp", "first", "Identity:output:0"),
            node("Identity_1", "Identity", "RestoreV2:tensors:1"),
            node("Assign_1", "AssignVariableOp", "second", "Identity_1:output:0"),
        ),
    )
    nodes = (
        node(
            "k", "VarHandleOp", dtype=of_type(FLOAT), shape=AttrValue(shape=shape(3, 2)), shared_name=AttrValue(s=b"K")
        ),
        node("b", "VarHandleOp", dtype=of_type(FLOAT), shape=AttrValue(shape=shape(2))),
        node("path", "Const", value=strings(b"")),
        node("factor", "Const", value=AttrValue(tensor=TensorProto(dtype=FLOAT, float_val=np.float32([2])))),
        node("table", "HashTableV2"),
        node("serving_default_x", "Placeholder", dtype=of_type(FLOAT)),
        node(
            "Call",
            "StatefulPartitionedCall",
            "serving_default_x",
            "b",
            "path",
            "table",
            "k",
            "factor",
            f=AttrValue(func=call),
        ),
        node("prefix", "Placeholder", dtype=of_type(STRING)),
        node(
            "Restore", "StatefulPartitionedCall", "prefix", "k", "b", f=AttrValue(func=tf.NameAttrList(name="restore"))
        ),
        node("NoOp", "NoOp"),
    )
    child = tf.TrackableObjectGraph.TrackableObject.ObjectReference
    objects = (
        tf.SavedObject(children=(child(node_id=1, local_name="layer"), child(node_id=4, local_name="words"))),
        tf.SavedObject(children=(child(node_id=2, local_name="kernel"), child(node_id=3, local_name="bias"))),
        tf.SavedObject(variable=tf.SavedVariable(dtype=FLOAT, shape=shape(3, 2), name="K")),
        tf.SavedObject(variable=tf.SavedVariable(dtype=FLOAT, shape=shape(-1), name="b")),
        tf.SavedObject(asset=tf.SavedAsset(asset_file_def_index=0)),
        tf.SavedObject(resource=tf.SavedResource()),
        tf.SavedObject(constant=tf.SavedConstant(operation="factor")),
    )
    meta_graph = tf.MetaGraphDef(
        meta_info_def=tf.MetaGraphDef.MetaInfoDef(
            tags=("serve",), stripped_op_list=tf.OpList(op=(OpDef(name="MatMul"),))
        ),
        graph_def=tf.GraphDef(node=nodes, library=tf.FunctionDefLibrary(function=(wrapper, restore))),
        signature_def={
            "serving_default": tf.SignatureDef(
                inputs={"x": info("serving_default_x:0", FLOAT, -1, 3)},
                outputs={"y": info("Call:0", FLOAT, -1, 2)},
                method_name="tensorflow/serving/predict",
            ),
            "__saved_model_init_op": tf.SignatureDef(outputs={"__saved_model_init_op": tf.TensorInfo(name="NoOp")}),
        },
        asset_file_def=(tf.AssetFileDef(tensor_info=tf.TensorInfo(name="path:0"), filename="words.txt"),),
        object_graph_def=tf.SavedObjectGraph(
            nodes=objects, concrete_functions={"wrapper": tf.SavedConcreteFunction(bound_inputs=(3, 4, 5, 2, 6))}
        ),
    ).replace(**changes)
    stored = tf.SavedModel(saved_model_schema_version=1, meta_graphs=(meta_graph,))
    (directory / "saved_model.pb").write_bytes(write(stored))
    # The checkpoint numbers its objects its own way.
    item = tf.TrackableObjectGraph.TrackableObject
    value = [
        (item.SerializedTensor(name="VARIABLE_VALUE", checkpoint_key=key),)
        for key in ("layer/kernel/.ATTRIBUTES/VARIABLE_VALUE", "layer/bias")
    ]
    trackable = tf.TrackableObjectGraph(
        nodes=(
            item(children=(child(node_id=3, local_name="layer"),)),
            item(attributes=value[1]),
            item(attributes=value[0]),
            item(children=(child(node_id=1, local_name="bias"), child(node_id=2, local_name="kernel"))),
        )
    )
    return {
        "_CHECKPOINTABLE_OBJECT_GRAPH": (STRING, np.array(write(trackable), object)),
        "layer/kernel/.ATTRIBUTES/VARIABLE_VALUE": (FLOAT, KERNEL),
        "layer/bias": (FLOAT, np.float32([0.5, -0.5])),
    }


def onnx_model(**changes: Any) -> onnx.ModelProto:
    """``y = Scale(x @ w)``: an initializer, an input with a default, a sparse one, and a function."""
    value = onnx.ValueInfoProto
    dimension = onnx.TensorShapeProto.Dimension

    def tensor(name: str, *sizes: int | str) -> onnx.ValueInfoProto:
        dims = [dimension(dim_value=size) if isinstance(size, int) else dimension(dim_param=size) for size in sizes]
        stored = onnx.TypeProto.Tensor(elem_type=onnx.DataType.FLOAT, shape=onnx.TensorShapeProto(dim=tuple(dims)))
        return value(name=name, type=onnx.TypeProto(tensor_type=stored))

    graph = onnx.GraphProto(
        name="g",
        node=(
            onnx.NodeProto(input=("x", "w"), output=("xw",), op_type="MatMul"),
            onnx.NodeProto(input=("xw", "factor"), output=("y",), op_type="Scale", domain="local"),
        ),
        initializer=(
            onnx.TensorProto(name="w", data_type=onnx.DataType.FLOAT, dims=(3, 2), raw_data=KERNEL.tobytes()),
            onnx.TensorProto(name="factor", data_type=onnx.DataType.FLOAT, float_data=np.float32([2])),
        ),
        sparse_initializer=(
            onnx.SparseTensorProto(
                values=onnx.TensorProto(name="s", data_type=onnx.DataType.FLOAT, dims=(1,), float_data=np.float32([7])),
                indices=onnx.TensorProto(data_type=onnx.DataType.INT64, dims=(1, 2), int64_data=np.int64([1, 2])),
                dims=(2, 3),
            ),
        ),
        input=(tensor("x", "batch", 3), tensor("factor")),
        output=(tensor("y", "batch", 2),),
    )
    scale = onnx.FunctionProto(
        name="Scale",
        domain="local",
        input=("a", "b"),
        output=("c",),
        node=(onnx.NodeProto(input=("a", "b"), output=("c",), op_type="Mul"),),
    )
    return onnx.ModelProto(
        ir_version=10,
        opset_import=(onnx.OperatorSetIdProto(version=21), onnx.OperatorSetIdProto(domain="local", version=1)),
        graph=graph,
        functions=(scale,),
    ).replace(**changes)


def message_class(module: ModuleType, name: str) -> type[Message]:
    found: type[Message] = operator.attrgetter(name)(module)
    return found
