"""Weights alone: every float constant in float16, or the weights of products in 8 or 4 bits.

Integer weights are multiplied with float inputs that are quantized when the model runs (dynamic range), or a DEQUANTIZE
makes floats of them first (weight only). Scales are those of a tensor, of a channel, or of blocks of a row. DEQUANTIZE
knows no blocks: then each block is a row of what is stored, with a scale of its own, and a RESHAPE makes rows of them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gossamer.convert.graph import Node, Value, constant
from gossamer.convert.infer import Call, Operand, infer
from gossamer.errors import PrepareError
from gossamer.ops import find_op
from gossamer.ops.op_def import OpDef, Quantizes
from gossamer.quantization import UNQUANTIZED, Quantization
from gossamer.quantize.parameters import of_asymmetric_weights, of_blocks, of_weights, quantized
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
            made.halves[value] = _dequantized(_half(value), (-1, len(made.halves)))
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
    if op is not None and op.quantizes is not None and op.quantizes.cell_weights:
        return _cell_weights(op, op.quantizes.cell_weights, node, inputs, scheme)
    position = None if op is None or op.quantizes is None else _weights(node, op.quantizes, scheme)
    if op is None or op.quantizes is None or position is None:
        return inputs, node.options
    weights, channel = node.input(position), op.quantizes.channel if scheme.per_channel else None
    before = (node.order[0], -1)

    def with_weights(value: Value) -> Inputs:
        return [*inputs[:position], value, *inputs[position + 1 :]]

    if scheme.block and scheme.dequantized:
        return with_weights(_dequantized_blocks(weights, scheme, before)), node.options
    packed = _in_blocks(weights, scheme) if scheme.block else _packed(weights, scheme, channel)
    if scheme.dequantized:
        return with_weights(_dequantized(packed, before)), node.options

    options = _asymmetric(node)
    if takes(op, with_weights(packed), options, [value.type for value in node.outputs]):
        return with_weights(packed), options
    if scheme.block:
        return inputs, node.options
    return with_weights(_dequantized(_packed(weights, scheme, None), before)), node.options


def _cell_weights(
    op: OpDef, places: Sequence[int], node: Node, inputs: Inputs, scheme: Scheme
) -> tuple[Inputs, Table | None]:
    """Those of a recurrent operator, each with one scale: all of them, or none."""
    values = {place: value for place, value in enumerate(node.inputs) if value is not None and place in places}
    stored = [value.data for value in values.values()]
    if scheme.block or any(data is None or data.dtype != np.float32 or data.size < scheme.least for data in stored):
        return inputs, node.options
    packed = {place: _packed(value, scheme, None) for place, value in values.items()}
    changed = [packed.get(place, value) for place, value in enumerate(inputs)]
    options = _asymmetric(node)
    if not scheme.dequantized and takes(op, changed, options, [value.type for value in node.outputs]):
        return changed, options
    before = (node.order[0], -1)
    floats = {place: _dequantized(value, before) for place, value in packed.items()}
    return [floats.get(place, value) for place, value in enumerate(inputs)], node.options


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


def _packed(weights: Value, scheme: Scheme, channel: int | None) -> Value:
    data = np.asarray(weights.data)
    if scheme.weights == TensorType.FLOAT16:
        return _half(weights)
    if not scheme.symmetric:
        return _integers(weights, of_asymmetric_weights(data, scheme.weights, channel), scheme.weights, narrow=False)
    return _integers(weights, of_weights(data, scheme.weights, channel, scheme.clipping), scheme.weights)


def _half(value: Value) -> Value:
    with np.errstate(over="ignore"):
        return constant(np.asarray(value.data).astype(np.float16), None, value.name)


def _in_blocks(weights: Value, scheme: Scheme) -> Value:
    quantization = of_blocks(np.asarray(weights.data), scheme.weights, scheme.block, scheme.clipping)
    return _integers(weights, quantization, scheme.weights)


def _dequantized_blocks(weights: Value, scheme: Scheme, before: tuple[int, int]) -> Value:
    """The floats of weights in blocks, for whatever operator."""
    rows = constant(np.asarray(weights.data).reshape(-1, scheme.block), None, weights.name)
    floats = _dequantized(_packed(rows, scheme, 0), before)
    shape = constant(np.array(weights.shape, np.int32), None, f"{weights.name}_shape")
    output = Value(TensorType.FLOAT32, weights.shapes, None, f"{weights.name}_rows")
    Node("RESHAPE", [floats, shape], [output], None, before, ())
    return output


def _integers(weights: Value, quantization: Quantization, type: TensorType, narrow: bool = True) -> Value:
    value = constant(quantized(np.asarray(weights.data), quantization, type, narrow=narrow), type, weights.name)
    value.quantization = quantization
    return value


def _asymmetric(node: Node) -> Table | None:
    """The options with asymmetric levels of inputs, where there is a choice."""
    if node.options is None or "asymmetric_quantize_inputs" not in node.options.FIELD:
        return node.options
    return type(node.options)(**{**options_of(node), "asymmetric_quantize_inputs": True})


def takes(
    op: OpDef,
    inputs: Inputs,
    options: Table | None,
    types: list[TensorType],
    quantization: Quantization = UNQUANTIZED,
    intermediates: Sequence[Value] = (),
) -> bool:
    """Whether the operator computes outputs of these types from these operands, as its prepare says."""
    operands = [None if value is None else _operand(value) for value in inputs]
    inner = [_operand(value) for value in intermediates]
    stored = op.options() if options is None else options
    try:
        results = infer(Call(op, stored, operands, len(types), types, quantization, intermediates=inner))
    except PrepareError:
        return False
    return [result.type for result in results] == types


def _operand(value: Value) -> Operand:
    known = None if value.known is None else value.known[0]
    operand = Operand(value.type, value.shapes[0], known, value.quantization)
    operand.is_variable = value.is_variable
    return operand
