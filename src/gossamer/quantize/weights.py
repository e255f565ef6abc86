"""Weights alone: float16 (every float constant), and dynamic range (int8 weights, inputs quantized when it runs)."""

from __future__ import annotations

from collections.abc import Container

import numpy as np

from gossamer.convert.graph import Graph, Node, Signature, Value, constant
from gossamer.convert.importers.tflite import Stored
from gossamer.ops import find_op
from gossamer.ops.op_def import Quantizes
from gossamer.quantize.parameters import of_weights, quantized
from gossamer.quantize.rebuild import Rebuilt, options_of, rebuild
from gossamer.schema.enums import TensorType

LEAST_ELEMENTS = 1024
"""Weights with fewer stay float (minimum_elements_for_weights of TFLite's converter)."""

DEQUANTIZED = {"TRANSPOSE_CONV", "GATHER", "EMBEDDING_LOOKUP"}
"""Operators whose kernels take no int8 weights with float inputs: a DEQUANTIZE is between."""


def float16(stored: Stored) -> list[Signature]:
    """Every float32 constant in half the bytes, with one DEQUANTIZE before all that use it."""
    halves: dict[tuple[int, int], Value] = {}

    def change(made: Rebuilt, node: Node, graphs: dict[str, Graph]) -> None:
        def half(value: Value | None) -> Value | None:
            data = None if value is None or value.node is not None else value.data
            if value is None or data is None or value.type != TensorType.FLOAT32 or value in made.values:
                return made.value(value)
            key = (id(made.graph), id(value))
            if key not in halves:
                with np.errstate(over="ignore"):
                    stored16 = constant(data.astype(np.float16), None, value.name)
                halves[key] = _dequantized(made.graph, stored16)
            return halves[key]

        made.copy(node, [half(value) for value in node.inputs], graphs)

    return rebuild(stored, change)


def _dequantized(graph: Graph, value: Value) -> Value:
    output = Value(TensorType.FLOAT32, value.shapes, None, f"{value.name}_dequantized")
    Node("DEQUANTIZE", [value], [output], None, (-1, 0), ())
    return output


def dynamic_range(stored: Stored, keep: Container[str], *, per_channel: bool = True) -> list[Signature]:
    """Weights of products in int8; ``keep`` names operators that stay float."""

    def change(made: Rebuilt, node: Node, graphs: dict[str, Graph]) -> None:
        op = find_op(node.op)
        quantizes = None if op is None else op.quantizes
        inputs = [made.value(value) for value in node.inputs]
        position = None if quantizes is None or node.op in keep else _weights(node, quantizes)
        if position is not None and quantizes is not None:
            value = node.input(position)
            data = np.asarray(value.data)
            channel = quantizes.channel if per_channel and node.op not in DEQUANTIZED else None
            parameters = of_weights(data, TensorType.INT8, channel)
            packed = constant(quantized(data, parameters, TensorType.INT8, narrow=True), TensorType.INT8, value.name)
            packed.quantization = parameters
            inputs[position] = _dequantized(made.graph, packed) if node.op in DEQUANTIZED else packed
            options = options_of(node)
            if node.options is not None and "asymmetric_quantize_inputs" in node.options.FIELD:
                node.options = type(node.options)(**{**options, "asymmetric_quantize_inputs": True})
        made.copy(node, inputs, graphs)

    return rebuild(stored, change)


def _weights(node: Node, quantizes: Quantizes) -> int | None:
    """The operand that is worth it."""
    position = quantizes.weights if quantizes.hybrid else None
    if node.op == "GATHER":
        position = 0
    if position is None or position >= len(node.inputs):
        return None
    value = node.inputs[position]
    data = None if value is None else value.data
    if value is None or data is None or value.type != TensorType.FLOAT32 or data.size < LEAST_ELEMENTS:
        return None
    others = [v for n, v in enumerate(node.inputs) if v is not None and n != position and n != quantizes.bias]
    return position if all(v.type in (TensorType.FLOAT32, TensorType.INT32, TensorType.INT64) for v in others) else None
