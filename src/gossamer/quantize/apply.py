"""Schemes carried out: each operator is added again with the types that its scheme says; where the types of two differ,
a QUANTIZE or a DEQUANTIZE is between them."""

from __future__ import annotations

from collections.abc import Callable

from gossamer.convert.graph import Graph, Node, Signature, Value
from gossamer.convert.importers.tflite import Stored
from gossamer.errors import ConvertError
from gossamer.quantize.calibrate import Ranges
from gossamer.quantize.calls import calls
from gossamer.quantize.interface import OF_ANY_TYPE, Ends, tie_ends
from gossamer.quantize.rebuild import Rebuilt, rebuild
from gossamer.quantize.recurrent import quantize_cell
from gossamer.quantize.scheme import Scheme, Schemes
from gossamer.quantize.static import Pair, parameters_of_types
from gossamer.quantize.weights import halves, integer_weights
from gossamer.schema.enums import TensorType

OnFloat = Callable[[str, str, str], object]
"""Is told of an operator that stays float: its type, the name of its output, and why."""


def apply(
    stored: Stored, schemes: Schemes, ranges: Ranges, ends: Ends, on_float: OnFloat | None = None
) -> list[Signature]:
    """The signatures over graphs in which each operator has the types of its scheme, and what signatures take and give
    has those of its end. ``ranges`` are of the tensors of the model, by their numbers; there need be none without
    integer activations.

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
    everything = {value: found for one in seen for value, found in one.items()}
    tied = calls(stored.graphs, everything, schemes)
    seen = [{value: tied.ranges.get(value, found) for value, found in one.items()} for one in seen]
    parameters = parameters_of_types(stored.graphs, seen, schemes, tied.values)
    tie_ends(tied, stored.signatures, ends, everything, parameters)
    left: list[str] = []

    def stays_float(node: Node, scheme: Scheme, why: str) -> None:
        if not any(value.type == TensorType.FLOAT32 for value in node.outputs):
            return
        if scheme.only:
            left.append(node.op)
        if on_float is not None and scheme.is_static:
            on_float(node.op, node.output.name, why or "what graphs hand to each other stays float")
        elif on_float is not None and scheme.weights == TensorType.FLOAT32:
            on_float(node.op, node.output.name, "kept")

    def begin(made: Rebuilt) -> None:
        pair = Pair(made, parameters)
        for value in made.source.inputs:
            if value in tied.values:
                pair.integer_input(value, tied.values[value])

    def change(made: Rebuilt, node: Node, graphs: dict[str, Graph]) -> None:
        scheme, pair = schemes[node], Pair(made, parameters)
        if scheme.is_static and pair.passes(node):
            return
        if node.graphs and any(value in tied.values for value in node.outputs):
            pair.call(node, graphs, tied.values)
        elif node.graphs or not scheme.is_static or not quantize(pair, node, scheme):
            stays_float(node, scheme, pair.refused)
            taken = pair.as_is if node.op in OF_ANY_TYPE else pair.as_float
            inputs, options = [taken(value) for value in node.inputs], node.options
            if scheme.weights == TensorType.FLOAT16 and not scheme.dequantized:
                inputs = halves(made, inputs)
            elif not scheme.is_static and scheme.weights != TensorType.FLOAT32:
                inputs, options = integer_weights(node, inputs, scheme)
            made.copy(node, inputs, graphs, options=options)

    def quantize(pair: Pair, node: Node, scheme: Scheme) -> bool:
        return quantize_cell(pair, node, scheme, everything) or pair.quantize(node, scheme)

    def result(made: Rebuilt, position: int, value: Value) -> Value | None:
        pair = Pair(made, parameters)
        handed = tied.of(made.source, position, value)
        return pair.as_float(value) if handed is None else pair.as_integer(value, handed)

    signatures = rebuild(stored, change, result, begin)
    if left:
        names = ", ".join(sorted(set(left)))
        raise ConvertError(f"these operators have no integer kernels here: {names}; allow float ones, or keep them")
    return signatures
