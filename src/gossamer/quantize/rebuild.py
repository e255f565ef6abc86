"""Graphs built anew with other types: each operator is added again, as it was or with other operands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from gossamer.convert.graph import Graph, Node, Signature, Value
from gossamer.convert.importers.tflite import Stored
from gossamer.quantization import UNQUANTIZED, Quantization
from gossamer.quantize.given import given
from gossamer.schema.enums import TensorType
from gossamer.schema.fields import Table


class Rebuilt:
    """A graph in the making next to the one that it is made from. ``values``: what its values have become;
    ``integers``: as integers with these parameters, b"" for those that the value was made with; ``halves``: constants
    that are stored in 16 bits."""

    def __init__(self, source: Graph) -> None:
        self.source = source
        self.graph = Graph(source.name)
        self.values: dict[Value, Value] = {}
        self.integers: dict[tuple[Value, bytes], Value] = {}
        self.halves: dict[Value, Value] = {}
        self._nodes: dict[Node, Node] = {}
        for value in source.inputs:
            self.values[value] = self.input(value, value.type)

    @cached_property
    def brings_parameters(self) -> bool:
        """Whether the graph was trained for integers: see `gossamer.quantize.given`."""
        return bool(given(self.source))

    def input(self, value: Value, type: TensorType) -> Value:
        """An input of the new graph in the place of one of the old."""
        new = Value(type, value.shapes, None, value.name, _stored(value))
        new.is_variable = value.is_variable
        self.graph.inputs.append(new)
        return new

    def value(self, value: Value | None) -> Value | None:
        """What a value has become; constants are what they were."""
        if value is None or (value not in self.values and value.node is None):
            return value
        return self.values[value]

    def copy(
        self,
        node: Node,
        inputs: Sequence[Value | None],
        graphs: dict[str, Graph],
        outputs: Sequence[Value] | None = None,
        options: Table | None = None,
        intermediates: Sequence[Value] | None = None,
    ) -> list[Value]:
        """The operator on other inputs; its outputs are those of the old one in name, type and shape, and its options
        and intermediate tensors are the old ones, if no others are given."""
        if outputs is None:
            outputs = [Value(old.type, old.shapes, None, old.name, _stored(old)) for old in node.outputs]
        outputs = list(outputs)
        options = node.options if options is None else options
        new = Node(node.op, list(inputs), outputs, options, node.order, node.origins, node.custom_options, graphs)
        new.intermediates = node.intermediates if intermediates is None else list(intermediates)
        self.chain(node, new)
        for old, value in zip(node.outputs, outputs, strict=True):
            value.is_variable = old.is_variable
            self.values[old] = value
        return outputs

    def chain(self, old: Node, new: Node) -> None:
        """Effects keep their order."""
        self._nodes[old] = new
        new.after = None if old.after is None else self._nodes.get(old.after)
        if old in self.source.effects:
            self.graph.effects.append(new)


def _stored(value: Value) -> Quantization:
    """Floats have no parameters in a file."""
    return UNQUANTIZED if value.type == TensorType.FLOAT32 else value.quantization


def rebuild(
    stored: Stored,
    change: Callable[[Rebuilt, Node, dict[str, Graph]], None],
    result: Callable[[Rebuilt, int, Value], Value | None] = lambda made, position, value: made.value(value),
    begin: Callable[[Rebuilt], None] = lambda made: None,
) -> list[Signature]:
    """The signatures over new graphs: ``begin`` may change their inputs, ``change`` adds each operator, in their order,
    ``result`` gives what the output with a number has become."""
    made: dict[int, Rebuilt] = {}
    graphs: dict[int, Graph] = {}

    def of(graph: Graph) -> Graph:
        if id(graph) not in graphs:
            rebuilt = made[id(graph)] = Rebuilt(graph)
            graphs[id(graph)] = rebuilt.graph
            begin(rebuilt)
            for node in graph.ordered():
                with rebuilt.graph.at(*node.origins, position=node.order[0]):
                    change(rebuilt, node, {key: of(called) for key, called in node.graphs.items()})
            results = [result(rebuilt, position, value) for position, value in enumerate(graph.outputs)]
            rebuilt.graph.outputs = [new for new in results if new is not None]
        return graphs[id(graph)]

    signatures = []
    for signature in stored.signatures:
        graph = of(signature.graph)
        old, new = signature.graph, graph
        inputs = {name: new.inputs[old.inputs.index(value)] for name, value in signature.inputs.items()}
        outputs = {name: new.outputs[old.outputs.index(value)] for name, value in signature.outputs.items()}
        signatures.append(Signature(signature.key, graph, inputs, outputs))
    return signatures


def options_of(node: Node) -> dict[str, Any]:
    """The options of an operator that its file has, by name."""
    options = node.options
    return {} if options is None else {f.name: getattr(options, f.name) for f in options.FIELDS if options.has(f.name)}
