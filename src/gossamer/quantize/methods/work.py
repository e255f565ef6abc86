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


class Channels:
    """The least and the greatest value of each channel, [channels], and its mean square."""

    def __init__(self, channels: int) -> None:
        self.low = np.full(channels, np.inf)
        self.high = np.full(channels, -np.inf)
        self._squares = np.zeros(channels)
        self._count = 0

    def see(self, array: Array) -> None:
        """A sample."""
        rows = array.reshape(-1, array.shape[-1])
        if len(rows):
            self.low, self.high = np.minimum(self.low, rows.min(0)), np.maximum(self.high, rows.max(0))
            self._squares += np.square(rows, dtype=np.float64).sum(0)
            self._count += len(rows)

    @property
    def largest(self) -> Array:
        """The largest magnitude."""
        return np.maximum(np.abs(self.low), np.abs(self.high)) if self._count else np.zeros(self.low.shape)

    @property
    def square(self) -> Array:
        """The mean square."""
        return np.asarray(self._squares / max(self._count, 1))


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

    def channels(self, values: Iterable[Value]) -> dict[Value, Channels]:
        """What is seen of the channels of values, those along the last axis, over all samples."""
        found = {value: Channels(value.shapes[0][-1]) for value in values}
        self.observe({value: channels.see for value, channels in found.items()})
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
