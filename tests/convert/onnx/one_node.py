"""ONNX models of one node, made with the message classes, converted and run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import gossamer
from gossamer.convert.converter import convert_source
from gossamer.convert.messages.onnx import (
    AttributeProto,
    AttributeType,
    DataType,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    OperatorSetIdProto,
    TensorProto,
    TensorShapeProto,
    TypeProto,
    ValueInfoProto,
)
from gossamer.convert.request import Request
from gossamer.convert.wire import write

TYPES = {
    "float32": DataType.FLOAT,
    "float64": DataType.DOUBLE,
    "float16": DataType.FLOAT16,
    "int8": DataType.INT8,
    "uint8": DataType.UINT8,
    "int16": DataType.INT16,
    "uint16": DataType.UINT16,
    "int32": DataType.INT32,
    "uint32": DataType.UINT32,
    "int64": DataType.INT64,
    "uint64": DataType.UINT64,
    "bool": DataType.BOOL,
    "object": DataType.STRING,
}

Size = int | str


def tensor(array: Any, name: str = "") -> TensorProto:
    """An array as a stored tensor."""
    array = np.asarray(array)
    fields: dict[str, Any] = {"dims": array.shape, "data_type": TYPES[array.dtype.name], "name": name}
    if array.dtype.hasobject:
        return TensorProto(string_data=tuple(array.reshape(-1).tolist()), **fields)
    return TensorProto(raw_data=memoryview(np.ascontiguousarray(array).tobytes()), **fields)


def value_info(name: str, dtype: str, shape: Sequence[Size] | None) -> ValueInfoProto:
    """What an input or output is; sizes may be names."""
    dim = TensorShapeProto.Dimension
    dims = None
    if shape is not None:
        dims = TensorShapeProto(
            dim=tuple([dim(dim_value=n) if isinstance(n, int) else dim(dim_param=n) for n in shape])
        )
    stored = TypeProto.Tensor(elem_type=TYPES[dtype], **({} if dims is None else {"shape": dims}))
    return ValueInfoProto(name=name, type=TypeProto(tensor_type=stored))


def attribute(name: str, value: Any) -> AttributeProto:
    """An attribute of the type that a Python value has."""
    if isinstance(value, (bool, int)):
        return AttributeProto(name=name, i=int(value), type=AttributeType.INT)
    if isinstance(value, float):
        return AttributeProto(name=name, f=value, type=AttributeType.FLOAT)
    if isinstance(value, str):
        return AttributeProto(name=name, s=value.encode(), type=AttributeType.STRING)
    if isinstance(value, GraphProto):
        return AttributeProto(name=name, g=value, type=AttributeType.GRAPH)
    if isinstance(value, np.ndarray):
        return AttributeProto(name=name, t=tensor(value), type=AttributeType.TENSOR)
    if all(isinstance(one, str) for one in value):
        return AttributeProto(name=name, strings=tuple([one.encode() for one in value]), type=AttributeType.STRINGS)
    if any(isinstance(one, float) for one in value):
        return AttributeProto(name=name, floats=tuple(value), type=AttributeType.FLOATS)
    return AttributeProto(name=name, ints=tuple(value), type=AttributeType.INTS)


def node(op: str, inputs: Sequence[str], outputs: Sequence[str], domain: str = "", **attributes: Any) -> NodeProto:
    """A node."""
    stored = tuple([attribute(name, value) for name, value in attributes.items()])
    return NodeProto(op_type=op, input=tuple(inputs), output=tuple(outputs), attribute=stored, domain=domain)


def graph(
    nodes: Sequence[NodeProto],
    inputs: Sequence[ValueInfoProto],
    outputs: Sequence[ValueInfoProto],
    initializers: Mapping[str, Any] | None = None,
) -> GraphProto:
    """A graph."""
    stored = tuple([tensor(array, name) for name, array in (initializers or {}).items()])
    return GraphProto(node=tuple(nodes), input=tuple(inputs), output=tuple(outputs), initializer=stored, name="graph")


def save(path: Path, stored: GraphProto, opset: int, functions: Sequence[FunctionProto] = (), **domains: int) -> Path:
    """A model in a file."""
    sets = [OperatorSetIdProto(domain="", version=opset)]
    sets += [OperatorSetIdProto(domain=name.replace("_", "."), version=number) for name, number in domains.items()]
    model = ModelProto(ir_version=9, graph=stored, opset_import=tuple(sets), functions=tuple(functions))
    file = path / "model.onnx"
    file.write_bytes(write(model))
    return file


class Ran:
    """What a converted model answered, and its operators."""

    def __init__(self, outputs: Mapping[str, Any], operators: list[str]) -> None:
        self.outputs = outputs
        self.operators = operators


def run_file(file: Path, given: Mapping[str, Any]) -> Ran:
    """Convert and run a model."""
    converted = convert_source(file, "onnx", Request())
    interpreter = gossamer.Interpreter(  # nothing is compiled for a model that runs once
        model_content=converted.to_bytes(),
        experimental_op_resolver_type=gossamer.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
    )
    runner = interpreter.get_signature_runner("serving_default")
    codes = converted.model.operator_codes
    names = [
        codes[operator.opcode_index].builtin_code.name
        for subgraph in converted.model.subgraphs
        for operator in subgraph.operators
    ]
    return Ran(runner(**given), names)


def run(
    path: Path,
    op: str,
    given: Mapping[str, Any],
    outputs: Sequence[tuple[str, Sequence[Size] | None]],
    *,
    constants: Mapping[str, Any] | None = None,
    opset: int = 21,
    shapes: Mapping[str, Sequence[Size]] | None = None,
    order: Sequence[str] | None = None,
    domain: str = "",
    **attributes: Any,
) -> Ran:
    """A node of these inputs, in the order of ``order`` (given ones first), and outputs: type and stated shape."""
    arrays = {name: np.asarray(array) for name, array in given.items()}
    constants = constants or {}
    names = list(order) if order is not None else [*arrays, *constants]
    results = [f"out{n}" for n in range(len(outputs))]
    stored = graph(
        [node(op, names, results, domain, **attributes)],
        [value_info(k, a.dtype.name, (shapes or {}).get(k, a.shape)) for k, a in arrays.items()],
        [value_info(k, kind, shape) for k, (kind, shape) in zip(results, outputs, strict=True)],
        constants,
    )
    domains = {domain.replace(".", "_"): 1} if domain else {}
    return run_file(save(path, stored, opset, **domains), arrays)
