"""Weights alone: every float constant in float16, or the weights of products in 8 or 4 bits.

Integer weights are multiplied with float inputs that are quantized when the model runs (dynamic range), or a DEQUANTIZE
makes floats of them first (weight only). Scales are those of a tensor, of a channel, or of blocks of a row.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gossamer.convert.graph import Node, Value, constant
from gossamer.convert.infer import Call, Operand, infer
from gossamer.errors import PrepareError
from gossamer.ops import find_op
from gossamer.ops.op_def import OpDef, Quantizes
from gossamer.quantization import Quantization
from gossamer.quantize.parameters import of_blocks, of_weights, quantized
from gossamer.quantize.rebuild import Rebuilt, options_of
from gossamer.quantize.scheme import Scheme
from gossamer.schema.enums import TensorType
from gossamer.schema.fields import Table

Inputs = list["Value | None"]


def halves(made: Rebuilt, inputs: Inputs) -> Inputs:
    """The operands with every float32 constant in half the bytes, and one DEQUANTIZE before all that use it."""

    def half(value: Value | None) -> Value | None:
        data = None if value is None or value.node is not None else value.data
        if value is None or data is None or value.type != TensorType.FLOAT32:
            return value
        if value not in made.halves:
            with np.errstate(over="ignore"):
                stored = constant(data.astype(np.float16), None, value.name)
            made.halves[value] = _dequantized(stored, (-1, len(made.halves)))
        return made.halves[value]

    return [half(value) for value in inputs]


def _dequantized(value: Value, order: tuple[int, int]) -> Value:
    """The floats of a constant, made at a place in the order of execution."""
    output = Value(TensorType.FLOAT32, value.shapes, None, f"{value.name}_dequantized")
    Node("DEQUANTIZE", [value], [output], None, order, ())
    return output


def integer_weights(node: Node, inputs: Inputs, scheme: Scheme) -> tuple[Inputs, Table | None]:
    """The operands with weights in integers, and options; between those that an operator does not take with float
    inputs and the operator there is a DEQUANTIZE, and weights in blocks, which have none, stay float."""
    op = find_op(node.op)
    position = None if op is None or op.quantizes is None else _weights(node, op.quantizes, scheme)
    if op is None or op.quantizes is None or position is None:
        return inputs, node.options
    weights, channel = node.input(position), op.quantizes.channel if scheme.per_channel else None
    before = (node.order[0], -1)
    packed = _in_blocks(weights, scheme) if scheme.block else _packed(weights, scheme.weights, channel)

    def with_weights(value: Value) -> Inputs:
        return [*inputs[:position], value, *inputs[position + 1 :]]

    if scheme.dequantized:
        return with_weights(_dequantized(packed, before)), node.options
    options = _asymmetric(node)
    if _takes(op, node, with_weights(packed), options):
        return with_weights(packed), options
    if scheme.block:
        return inputs, node.options
    return with_weights(_dequantized(_packed(weights, scheme.weights, None), before)), node.options


def _weights(node: Node, rule: Quantizes, scheme: Scheme) -> int | None:
    """The operand that is worth it."""
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


def _in_blocks(weights: Value, scheme: Scheme) -> Value:
    return _integers(weights, of_blocks(np.asarray(weights.data), scheme.weights, scheme.block), scheme.weights)


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
