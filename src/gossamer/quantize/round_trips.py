"""Models of integers as float models, and those of uint8, as TensorFlow 1 made them, as models of int8."""

from __future__ import annotations

import numpy as np

from gossamer.convert.export import to_model
from gossamer.convert.graph import Graph, Node, Signature, Value, constant
from gossamer.convert.importers.tflite import Stored, graphs_of_model
from gossamer.errors import ConvertError
from gossamer.model.model import Model
from gossamer.model.reader import read_model
from gossamer.model.writer import write_model
from gossamer.ops import find_op
from gossamer.quantization import UNQUANTIZED, Quantization
from gossamer.quantization import dequantize as reals
from gossamer.quantize.given import of_int8
from gossamer.quantize.parameters import LIMITS
from gossamer.quantize.prepared import Source
from gossamer.quantize.quantizer import quantize
from gossamer.quantize.rebuild import Rebuilt, options_of, rebuild
from gossamer.quantize.weights import takes
from gossamer.schema.enums import ActivationFunctionType, TensorType
from gossamer.schema.fields import Table

FLOAT = TensorType.FLOAT32
OF_INTEGERS = ("quantized_bias_type", "pot_scale_int16", "asymmetric_quantize_inputs")
"""Options that say how an operator computes with integers."""


def dequantize(model: Source) -> bytes:
    """A model with integers as one of floats: the bytes of the file.

    Whatever has a scale becomes float32, inputs and outputs too: constants are the numbers that they stand for, and
    what only converts is gone. Where integers cannot be less than 0, the operator gets a RELU or RELU6 that it may not
    have needed. Results are those of the integer model without its rounding, and without other limits of its ranges.
    Raises `ConvertError` for an operator that computes with integers alone.
    """
    return write_model(to_model(_floats(_stored(model), keep=False)))


def requantize(model: Source, input_type: str = "int8", output_type: str = "int8") -> bytes:
    """A model of uint8 as one of int8, with the parameters that it has: the bytes of the file.

    Activations keep their scales, and have zero points that are 128 less. Weights with their zero point in the middle
    keep their integers; others, which int8 operators have not, get scales of their own, for each channel where the
    operator knows channels. A model without uint8 is given back as it is. ``input_type`` and ``output_type`` are
    `quantize`'s. Raises `ConvertError`.
    """
    stored = _stored(model)
    values = [value for graph in stored.graphs for node in graph.ordered() for value in (*node.inputs, *node.outputs)]
    if not any(value is not None and value.type == TensorType.UINT8 and value.quantization for value in values):
        return write_model(model if isinstance(model, Model) else read_model(model))
    content = write_model(to_model(_floats(stored, keep=True)))
    return quantize(content, "int8", input_type=input_type, output_type=output_type)


def _stored(model: Source) -> Stored:
    return graphs_of_model(model if isinstance(model, Model) else read_model(model))


def _floats(stored: Stored, *, keep: bool) -> list[Signature]:
    """The graphs with floats for what has scales; ``keep``: with the parameters of what was in 8 bits."""

    def parameters(value: Value) -> Quantization:
        return of_int8(value) if keep else UNQUANTIZED

    def begin(made: Rebuilt) -> None:
        for old, new in zip(made.source.inputs, made.graph.inputs, strict=True):
            if _is_real(old):
                new.type, new.quantization = FLOAT, parameters(old)

    def real(made: Rebuilt, value: Value | None) -> Value | None:
        if value is None or value.node is not None or value in made.values or not _is_real(value):
            return made.value(value)
        if value.data is not None:
            new = constant(_numbers(value), FLOAT, value.name)
        else:
            new = Value(FLOAT, value.shapes, None, value.name)
            new.is_variable = value.is_variable
        new.quantization = parameters(value)
        made.values[value] = new
        return new

    def change(made: Rebuilt, node: Node, graphs: dict[str, Graph]) -> None:
        inputs = [real(made, value) for value in node.inputs]
        if node.op in ("QUANTIZE", "DEQUANTIZE") and inputs[0] is not None and inputs[0].type == FLOAT:
            made.values[node.output] = inputs[0]
            if not inputs[0].quantization:
                inputs[0].quantization = parameters(node.output)
            return
        if node.op == "DEQUANTIZE" and inputs[0] is not None and inputs[0].data is not None:  # float16
            made.values[node.output] = constant(inputs[0].data.astype(np.float32), FLOAT, node.output.name)
            return
        outputs = [
            Value(FLOAT, old.shapes, None, old.name, parameters(old))
            if _is_real(old)
            else Value(old.type, old.shapes, None, old.name)
            for old in node.outputs
        ]
        types = [value.type for value in outputs]
        choices = [_of_floats(node, node.output) if outputs else node.options, _of_floats(node)]
        changed = any(old is not new and old is not None for old, new in zip(node.inputs, inputs, strict=True))
        op = find_op(node.op)
        if op is not None and not node.is_custom and not graphs and (changed or any(map(_is_real, node.outputs))):
            choices = [one for one in choices if node.op != "CAST" and takes(op, inputs, one, types)]
            if not choices:
                raise ConvertError(f"{node.op} ({node.output.name!r}) computes with integers alone")
        made.copy(node, inputs, graphs, outputs, choices[0], [])

    return rebuild(stored, change, begin=begin)


def _is_real(value: Value) -> bool:
    """Whether integers stand for real numbers."""
    found = value.quantization
    return value.type != FLOAT and bool(found or found.blocks is not None)


def _numbers(value: Value) -> np.ndarray:
    data, blocks = np.asarray(value.data), value.quantization.blocks
    if blocks is None:
        return reals(data, value.quantization)
    scales = np.repeat(blocks.scales.astype(np.float32), blocks.size).reshape(data.shape)
    return data.astype(np.float32) * scales


def _of_floats(node: Node, output: Value | None = None) -> Table | None:
    """The options; where an ``output`` of integers is given, with the activation that these need not say: what would be
    below their least is 0."""
    if node.options is None:
        return None
    found = {name: value for name, value in options_of(node).items() if name not in OF_INTEGERS}
    if output is not None and "fused_activation_function" in node.options.FIELD:
        found["fused_activation_function"] = found.get("fused_activation_function") or _activation(output)
    return type(node.options)(**found)


def _activation(value: Value) -> ActivationFunctionType:
    low, high = LIMITS.get(value.type, (0, 0))
    scale, point = value.quantization.scale, value.quantization.zero_point
    if not scale or point != low:
        return ActivationFunctionType.NONE
    return ActivationFunctionType.RELU6 if abs((high - low) * scale - 6) < scale else ActivationFunctionType.RELU
