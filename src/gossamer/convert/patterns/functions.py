"""Functions of one value, recognized by what they compute.

However a HARD_SWISH or a GELU is spelled, it is a node from which elementwise operators lead back to one value. What
they make of sample points is compared with what TFLite's own operators make of them; if one does the same, it takes
their place. Samples are dense where functions bend, and reach to numbers that are tiny and huge: an epsilon that keeps
a division from zero is not taken for nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from gossamer.arrays import NDArray
from gossamer.convert.graph import Array, Graph, Node, Value
from gossamer.convert.infer import Call, Operand, evaluate
from gossamer.convert.patterns import pattern
from gossamer.convert.patterns.matching import is_elementwise
from gossamer.errors import GossamerError
from gossamer.ops import find_op
from gossamer.schema.enums import TensorType
from gossamer.schema.fields import Table

MOST_NODES = 48
"""Operators that one function may be spelled with: an error function of its parts has about twenty."""

_TINY = np.array([1e-30, 1e-12, 1e-9, 1e-6, 1e-3])
_LARGE = np.array([20, 50, 88, 300, 1000, 1e5, 1e9, 1e20])
_HALF = np.concatenate([_TINY, np.linspace(0, 12, 97)[1:], _LARGE])
POINTS: Array = np.concatenate([-_HALF[::-1], [0], _HALF]).astype(np.float32)
ONE = int(np.flatnonzero(POINTS == 1)[0])
NOT_FINITE: Array = np.array([np.inf, -np.inf, np.nan], np.float32)


class Function(NamedTuple):
    """An operator, its options, and how far what it computes may be from what it stands for. If only in relation to
    that, then everywhere; else as far as sums of the parts make sense."""

    op: str
    options: Mapping[str, Any] = {}
    rtol: float = 1e-5
    atol: float = 0.0


FUNCTIONS = (
    *[Function(op) for op in ("RELU", "RELU6", "RELU_N1_TO_1", "ABS", "NEG", "SQUARE", "SQRT", "RSQRT", "EXP", "LOG")],
    *[Function(op, atol=1e-6) for op in ("LOGISTIC", "TANH", "ELU")],
    Function("HARD_SWISH", rtol=3e-5, atol=1e-6),  # many write 0.16667
    *[Function("GELU", {"approximate": approximate}, atol=3e-6) for approximate in (False, True)],
)

ROOTS = frozenset(
    ("ADD", "SUB", "MUL", "DIV", "NEG", "MAXIMUM", "MINIMUM", "SELECT", "SELECT_V2", "POW", "SQRT", "RSQRT", "SQUARE",
     "EXP", "RELU", "RELU6", "RELU_N1_TO_1", "ABS", "LOG")
)  # fmt: skip
"""Operators that a spelling of one of these functions ends with."""

ALONE = frozenset(("POW", "MAXIMUM", "MINIMUM"))
"""Operators that may be another function by themselves."""


@pattern(*ROOTS)
def function_of_one_value(graph: Graph, node: Node) -> Value | None:
    """What a node computes of a value further back, if an operator does just that."""
    if node.output.type != TensorType.FLOAT32:
        return None
    stages = list(_stages(graph, node))
    if not stages:
        return None
    computed = _computed(stages[-1][1], stages[-1][0])
    if computed is None:
        return None
    result = computed[node.output]
    for x, cone in stages:
        if len(cone) == 1 and node.op not in ALONE:
            continue
        points = computed[x]
        if not _differ(points, result, points, 1e-5) and _is_close(result, points, 1e-5).all():
            return x if _keeps_what_is_not_finite(node, x, cone) else None
        for function in (*FUNCTIONS, *_leaky(points, result)):
            if function.op != node.op or len(cone) > 1:
                expected = _values(function, points)
                if expected is not None and _agree(points, result, expected, function):
                    return graph.add(function.op, x, **function.options)
    return None


def _stages(graph: Graph, root: Node) -> Iterator[tuple[Value, list[Node]]]:
    """Values that a node is a function of, nearest first, and the nodes between, root first."""
    cone, leaves = [root], _leaves(root)
    while leaves is not None and len(cone) <= MOST_NODES:
        if len(leaves) == 1:
            yield next(iter(leaves)), list(cone)
        last = max(leaves, key=lambda value: (-1, -1) if value.node is None else value.node.order)
        node = last.node
        if node is None or last in graph.outputs or any(user not in cone for user in last.users):
            return
        more = _leaves(node) if last.shapes == root.output.shapes else None
        if more is None:
            return
        cone.append(node)
        del leaves[last]
        leaves.update(more)


def _leaves(node: Node) -> dict[Value, None] | None:
    """The operands of an elementwise node that are no constants; ``None`` if it is none, or does more than that."""
    if node.is_custom or not is_elementwise(node.op) or node.op == "CAST":
        return None
    leaves: dict[Value, None] = {}
    for value in node.inputs:
        if value is None or (value.data is not None and value.data.size != 1):
            return None
        if value.data is None:
            if value.shapes != node.output.shapes or value.quantization:
                return None
            leaves[value] = None
    return leaves or None


def _keeps_what_is_not_finite(node: Node, x: Value, cone: list[Node]) -> bool:
    """Whether a node that does nothing to finite numbers is no guard against others either."""
    computed = _computed(cone, x, NOT_FINITE)
    return computed is not None and np.array_equal(computed[node.output], NOT_FINITE, equal_nan=True)


def _computed(cone: list[Node], x: Value, points: Array = POINTS) -> dict[Value, Array] | None:
    """What nodes, root first, make of the sample points for a value."""
    if x.type != TensorType.FLOAT32:
        return None
    found: dict[Value, Array] = {x: points}
    for node in sorted(cone, key=_depth(cone)):
        values = [found[value] if value in found else value.data.reshape(-1) for value in node.inputs]  # type: ignore[union-attr]
        result = _run(node.op, node.options, values)
        if result is None or result.shape != points.shape:
            return None
        found[node.output] = result
    return found


def _depth(cone: list[Node]) -> Any:
    depth: dict[Node, int] = {}

    def of(node: Node) -> int:
        if node not in depth:
            inside = {value.node for value in node.inputs if value is not None} & members
            depth[node] = 1 + max((of(one) for one in inside if one is not None), default=0)
        return depth[node]

    members = set(cone)
    return of


def _run(name: str, options: Table | None, values: list[Array]) -> Array | None:
    op = find_op(name)
    if op is None:
        return None
    try:
        operands = [Operand(TensorType[value.dtype.name.upper()], value.shape, value) for value in values]
        return evaluate(Call(op, options or op.options(), operands))[0].value
    except (GossamerError, KeyError):
        return None


def _leaky(points: Array, result: Array) -> list[Function]:
    """The LEAKY_RELU that it could be."""
    below = points < -1e-3
    if not below.any():
        return []
    with np.errstate(all="ignore"):
        slope = result[below][0] / points[below][0]
    return [Function("LEAKY_RELU", {"alpha": float(slope)})] if np.isfinite(slope) else []


def _values(function: Function, points: Array) -> Array | None:
    if points is POINTS and function.op != "LEAKY_RELU":
        return _at_points(function.op, tuple(function.options.items()))
    op = find_op(function.op)
    return None if op is None else _run(function.op, op.options(**function.options), [points])


@cache
def _at_points(name: str, options: tuple[tuple[str, Any], ...]) -> Array | None:
    op = find_op(name)
    return None if op is None else _run(name, op.options(**dict(options)), [POINTS])


def _agree(points: Array, result: Array, expected: Array, function: Function) -> bool:
    if _differ(points, result, expected, function.rtol, function.atol):
        return False
    low, high = np.finfo(np.float32).min, np.finfo(np.float32).max  # some operators give these for infinity
    close = _is_close(np.clip(result, low, high), np.clip(expected, low, high), function.rtol, function.atol)
    return bool((close | (np.abs(points) > 1e6)).all() if function.atol else close.all())


def _differ(points: Array, one: Array, other: Array, rtol: float, atol: float = 0.0) -> bool:
    """Whether one sample alone shows that these are not close, as it does for most functions."""
    point, a, b = (float(array[ONE]) for array in (points, one, other))
    return abs(point) < 1e6 and abs(a - b) > 2 * (atol + rtol * abs(b))


def _is_close(one: Array, other: Array, rtol: float, atol: float = 0.0) -> NDArray[np.bool_]:
    with np.errstate(all="ignore"):
        return np.isclose(one, other, rtol, atol, equal_nan=True)
