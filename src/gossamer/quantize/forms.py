"""What has no integer kernel, said by what has one: a float model in other words, before its values are watched."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from gossamer.convert.export import graphs_of
from gossamer.convert.graph import Graph, Node, Signature, Value, after
from gossamer.schema.enums import TensorType


def integer_forms(signatures: Sequence[Signature]) -> list[Signature]:
    """Float graphs that compute the same, within rounding."""

    def change() -> None:
        for graph in graphs_of(signatures):
            _reword(graph)

    return after(signatures, change)


def _reword(graph: Graph) -> None:
    for node in graph.ordered():
        form = FORMS.get(node.op)
        if form is None or node.output.type != TensorType.FLOAT32:
            continue
        with graph.at(*node.origins, position=node.order[0]):
            new = form(graph, node)
        if new is not None:
            new.name = node.output.name
            graph.replace(node.output, new)


def _square(graph: Graph, node: Node) -> Value:
    """SQUARE is a product."""
    return graph.add("MUL", node.input(0), node.input(0))


def _negative(graph: Graph, node: Node) -> Value | None:
    """What is added to a negative is what that is subtracted from; else NEG is a product with -1."""
    x = node.input(0)
    if all(user.op == "ADD" and user.inputs.count(node.output) == 1 for user in node.output.users):
        for user in list(node.output.users):
            other = next(value for value in user.inputs if value is not node.output)
            options = user.options
            kind = 0 if options is None else getattr(options, "fused_activation_function", 0)
            with graph.at(*user.origins, position=user.order[0]):
                new = graph.add("SUB", other, x, fused_activation_function=kind)
            new.name = user.output.name
            graph.replace(user.output, new)
        return None
    return graph.add("MUL", x, np.float32(-1))


def _quotient(graph: Graph, node: Node) -> Value | None:
    """A constant divisor is a factor."""
    divisor = node.constant(1)
    if divisor is None or not np.all(divisor):
        return None
    kind = 0 if node.options is None else getattr(node.options, "fused_activation_function", 0)
    return graph.add("MUL", node.input(0), np.float32(1) / divisor, fused_activation_function=kind)


FORMS: dict[str, Callable[[Graph, Node], Value | None]] = {"SQUARE": _square, "NEG": _negative, "DIV": _quotient}
