"""The types of inputs and outputs: the QUANTIZE behind an input and the DEQUANTIZE before an output go away, and the
tensor behind takes its place; for uint8 there is one that shifts by 128."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from gossamer.convert.graph import Graph, Signature, Value
from gossamer.dtypes import type_name
from gossamer.errors import ConvertError
from gossamer.quantization import Quantization
from gossamer.schema.enums import TensorType

TYPES = {
    "float32": TensorType.FLOAT32,
    "int8": TensorType.INT8,
    "uint8": TensorType.UINT8,
    "int16": TensorType.INT16,
}


OF_ANY_TYPE = ("SHAPE", "RANK")
"""Operators that give the same whatever the type of their operand."""


def changed(signature: Signature, input_type: str, output_type: str) -> Signature:
    """The signature with these types where its inputs and outputs are float. Raises `ConvertError` for others."""
    graph = signature.graph
    graph.ordered()
    given, result = _type(input_type, signature.inputs.values()), _type(output_type, signature.outputs.values())
    inputs = {name: _input(graph, value, given) for name, value in signature.inputs.items()}
    outputs = {name: _output(graph, value, result) for name, value in signature.outputs.items()}
    return signature._replace(inputs=inputs, outputs=outputs)


def _type(name: str, values: Iterable[Value]) -> TensorType:
    """The type of float values. One that they all have without being float asks for nothing."""
    if name in TYPES:
        return TYPES[name]
    if all(type_name(value.type) == name for value in values):
        return TensorType.FLOAT32
    raise ConvertError(f"inputs and outputs are {', '.join(TYPES)}, not {name!r}")


def _input(graph: Graph, value: Value, type: TensorType) -> Value:
    readers = value.users
    if value.type != TensorType.FLOAT32 or type == value.type:
        return value
    quantized = [node for node in readers if node.op == "QUANTIZE"]
    if not quantized or any(node.op not in (*OF_ANY_TYPE, "QUANTIZE") for node in readers):
        raise ConvertError(f"input {value.name!r} is used as float: it cannot be {type.name.lower()}")
    inner = quantized[0].output
    new = Value(type, value.shapes, None, value.name, _shifted(inner, type))
    graph.inputs = [new if one is value else one for one in graph.inputs]
    for node in list(readers):
        if node.op == "QUANTIZE" and node.output.type == type:
            graph.replace(node.output, new)
        else:
            graph.set_input(node, 0, new)
    return new


def _output(graph: Graph, value: Value, type: TensorType) -> Value:
    if value.type != TensorType.FLOAT32 or type == value.type:
        return value
    if value.node is None or value.node.op != "DEQUANTIZE":
        raise ConvertError(f"output {value.name!r} is computed as float: it cannot be {type.name.lower()}")
    inner = value.node.input(0)
    new = inner
    if inner.type != type:
        new = graph.add("QUANTIZE", inner, type=type, quantization=_shifted(inner, type), name=value.name)
    graph.outputs = [new if one is value else one for one in graph.outputs]
    new.name = value.name
    return new


def _shifted(inner: Value, type: TensorType) -> Quantization:
    """The parameters of a value of another type that means the same: uint8 is int8 and 128."""
    found = inner.quantization
    if {inner.type, type} == {TensorType.INT8, TensorType.UINT8}:
        shift = 128 if type == TensorType.UINT8 else -128
        return Quantization(found.scales, (found.zero_points + shift).astype(np.int32), found.dimension)
    if inner.type != type:
        raise ConvertError(f"{inner.type.name.lower()} activations have no {type.name.lower()} interface")
    return found
