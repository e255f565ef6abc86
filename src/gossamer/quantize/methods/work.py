"""What the methods work on: a float model on its way to integers, and the samples that show its values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.convert.export import graphs_of, to_model
from gossamer.convert.graph import Graph, Node, Signature, Value, constant
from gossamer.convert.importers.tflite import graphs_of_model
from gossamer.quantize.calibrate import watch
from gossamer.quantize.scheme import Scheme

Array = NDArray[Any]
See = Callable[[Array], object]
"""A function of what a value holds in a sample, which it must not keep."""


class Work:
    """A float model, the scheme of each of its operators, and its samples. Methods change it in place, and give
    operators that they add a scheme. ``exact``: the weights of operators before they were rounded."""

    def __init__(
        self, signatures: Sequence[Signature], schemes: dict[Node, Scheme], samples: Callable[[], Iterable[Any]]
    ) -> None:
        self.signatures = signatures
        self.schemes = schemes
        self.samples = samples
        self.exact: dict[Node, Array] = {}

    @property
    def graphs(self) -> list[Graph]:
        """All graphs."""
        return graphs_of(self.signatures)

    def nodes(self) -> Iterator[tuple[Graph, Node]]:
        """All operators in the order of their execution, each with its graph."""
        for graph in self.graphs:
            for node in graph.ordered():
                yield graph, node

    def observe(self, see: Mapping[Value, See]) -> None:
        """Runs the samples, and calls the function of each value with all that it holds."""
        model = to_model(self.signatures)
        stored = graphs_of_model(model)
        called: dict[int, dict[int, See]] = {}
        for number, (graph, again) in enumerate(zip(self.graphs, stored.graphs, strict=True)):
            numbers = {id(value): index for index, value in enumerate(stored.values[number])}
            pairs = [*zip(graph.inputs, again.inputs, strict=True)]
            for old, new in zip(graph.ordered(), again.ordered(), strict=True):
                pairs += zip(old.outputs, new.outputs, strict=True)
            called[number] = {numbers[id(new)]: see[old] for old, new in pairs if old in see}
        watch(
            model,
            self.samples(),
            lambda subgraph, tensor, value: called[subgraph][tensor](value),
            {number: list(functions) for number, functions in called.items() if functions},
        )

    def magnitudes(self, values: Iterable[Value]) -> dict[Value, Array]:
        """The largest magnitudes along the last axis of values, over all samples."""
        found: dict[Value, Array] = {}

        def look(value: Value) -> See:
            def see(array: Array) -> None:
                largest = np.abs(array.reshape(-1, array.shape[-1])).max(0, initial=0)
                found[value] = np.maximum(found.get(value, 0), largest)

            return see

        self.observe({value: look(value) for value in values if value.rank})
        return found

    def replace_weights(self, graph: Graph, node: Node, position: int, rounded: Array) -> None:
        """Gives an operator weights that are near what it had."""
        self.exact.setdefault(node, np.asarray(node.constant(position)))
        self.schemes[node] = self.schemes[node]._replace(clipping="")  # what was cut off is gone
        set_constant(graph, node, position, rounded)


def set_constant(graph: Graph, node: Node, position: int, array: Array) -> None:
    """Another constant for an operator; others that share the old one keep it."""
    old = node.input(position)
    graph.set_input(node, position, constant(array.astype(old.dtype), old.type, old.name))
