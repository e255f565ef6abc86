"""A frozen graph of one TensorFlow node, converted and run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gossamer import Interpreter
from gossamer.arrays import NDArray
from gossamer.convert import convert
from gossamer.convert.messages.tensorflow import (
    AttrValue,
    DataType,
    FunctionDef,
    FunctionDefLibrary,
    GraphDef,
    NameAttrList,
    NodeDef,
    OpDef,
    TensorProto,
    TensorShapeProto,
)
from gossamer.convert.sources.tensor_proto import numpy_dtype
from gossamer.convert.wire import write
from gossamer.model.reader import read_model
from gossamer.schema.enums import BuiltinOperator

Array = NDArray[Any]

NONE = ("DT_INVALID", "DT_STRING", "DT_RESOURCE", "DT_VARIANT")
ELEMENTS = [n for n in DataType if n.name not in NONE and n < DataType.DT_FLOAT8_E5M2 and "_Q" not in n.name]
"""Types whose elements NumPy has."""


class Fixed(NamedTuple):
    """An operand that is a constant of the graph; others are its inputs."""

    value: Any


def of_type(value: Any) -> Array:
    """An array, of float32 and int32 where nothing says otherwise."""
    array = np.asarray(value)
    if not isinstance(value, (np.ndarray, np.generic)):
        array = array.astype({"f": np.float32, "i": np.int32}.get(array.dtype.kind, array.dtype))
    return np.asarray(array, object) if array.dtype.kind in "SU" else array


def data_type(dtype: np.dtype[Any]) -> DataType:
    """TensorFlow's number of a dtype."""
    if dtype.hasobject:
        return DataType.DT_STRING
    return next(number for number in ELEMENTS if numpy_dtype(number) == dtype)


def shape(*sizes: int) -> TensorShapeProto:
    return TensorShapeProto(dim=tuple([TensorShapeProto.Dim(size=size) for size in sizes]))


def tensor(array: Array) -> TensorProto:
    common = {"dtype": data_type(array.dtype), "tensor_shape": shape(*array.shape)}
    if array.dtype.hasobject:
        return TensorProto(string_val=tuple(array.reshape(-1).tolist()), **common)
    return TensorProto(tensor_content=memoryview(np.ascontiguousarray(array).tobytes()), **common)


def attribute(value: Any) -> AttrValue:
    """Python's values as attributes: types are members of `DataType`, shapes `TensorShapeProto`."""
    if isinstance(value, AttrValue):
        return value
    if isinstance(value, (list, tuple)):
        kinds: Mapping[type, str] = {bool: "b", DataType: "type", int: "i", float: "f", str: "s", bytes: "s"}
        kind = kinds[type(value[0])] if value else "i"
        items = tuple([item.encode() if isinstance(item, str) else item for item in value])
        return AttrValue(list=AttrValue.ListValue(**{kind: items}))
    for kind, types in {"b": bool, "type": DataType, "i": int, "f": float, "shape": TensorShapeProto}.items():
        if isinstance(value, types):
            return AttrValue(**{kind: value})
    return AttrValue(s=value.encode() if isinstance(value, str) else value)


def graph_of(
    op: str,
    operands: Sequence[Any],
    opened: Mapping[int, Sequence[int]],
    attributes: Any,
) -> GraphDef:
    nodes, functions = [], []
    for number, operand in enumerate(operands):
        array = of_type(operand.value if isinstance(operand, Fixed) else operand)
        attr = {"dtype": AttrValue(type=data_type(array.dtype))}
        if isinstance(operand, Fixed):
            attr["value"] = AttrValue(tensor=tensor(array))
        else:
            sizes = [-1 if axis in opened.get(number, ()) else size for axis, size in enumerate(array.shape)]
            attr["shape"] = AttrValue(shape=shape(*sizes))
        nodes.append(NodeDef(name=f"x{number}", op="Const" if "value" in attr else "Placeholder", attr=attr))
    values = {}
    for name, value in attributes.items():
        if isinstance(value, FunctionDef) and value.signature is not None:
            functions.append(value)
            values[name] = AttrValue(func=NameAttrList(name=value.signature.name))
        else:
            values[name] = attribute(value)
    nodes.append(NodeDef(name="node", op=op, input=tuple([node.name for node in nodes]), attr=values))
    return GraphDef(node=tuple(nodes), library=FunctionDefLibrary(function=tuple(functions)))


def of_two(op: str, type: DataType = DataType.DT_FLOAT) -> FunctionDef:
    """A function that is called as the operator of two operands that it has inside."""
    node = NodeDef(name="inner", op=op, input=("a", "b"), attr={"T": AttrValue(type=type)})
    arguments = tuple([OpDef.ArgDef(name=name, type=type) for name in "ab"])
    signature = OpDef(name=f"two_{op}", input_arg=arguments, output_arg=(OpDef.ArgDef(name="c", type=type),))
    return FunctionDef(signature=signature, node_def=(node,), ret={"c": "inner:z:0"})


class Result(NamedTuple):
    """What came out, and the operators that it took, in order, with their versions."""

    values: list[Array]
    operators: list[str]
    versions: dict[str, int]

    @property
    def value(self) -> Array:
        (only,) = self.values
        return only


def run_one(
    op: str,
    *operands: Any,
    path: Path,
    outputs: int = 1,
    opened: Mapping[int, Sequence[int]] | None = None,
    fixed: bool = False,
    **attributes: Any,
) -> Result:
    """Convert a graph of one node, and run it on the operands that are not `Fixed`.

    ``opened``: axes of operands (by their number) whose sizes the model does not know. With ``fixed`` all operands are
    constants, and the operator is folded away.
    """
    if fixed:
        operands = tuple([operand if isinstance(operand, Fixed) else Fixed(operand) for operand in operands])
    source = path / "one_node.pb"
    source.write_bytes(write(graph_of(op, operands, opened or {}, attributes)))
    names = [f"node:{number}" if number else "node" for number in range(outputs)]
    model = convert(source, output_arrays=names)
    interpreter = Interpreter(model_content=model)
    given = {f"x{n}": of_type(operand) for n, operand in enumerate(operands) if not isinstance(operand, Fixed)}
    found = interpreter.get_signature_runner()(**given)
    operators = [detail["op_name"] for detail in interpreter._get_ops_details() if detail["op_name"] != "DELEGATE"]
    codes = read_model(model).operator_codes
    versions = {BuiltinOperator(code.builtin_code).name: code.version for code in codes}
    return Result([found[name] for name in names], operators, versions)
