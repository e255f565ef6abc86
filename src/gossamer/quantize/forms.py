"""What has no integer kernel, said by what has one: a float model in other words, before its values are watched."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from gossamer.convert.export import graphs_of
from gossamer.convert.graph import Graph, Node, Signature, Value, after
from gossamer.ops import find_op
from gossamer.quantize.recurrent import add_intermediates
from gossamer.quantize.scheme import Scheme, Schemes
from gossamer.schema.enums import ActivationFunctionType, TensorType


def integer_forms(signatures: Sequence[Signature], schemes: dict[Node, Scheme]) -> list[Signature]:
    """Float graphs that compute the same, within rounding. New operators get the schemes of those whose places they
    take."""

    def change() -> None:
        for graph in graphs_of(signatures):
            places = {node.order[0]: schemes[node] for node in graph.ordered()}
            for node in graph.ordered():
                if schemes[node].is_static:
                    add_intermediates(node)
            _reword(graph, schemes)
            schemes.update({node: places[node.order[0]] for node in graph.ordered() if node not in schemes})

    return after(signatures, change)


def _reword(graph: Graph, schemes: Schemes) -> None:
    for node in graph.ordered():
        scheme = schemes[node]
        form = FORMS_OF_ALL.get(node.op, FORMS.get(node.op)) if scheme.only else FORMS.get(node.op)
        if form is None or not scheme.is_static or node.output.type != TensorType.FLOAT32 or _has_kernel(node, scheme):
            continue
        with graph.at(*node.origins, position=node.order[0]):
            new = form(graph, node)
        if new is not None:
            new.name = node.output.name
            graph.replace(node.output, new)


def _has_kernel(node: Node, scheme: Scheme) -> bool:
    op = find_op(node.op)
    return op is not None and op.quantizes is not None and scheme.activations in op.types[op.inputs[0]]


def _activation(node: Node) -> int:
    return 0 if node.options is None else int(getattr(node.options, "fused_activation_function", 0))


def _square(graph: Graph, node: Node) -> Value:
    """SQUARE is a product."""
    return graph.add("MUL", node.input(0), node.input(0))


def _negative(graph: Graph, node: Node) -> Value | None:
    """What is added to a negative is what that is subtracted from; else NEG is a product with -1."""
    x = node.input(0)
    if all(user.op == "ADD" and user.inputs.count(node.output) == 1 for user in node.output.users):
        for user in list(node.output.users):
            other = next(value for value in user.inputs if value is not node.output)
            with graph.at(*user.origins, position=user.order[0]):
                new = graph.add("SUB", other, x, fused_activation_function=_activation(user))
            new.name = user.output.name
            graph.replace(user.output, new)
        return None
    return graph.add("MUL", x, np.float32(-1))


def _quotient(graph: Graph, node: Node) -> Value | None:
    """A constant divisor is a factor."""
    divisor = node.constant(1)
    if divisor is None or not np.all(divisor):
        return None
    return graph.add("MUL", node.input(0), np.float32(1) / divisor, fused_activation_function=_activation(node))


def _any_quotient(graph: Graph, node: Node) -> Value | None:
    """x / y, where y is positive for certain, is x * RSQRT(y) * RSQRT(y)."""
    found = _quotient(graph, node)
    if found is not None or not _is_positive(node.input(1)):
        return found
    root = graph.add("RSQRT", node.input(1))
    product = graph.add("MUL", node.input(0), root)
    return graph.add("MUL", product, root, fused_activation_function=_activation(node))


def _is_positive(value: Value) -> bool:
    """Whether a value is the sum of a positive constant and what is not negative."""
    node = value.node
    if node is None or node.op != "ADD":
        return False
    constants = [v.data for v in node.inputs if v is not None and v.data is not None]
    others = [v.node.op for v in node.inputs if v is not None and v.node is not None]
    return bool(constants and others) and bool(constants[0].min(initial=1) > 0) and others[0] in NOT_NEGATIVE


NOT_NEGATIVE = ("ABS", "SQUARE", "SQUARED_DIFFERENCE", "EXP", "RELU", "RELU6", "LOGISTIC", "SOFTMAX", "SQRT")


def _squared_difference(graph: Graph, node: Node) -> Value:
    """SQUARED_DIFFERENCE is a product of differences."""
    difference = graph.add("SUB", node.input(0), node.input(1))
    return graph.add("MUL", difference, difference)


def _hard_swish(graph: Graph, node: Node) -> Value:
    """x * min(max(x + 3, 0), 6) / 6."""
    x = node.input(0)
    gate = graph.add("ADD", x, np.float32(3), fused_activation_function=ActivationFunctionType.RELU6)
    return graph.add("MUL", x, graph.add("MUL", gate, np.float32(1 / 6)))


def _elu(graph: Graph, node: Node) -> Value:
    """max(x, 0) + (exp(min(x, 0)) - 1)."""
    x = node.input(0)
    below = graph.add("SUB", graph.add("EXP", graph.add("MINIMUM", x, np.float32(0))), np.float32(1))
    return graph.add("ADD", graph.add("RELU", x), below)


def _clamp(low: float, high: float) -> Callable[[Graph, Node], Value]:
    def clamped(graph: Graph, node: Node) -> Value:
        return graph.add("MAXIMUM", graph.add("MINIMUM", node.input(0), np.float32(high)), np.float32(low))

    return clamped


FORMS: dict[str, Callable[[Graph, Node], Value | None]] = {
    "SQUARE": _square,
    "NEG": _negative,
    "DIV": _quotient,
    "SQUARED_DIFFERENCE": _squared_difference,
    "HARD_SWISH": _hard_swish,
    "ELU": _elu,
    "RELU_N1_TO_1": _clamp(-1, 1),
    "RELU_0_TO_1": _clamp(0, 1),
}
"""By the operator that has no integer kernel of the type."""

FORMS_OF_ALL: dict[str, Callable[[Graph, Node], Value | None]] = {"DIV": _any_quotient}
"""Where nothing may stay float: less exact than the float operator."""
