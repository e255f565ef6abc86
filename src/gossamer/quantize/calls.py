"""Parameters across calls: what a WHILE or an IF hands to other graphs, and what they hand back, has the same ones on
both sides, and a loop's values have the same in every round.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from gossamer.convert.graph import Graph, Node, Value
from gossamer.quantize.parameters import Typed, of_range
from gossamer.quantize.scheme import Schemes
from gossamer.schema.enums import TensorType

Range = tuple[float, float]
Place = Value | tuple[Graph, int]
"""An input of a graph, a result of a call; or the output of a graph with a number, whichever value that is."""


class Calls(NamedTuple):
    """The ``ranges`` of places, and the parameters of those that are integers: of ``values``, and of the ``outputs`` of
    graphs that are called, by their number."""

    ranges: dict[Value, Range]
    values: dict[Value, Typed]
    outputs: dict[tuple[Graph, int], Typed]

    def of(self, graph: Graph, position: int, value: Value) -> Typed | None:
        """Those of an output of a graph, ``None`` where it is handed back as it is."""
        return self.outputs.get((graph, position)) if value.type == TensorType.FLOAT32 else None


def calls(graphs: Sequence[Graph], seen: Mapping[Value, Range], schemes: Schemes) -> Calls:
    """The ranges of all float places of calls, which are those of all that gets there, and the parameters of places of
    calls that must not have floats."""
    groups: dict[Place, list[Place]] = {}
    arrive: dict[Place, list[Value]] = {}
    types: dict[Place, TensorType] = {}
    for graph in graphs:
        for node in graph.ordered():
            scheme = schemes[node]
            for place, other, value in _handed(node) if scheme.is_static else ():
                joined = groups.get(place, [place])
                if other not in joined:
                    joined = joined + groups.get(other, [other])
                groups.update(dict.fromkeys(joined, joined))
                arrive.setdefault(place, []).append(value)
                if scheme.only:
                    types.setdefault(place, scheme.activations)
    result = Calls({}, {}, {})
    for place, group in groups.items():
        values = [one for one in group if isinstance(one, Value)]
        values += [value for one in group for value in arrive.get(one, [])]
        ranges = [found for value in values if (found := range_of(value, seen)) is not None]
        if not ranges:
            continue
        low, high = min(low for low, _ in ranges), max(high for _, high in ranges)
        if isinstance(place, Value):
            result.ranges[place] = low, high
        kind = next((types[one] for one in group if one in types), None)
        if kind is None:
            continue
        typed = kind, of_range(low, high, kind)
        if isinstance(place, Value):
            result.values[place] = typed
        else:
            result.outputs[place] = typed
    return result


def _handed(node: Node) -> Iterator[tuple[Place, Place, Value]]:
    """Two places that are one, and a value that gets there, for all that a call hands over and back."""
    for graph in node.graphs.values():
        first = next(iter(node.graphs.values()))
        operands = node.inputs[len(node.inputs) - len(graph.inputs) :]
        for value, shared, inner in zip(operands, first.inputs, graph.inputs, strict=True):
            if value is not None and inner.type == TensorType.FLOAT32:
                yield shared, inner, value
        if node.op == "WHILE" and graph is first:
            continue  # its condition
        for position, (result, value) in enumerate(zip(node.outputs, graph.outputs, strict=True)):
            if result.type == TensorType.FLOAT32:
                yield result, (graph, position), value
                if node.op == "WHILE":
                    yield result, graph.inputs[position], value


def range_of(value: Value, seen: Mapping[Value, Range]) -> Range | None:
    """What a value was seen to be, or what a constant is."""
    if value.data is not None and value.node is None and value.data.size:
        return float(value.data.min()), float(value.data.max())
    return seen.get(value)
