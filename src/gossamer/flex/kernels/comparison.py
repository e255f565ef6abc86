"""Comparisons, logic, selection, and searching in sorted values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gossamer.flex.kernels import Array, Call, Shape, elementwise, kernel, like_first
from gossamer.flex.kernels._checks import number, require_rank, require_same_shape
from gossamer.flex.node import FlexNode

_COMPARISONS: dict[str, Any] = {
    "Greater": np.greater,
    "GreaterEqual": np.greater_equal,
    "Less": np.less,
    "LessEqual": np.less_equal,
    "LogicalAnd": np.logical_and,
    "LogicalOr": np.logical_or,
}
_TESTS: dict[str, Any] = {
    "IsFinite": np.isfinite,
    "IsInf": np.isinf,
    "IsNan": np.isnan,
    "LogicalNot": np.logical_not,
}


@kernel(*_COMPARISONS, shape=elementwise)
def comparison(call: Call, x: Array, y: Array) -> Any:
    """Whether it holds for the elements."""
    return _COMPARISONS[call.op](x, y)


@kernel(*_TESTS, shape=like_first)
def test(call: Call, x: Array) -> Any:
    """Whether it holds for the element."""
    return _TESTS[call.op](x)


def _equality_shape(node: FlexNode, shapes: Sequence[Shape]) -> list[Shape]:
    try:
        return elementwise(node, shapes)
    except ValueError:
        if node.attributes.bool("incompatible_shape_error"):
            raise
        return [()]


@kernel("Equal", "NotEqual", shape=_equality_shape)
def equal(call: Call, x: Array, y: Array) -> Any:
    """Whether elements are equal, or not; without ``incompatible_shape_error``, operands that do not fit are unequal as
    a whole."""
    unequal = call.op == "NotEqual"
    if not call.attributes.bool("incompatible_shape_error"):
        try:
            np.broadcast_shapes(x.shape, y.shape)
        except ValueError:
            return unequal
    return np.not_equal(x, y) if unequal else np.equal(x, y)


@kernel("ApproximateEqual", shape=like_first)
def approximate_equal(call: Call, x: Array, y: Array) -> Array:
    """Whether the operands are less than ``tolerance`` apart."""
    require_same_shape(call, "x and y", x, y)
    tolerance = np.float32(call.attributes.float("tolerance"))
    near: Array = np.abs(x - y) < tolerance
    return near


@kernel("SelectV2", shape=elementwise)
def select(call: Call, condition: Array, t: Array, e: Array) -> Array:
    """Elements of t where the condition holds, else those of e."""
    return np.where(condition, t, e)


def _second(node: FlexNode, shapes: Sequence[Shape]) -> list[Shape]:
    return [tuple(shapes[1])]


@kernel("Select", shape=_second)
def select_rows(call: Call, condition: Array, t: Array, e: Array) -> Array:
    """`select` of operands of one shape; the condition may be a scalar, or a vector of one element for each row."""
    require_same_shape(call, "t and e", t, e)
    if condition.ndim == 1 and t.ndim > 1 and condition.shape[0] == t.shape[0]:
        condition = condition.reshape(-1, *[1] * (t.ndim - 1))
    elif condition.ndim or t.ndim == 0:
        call.require(
            condition.shape == t.shape,
            f"condition must be a scalar, a vector of {t.shape[0] if t.ndim else 1} elements or have shape "
            f"{list(t.shape)}, got shape {list(condition.shape)}",
        )
    return np.where(condition, t, e)


@kernel("InTopK", shape=lambda node, shapes: [tuple(shapes[1])])
def in_top_k(call: Call, predictions: Array, targets: Array) -> Array:
    """Whether fewer than k classes of a row have a prediction above that of the target, and all matter are finite."""
    return _in_top_k(call, predictions, targets, call.attributes.int("k"))


@kernel("InTopKV2", shape=lambda node, shapes: [tuple(shapes[1])])
def in_top_k_v2(call: Call, predictions: Array, targets: Array, k: Array) -> Array:
    """The same with k as an operand."""
    return _in_top_k(call, predictions, targets, number(call, "k", k))


def _in_top_k(call: Call, predictions: Array, targets: Array, k: int) -> Array:
    require_rank(call, "predictions", predictions, 2)
    rows, classes = predictions.shape
    call.require(targets.shape == (rows,), f"targets must have shape [{rows}], got {list(targets.shape)}")
    valid = (targets >= 0) & (targets < classes)
    if classes == 0:
        return np.zeros(rows, bool)
    chosen = predictions[np.arange(rows), np.where(valid, targets, 0)][:, None]
    greater = (predictions > chosen).sum(1)
    # A number that is not finite spoils a row, if the search meets it before k greater ones.
    strange = ~np.isfinite(predictions)
    above = np.cumsum(predictions > chosen, 1)
    met = (strange & ((above - (predictions > chosen)) <= k)).any(1)
    found: Array = valid & np.isfinite(chosen[:, 0]) & ~met & (greater < k)
    return found


@kernel("Bucketize", shape=like_first)
def bucketize(call: Call, x: Array) -> Array:
    """How many of the boundaries are not above the element."""
    boundaries = np.asarray(call.attributes.floats("boundaries"), np.float32)
    call.require(np.all(np.diff(boundaries) >= 0), "boundaries must be sorted")
    return np.searchsorted(boundaries, x, "right")


@kernel("LowerBound", "UpperBound", shape=_second)
def bound(call: Call, rows: Array, values: Array) -> Array:
    """Where a value would stand in its row of sorted numbers: before (lower) or behind (upper) equal ones."""
    require_rank(call, "sorted_inputs", rows, 2)
    require_rank(call, "values", values, 2)
    call.require(
        rows.shape[0] == values.shape[0], f"there are {rows.shape[0]} rows of inputs and {values.shape[0]} of values"
    )
    result = np.zeros(values.shape, np.int64)
    for n, row in enumerate(rows):
        result[n] = np.searchsorted(row, values[n], "left" if call.op == "LowerBound" else "right")
    return result
