"""Activations that the operator before them does, and slopes and norms spelled in arithmetic.

An operator whose options have a ``fused_activation_function`` takes a clamp, if nobody else needs what it gives without
it. Whether it does so for its types, the operator itself says.
"""

from __future__ import annotations

import numpy as np

from gossamer.convert.graph import Graph, Node, Value
from gossamer.convert.patterns import pattern
from gossamer.convert.patterns.matching import activation, again, is_close, made_by, number, only_use, options, sides
from gossamer.quantization import CLAMPS, activation_range
from gossamer.schema.enums import ActivationFunctionType, TensorType

CLAMP_OF = {ActivationFunctionType(kind).name: ActivationFunctionType(kind) for kind in CLAMPS if kind}
"""The fused activation that is an operator's doing, by the operator's name."""


def clamp_of(node: Node) -> ActivationFunctionType:
    """The clamp that an operator is, or ends with."""
    return CLAMP_OF.get(node.op, ActivationFunctionType(activation(node)))


def both(first: ActivationFunctionType, second: ActivationFunctionType) -> ActivationFunctionType | None:
    """One clamp that does what two do one after the other, if there is one."""
    (low, high), (least, most) = activation_range(first), activation_range(second)
    bounds = min(max(low, least), most), max(min(high, most), least)
    return next((ActivationFunctionType(kind) for kind in CLAMPS if activation_range(kind) == bounds), None)


def takes_activation(node: Node | None) -> bool:
    """Whether the option is an activation of the result, and a clamp."""
    if node is None or node.is_custom or node.options is None:
        return False
    remembers = any(value is not None and value.is_variable for value in node.inputs)  # then it acts on the state
    clamps = activation(node) in CLAMPS
    return "fused_activation_function" in options(node).FIELD and clamps and not remembers


@pattern(*CLAMP_OF)
def fused(graph: Graph, node: Node) -> Value | None:
    """An activation of what an operator gives: a part of that operator."""
    x = node.input(0)
    before = x.node
    if before is None or not only_use(graph, x):
        return None
    if before.op in CLAMP_OF:
        kind = both(CLAMP_OF[before.op], CLAMP_OF[node.op])
        return None if kind is None else graph.add(kind.name, before.input(0))
    if not takes_activation(before):
        return None
    kind = both(clamp_of(before), CLAMP_OF[node.op])
    return None if kind is None else again(graph, before, fused_activation_function=kind)


@pattern(*CLAMP_OF)
def before_reshape(graph: Graph, node: Node) -> Value | None:
    """An activation of a reshaped result: done before it is reshaped, where it can be fused."""
    shaped = made_by(node.input(0), "RESHAPE")
    if shaped is None or not only_use(graph, shaped.output) or not only_use(graph, shaped.input(0)):
        return None
    if not takes_activation(shaped.input(0).node):
        return None
    return again(graph, shaped, graph.add(node.op, shaped.input(0)), *shaped.inputs[1:])


@pattern("ADD", "SUB")
def sloped(graph: Graph, node: Node) -> Value | None:
    """relu(x) - alpha * relu(-x), relu(x) + alpha * min(x, 0) and the like: PRELU. (Of one slope: `functions`.)"""
    if activation(node) or node.output.type != TensorType.FLOAT32:
        return None
    for positive, other in sides(node)[: 1 if node.op == "SUB" else 2]:
        relu = made_by(positive, "RELU")
        below = None if relu is None else _below(other, relu.input(0))
        if relu is None or below is None or below.size == 1:
            continue
        alpha = below if node.op == "ADD" else -below
        if np.broadcast_shapes(alpha.shape, relu.input(0).shapes[0]) == relu.input(0).shapes[0]:
            return graph.add("PRELU", relu.input(0), _as_alpha(alpha, relu.input(0).rank))
    return None


@pattern("SELECT", "SELECT_V2")
def selected_slope(graph: Graph, node: Node) -> Value | None:
    """x where it is positive, alpha * x elsewhere: PRELU."""
    test = made_by(node.input(0), "GREATER", "GREATER_EQUAL")
    x, below = node.input(1), node.input(2)
    if test is None or test.input(0) is not x or number(test.input(1)) != 0 or x.type != TensorType.FLOAT32:
        return None
    product = made_by(below, "MUL")
    alpha = None if product is None else _factor(product, x)
    if alpha is None or alpha.size == 1 or np.broadcast_shapes(alpha.shape, x.shapes[0]) != x.shapes[0]:
        return None
    return graph.add("PRELU", x, _as_alpha(alpha, x.rank))


def _as_alpha(alpha: np.ndarray, rank: int) -> np.ndarray:
    return alpha.reshape((1,) * (rank - 1 - alpha.ndim) + alpha.shape) if alpha.ndim < rank - 1 else alpha


def _factor(product: Node, x: Value) -> np.ndarray | None:
    """The constant in x * constant."""
    if activation(product):
        return None
    return next((c.data for one, c in sides(product) if one is x and c.data is not None), None)


def _below(value: Value, x: Value) -> np.ndarray | None:
    """The constant by which a value is min(x, 0) times it."""
    negated = made_by(value, "NEG")
    if negated is not None:
        slope = _below(negated.input(0), x)
        return None if slope is None else -slope
    product = made_by(value, "MUL")
    if product is not None and not activation(product):
        for one, c in sides(product):
            slope = None if c.data is None else _below(one, x)
            if slope is not None and c.data is not None:
                return np.asarray(slope * c.data)
    least = made_by(value, "MINIMUM")
    if least is not None and any(one is x and number(c) == 0 for one, c in sides(least)):
        return np.ones((), np.float32)
    relu = made_by(value, "RELU")
    opposite = None if relu is None else made_by(relu.input(0), "NEG")
    if opposite is not None and opposite.input(0) is x:
        return -np.ones((), np.float32)
    difference = made_by(value, "SUB")  # x - abs(x) is twice that
    if difference is not None and difference.input(0) is x and not activation(difference):
        size = made_by(difference.input(1), "ABS")
        if size is not None and size.input(0) is x:
            return np.full((), 2, np.float32)
    return None


# -- norms


@pattern("LOG")
def log_softmax(graph: Graph, node: Node) -> Value | None:
    """The logarithm of a softmax."""
    softmax = made_by(node.input(0), "SOFTMAX")
    if softmax is None or options(softmax).beta != 1 or not only_use(graph, softmax.output):
        return None
    return graph.add("LOG_SOFTMAX", softmax.input(0))


@pattern("DIV")
def softmax(graph: Graph, node: Node) -> Value | None:
    """exp(x) / sum(exp(x)) along the last axis."""
    top, total = made_by(node.input(0), "EXP"), made_by(node.input(1), "SUM")
    if top is None or total is None or total.input(0) is not top.output or not _is_last(total) or activation(node):
        return None
    return graph.add("SOFTMAX", _past_maximum(top.input(0)), beta=1.0)


@pattern("SUB")
def log_softmax_of_sums(graph: Graph, node: Node) -> Value | None:
    """x - log(sum(exp(x))) along the last axis."""
    log = made_by(node.input(1), "LOG")
    total = None if log is None else made_by(log.input(0), "SUM")
    exp = None if total is None else made_by(total.input(0), "EXP")
    if total is None or exp is None or exp.input(0) is not node.input(0) or not _is_last(total) or activation(node):
        return None
    return graph.add("LOG_SOFTMAX", _past_maximum(node.input(0)))


def _is_last(node: Node) -> bool:
    """Whether a reduction is along the last axis, which stays as a one."""
    axes, rank = node.constant(1), node.input(0).rank
    kept = options(node).keep_dims
    return axes is not None and [int(axis) % rank for axis in axes.reshape(-1)] == [rank - 1] and kept


def _past_maximum(x: Value) -> Value:
    """x of x - max(x), which is the same to a softmax."""
    shifted = made_by(x, "SUB")
    most = None if shifted is None else made_by(shifted.input(1), "REDUCE_MAX")
    if shifted is None or most is None or most.input(0) is not shifted.input(0) or not _is_last(most):
        return x
    return x if activation(shifted) else shifted.input(0)


@pattern("MUL", "DIV")
def l2_normalization(graph: Graph, node: Node) -> Value | None:
    """x * rsqrt(sum(x * x)), or x / sqrt of it, along the last axis, with an epsilon as small as the operator's own."""
    if activation(node):
        return None
    for x, norm in sides(node)[: 1 if node.op == "DIV" else 2]:
        if node.op == "DIV":
            root = made_by(_above(norm, 1e-6), "SQRT")
        else:
            root = made_by(norm, "RSQRT")
        total = None if root is None else made_by(_above(root.input(0), 1e-10), "SUM")
        if total is None or not _is_last(total):
            continue
        square = made_by(total.input(0), "SQUARE", "MUL")
        if square is not None and all(value is x for value in square.inputs) and not activation(square):
            return graph.add("L2_NORMALIZATION", x)
    return None


def _above(value: Value, most: float) -> Value:
    """The value without an epsilon of that much at most, added or as a lower bound."""
    node = made_by(value, "ADD", "MAXIMUM")
    if node is None or activation(node):
        return value
    found = [x for x, c in sides(node) for epsilon in [number(c)] if epsilon is not None and 0 <= epsilon <= most]
    return found[0] if found else value


@pattern("SQUARE", "MUL", "POW")
def squared_difference(graph: Graph, node: Node) -> Value | None:
    """(x - y) squared."""
    x = node.input(0)
    is_square = {"SQUARE": True, "MUL": x is node.inputs[-1], "POW": is_close(node.inputs[-1], 2)}[node.op]
    difference = made_by(x, "SUB")
    if not is_square or difference is None or activation(node) or activation(difference):
        return None
    if x in graph.outputs or any(user is not node for user in x.users):
        return None
    return graph.add("SQUARED_DIFFERENCE", *difference.inputs)
