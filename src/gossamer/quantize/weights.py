"""Weights alone: every float constant in float16, or the weights of products in 8 or 4 bits.

Integer weights are multiplied with float inputs that are quantized when the model runs (dynamic range), or a DEQUANTIZE
makes floats of them first (weight only). Scales are those of a tensor, of a channel, or of blocks of a row.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import NamedTuple

import numpy as np

from gossamer.convert.graph import Graph, Node, Signature, Value, constant
from gossamer.convert.importers.tflite import Stored
from gossamer.convert.infer import Call, Operand, infer
from gossamer.errors import PrepareError
from gossamer.ops import find_op
from gossamer.ops.op_def import OpDef, Quantizes
from gossamer.quantization import Quantization
from gossamer.quantize.parameters import of_blocks, of_weights, quantized
from gossamer.quantize.rebuild import Rebuilt, options_of, rebuild
from gossamer.schema.enums import TensorType
from gossamer.schema.fields import Table


class WeightScheme(NamedTuple):
    """``type`` of the weights, int8 or int4; ``block``: elements of a row that share a scale, 0 for channels.
    ``least``: weights with fewer elements stay float. ``tables``: those that operators look up too.
    ``dequantized``: products are of floats. ``keep``: operators, and names of their outputs, that stay float."""

    type: TensorType = TensorType.INT8
    block: int = 0
    least: int = 0
    tables: bool = False
    dequantized: bool = False
    keep: Container[str] = ()
    per_channel: bool = True


DYNAMIC_RANGE = WeightScheme(least=1024, tables=True)
"""TFLite's converter's: minimum_elements_for_weights in prepare_quantize_dynamic_range.cc."""

BLOCKS = (32, 64, 128, 256)
WEIGHTS = {
    "dynamic_range": DYNAMIC_RANGE,
    "int8_weight_only": WeightScheme(dequantized=True),
    "int4_weight_only": WeightScheme(TensorType.INT4, dequantized=True),
    "int4_dynamic": WeightScheme(TensorType.INT4),
    **{f"int4_block{size}": WeightScheme(TensorType.INT4, size) for size in BLOCKS},
}
"""The schemes of modes; all but the first are those of ai-edge-quantizer's recipes (weight_only_wi8_afp32,
weight_only_wi4_afp32, dynamic_wi4_afp32, dynamic_wi4b32_afp32), which quantize small weights too, and with blocks only
operators that take them."""


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
                halves[key] = _dequantized(stored16, (-1, len(halves)))
            return halves[key]

        made.copy(node, [half(value) for value in node.inputs], graphs)

    return rebuild(stored, change)


def _dequantized(value: Value, order: tuple[int, int]) -> Value:
    """The floats of a constant, made where ``order`` says: among nodes of one order nobody knows which comes first."""
    output = Value(TensorType.FLOAT32, value.shapes, None, f"{value.name}_dequantized")
    Node("DEQUANTIZE", [value], [output], None, order, ())
    return output


def integer_weights(stored: Stored, scheme: WeightScheme) -> list[Signature]:
    """The weights of products in integers; between those that an operator does not take with float inputs and the
    operator there is a DEQUANTIZE, and weights in blocks, which have none, stay float."""

    def change(made: Rebuilt, node: Node, graphs: dict[str, Graph]) -> None:
        inputs = [made.value(value) for value in node.inputs]
        op = find_op(node.op)
        position = None if op is None or op.quantizes is None else _weights(node, op.quantizes, scheme)
        if op is not None and op.quantizes is not None and position is not None:
            weights, channel = node.input(position), op.quantizes.channel if scheme.per_channel else None
            options = _asymmetric(node)
            packed = _in_blocks(weights, scheme) if scheme.block else _packed(weights, scheme.type, channel)
            if scheme.dequantized:
                inputs[position] = _dequantized(packed, (node.order[0], -1))
            elif _takes(op, node, [*inputs[:position], packed, *inputs[position + 1 :]], options):
                inputs[position], node.options = packed, options
            elif not scheme.block:
                inputs[position] = _dequantized(_packed(weights, scheme.type, None), (-1, node.order[0]))
        made.copy(node, inputs, graphs)

    return rebuild(stored, change)


def _weights(node: Node, rule: Quantizes, scheme: WeightScheme) -> int | None:
    """The operand that is worth it."""
    if node.op in scheme.keep or any(value.name in scheme.keep for value in node.outputs):
        return None
    position = rule.weights if rule.hybrid else rule.table if scheme.tables else None
    if position is None or position >= len(node.inputs):
        return None
    value = node.inputs[position]
    data = None if value is None else value.data
    if value is None or data is None or value.type != TensorType.FLOAT32 or not data.size or data.size < scheme.least:
        return None
    if scheme.block and (data.ndim < 2 or data.shape[-1] % scheme.block):
        return None
    others = [v for n, v in enumerate(node.inputs) if v is not None and n != position and n != rule.bias]
    return position if all(v.type in (TensorType.FLOAT32, TensorType.INT32, TensorType.INT64) for v in others) else None


def _packed(weights: Value, type: TensorType, channel: int | None) -> Value:
    data = np.asarray(weights.data)
    return _integers(weights, of_weights(data, type, channel), type)


def _in_blocks(weights: Value, scheme: WeightScheme) -> Value:
    return _integers(weights, of_blocks(np.asarray(weights.data), scheme.type, scheme.block), scheme.type)


def _integers(weights: Value, quantization: Quantization, type: TensorType) -> Value:
    value = constant(quantized(np.asarray(weights.data), quantization, type, narrow=True), type, weights.name)
    value.quantization = quantization
    return value


def _asymmetric(node: Node) -> Table | None:
    """The options with asymmetric levels of inputs, where there is a choice."""
    if node.options is None or "asymmetric_quantize_inputs" not in node.options.FIELD:
        return node.options
    return type(node.options)(**{**options_of(node), "asymmetric_quantize_inputs": True})


def _takes(op: OpDef, node: Node, inputs: Sequence[Value | None], options: Table | None) -> bool:
    """Whether the operator computes floats from these, as its prepare says."""
    operands = [
        None if v is None else Operand(v.type, v.shapes[0], None if v.known is None else v.known[0], v.quantization)
        for v in inputs
    ]
    types = [value.type for value in node.outputs]
    try:
        results = infer(Call(op, op.options() if options is None else options, operands, len(types), types))
    except PrepareError:
        return False
    return [result.type for result in results] == types
