"""Schemes carried out: each operator is added again with the types that its scheme says; where the types of two differ,
a QUANTIZE or a DEQUANTIZE is between them."""

from __future__ import annotations

from gossamer.convert.graph import Graph, Node, Signature, Value
from gossamer.convert.importers.tflite import Stored
from gossamer.errors import ConvertError
from gossamer.quantize.calibrate import Ranges
from gossamer.quantize.calls import calls
from gossamer.quantize.rebuild import Rebuilt, rebuild
from gossamer.quantize.scheme import Schemes
from gossamer.quantize.static import Pair, parameters_of_types
from gossamer.quantize.weights import halves, integer_weights
from gossamer.schema.enums import TensorType


def apply(stored: Stored, schemes: Schemes, ranges: Ranges) -> list[Signature]:
    """The signatures over graphs in which each operator has the types of its scheme. ``ranges`` are of the tensors of
    the model, by their numbers; there need be none without integer activations.

    Raises `ConvertError` where nothing may stay float and something does.
    """
    seen = [
        {
            value: ranges[number, index]
            for index, value in enumerate(stored.values[number])
            if (number, index) in ranges and value.type == TensorType.FLOAT32
        }
        for number in range(len(stored.graphs))
    ]
    tied = calls(stored.graphs, {value: found for one in seen for value, found in one.items()}, schemes)
    parameters = parameters_of_types(stored.graphs, seen, schemes, tied.values)
    left: list[str] = []

    def begin(made: Rebuilt) -> None:
        pair = Pair(made, parameters)
        for value in made.source.inputs:
            if value in tied.values:
                pair.integer_input(value, tied.values[value])

    def change(made: Rebuilt, node: Node, graphs: dict[str, Graph]) -> None:
        scheme, pair = schemes[node], Pair(made, parameters)
        if node.graphs and any(value in tied.values for value in node.outputs):
            pair.call(node, graphs, tied.values)
        elif node.graphs or not scheme.is_static or not pair.quantize(node, scheme):
            if scheme.only and any(value.type == TensorType.FLOAT32 for value in node.outputs):
                left.append(node.op)
            inputs, options = [pair.as_float(value) for value in node.inputs], node.options
            if scheme.weights == TensorType.FLOAT16:
                inputs = halves(made, inputs)
            elif not scheme.is_static and scheme.weights != TensorType.FLOAT32:
                inputs, options = integer_weights(node, inputs, scheme)
            made.copy(node, inputs, graphs, options=options)

    def result(made: Rebuilt, position: int, value: Value) -> Value | None:
        pair = Pair(made, parameters)
        handed = tied.of(made.source, position, value)
        return pair.as_float(value) if handed is None else pair.as_integer(value, handed)

    signatures = rebuild(stored, change, result, begin)
    if left:
        names = ", ".join(sorted(set(left)))
        raise ConvertError(f"these operators have no integer kernels here: {names}; allow float ones, or keep them")
    return signatures
