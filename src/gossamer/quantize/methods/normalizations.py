"""Normalizations said so that their intermediate values quantize well.

Converters make of ``(x - m) * a + b``, ``m`` the mean of ``x`` and ``a = rsqrt(v + e) * g``, the form
``x * a + (b - m * a)``: a difference of two products, each rounded in a range that the mean decides. Subtracted first,
what is rounded has the range of the result, and the variance is the mean of its square. ``(x - m) * rsqrt(v + e)`` has
variance 1 whatever ``g`` is, so ``g`` comes last.

The sums are exact algebra; floats differ by rounding. It costs nothing: the form has no more operators.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from gossamer.convert.graph import Graph, Node, Value, after
from gossamer.quantize.methods.work import Work


def apply(work: Work) -> None:
    """Rewrites all that have the form."""

    def change() -> None:
        for graph, node in list(work.nodes()):
            found = _normalization(node)
            if found is not None:
                _rewrite(work, graph, node, found)

    work.signatures = after(work.signatures, change)


class _Normalization(NamedTuple):
    x: Value
    mean: Value
    factor: Value
    shift: Value | None


def _normalization(node: Node) -> _Normalization | None:
    """The parts of ``x * a + (b - m * a)``, if an operator adds that up."""
    if node.op not in ("ADD", "SUB") or (node.op == "SUB" and _is_fused(node)):
        return None
    terms = [node.inputs, node.inputs[::-1]] if node.op == "ADD" else [node.inputs]
    for left, right in terms:
        if left is None or right is None or left.node is None or left.node.op != "MUL" or _is_fused(left.node):
            continue
        for x, factor in (left.node.inputs, left.node.inputs[::-1]):
            if x is None or factor is None or factor.data is not None:
                continue
            if node.op == "SUB":
                mean, shift = _times(right, factor), None
            else:
                mean, shift = _negative(right, factor)
            if mean is not None and mean.node is not None and mean.node.op == "MEAN" and mean.node.inputs[0] is x:
                return _Normalization(x, mean, factor, shift)
    return None


def _negative(value: Value, factor: Value) -> tuple[Value | None, Value | None]:
    """``m`` and ``b`` of ``b - m * factor``, ``b`` is ``None`` where nothing is added."""
    negated = _times(value, factor)
    if negated is not None and negated.node is not None and negated.node.op == "NEG":
        return negated.node.inputs[0], None
    node = value.node
    if node is None or _is_fused(node) or node.op not in ("ADD", "SUB"):
        return None, None
    first, second = node.inputs
    if first is None or second is None:
        return None, None
    if node.op == "SUB":
        return _times(second, factor), first
    for one, other in ((first, second), (second, first)):
        negated = _times(one, factor)
        if negated is not None and negated.node is not None and negated.node.op == "NEG":
            return negated.node.inputs[0], other
    return None, None


def _times(value: Value, factor: Value) -> Value | None:
    """What a value is the product of, beside a factor."""
    node = value.node
    if node is None or node.op != "MUL" or _is_fused(node) or factor not in node.inputs:
        return None
    return node.inputs[1 - node.inputs.index(factor)]


def _is_fused(node: Node) -> bool:
    return bool(getattr(node.options, "fused_activation_function", 0))


def _rewrite(work: Work, graph: Graph, node: Node, found: _Normalization) -> None:
    def add(like: Node, op: str, *operands: Value, activation: int = 0) -> Value:
        with graph.at(*like.origins, position=like.order[0]):
            new = graph.add(op, *operands, name=like.output.name, fused_activation_function=activation)
        if new.node is not None:
            work.schemes[new.node] = work.schemes[like]
        return new

    squares = [user for user in found.mean.users if user.op == "SQUARED_DIFFERENCE" and found.x in user.inputs]
    before = squares[0] if squares else node
    centered = add(before, "SUB", found.x, found.mean)
    for square in squares:
        graph.replace(square.output, add(square, "MUL", centered, centered))
    root, gain = _parts(found.factor)
    steps: list[Callable[[Value, int], Value]] = [lambda value, last: add(node, "MUL", value, root, activation=last)]
    if gain is not None:
        steps.append(lambda value, last: add(node, "MUL", value, gain, activation=last))
    shift = found.shift
    if shift is not None:
        steps.append(lambda value, last: add(node, "ADD", value, shift, activation=last))
    result = centered
    for number, step in enumerate(steps):
        last = int(getattr(node.options, "fused_activation_function", 0)) if number == len(steps) - 1 else 0
        result = step(result, last)
    graph.replace(node.output, result)


def _parts(factor: Value) -> tuple[Value, Value | None]:
    """A factor that is computed, and the constant that it was multiplied with, if it was."""
    node = factor.node
    if node is not None and node.op == "MUL" and not _is_fused(node):
        for one, other in (node.inputs, node.inputs[::-1]):
            if one is not None and other is not None and one.data is None and other.data is not None:
                return one, other
    return factor, None
