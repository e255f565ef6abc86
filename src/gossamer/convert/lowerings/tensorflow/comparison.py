"""Comparisons, logic, choices between two values, and bits."""

from __future__ import annotations

import math

import numpy as np

from gossamer.convert.blocks.complex_numbers import COMPLEX, pairs
from gossamer.convert.blocks.elementwise import widened
from gossamer.convert.blocks.indexing import broadcast_together
from gossamer.convert.blocks.moves import moved
from gossamer.convert.blocks.shapes import cast
from gossamer.convert.graph import Graph, Value
from gossamer.convert.lowerings.tensorflow import Call, lowers
from gossamer.schema.enums import TensorType

T = TensorType

COMPARISONS = {
    "Equal": "EQUAL",
    "Greater": "GREATER",
    "GreaterEqual": "GREATER_EQUAL",
    "Less": "LESS",
    "LessEqual": "LESS_EQUAL",
    "NotEqual": "NOT_EQUAL",
}

LOGIC = {"LogicalAnd": "LOGICAL_AND", "LogicalNot": "LOGICAL_NOT", "LogicalOr": "LOGICAL_OR", "LogicalXor": "NOT_EQUAL"}


@lowers(*COMPARISONS)
def compare(call: Call) -> Value:
    """Shapes that do not fit together are unequal, where that is allowed."""
    graph, (x, y) = call.graph, call.values()
    if not call.attributes.bool("incompatible_shape_error", True) and not _broadcast(x, y):
        return graph.constant(np.array(call.op == "NotEqual"))
    if x.type in COMPLEX:
        same = _both(graph, graph.add("EQUAL", pairs(graph, x), pairs(graph, y)))
        return same if call.op == "Equal" else graph.add("LOGICAL_NOT", same)
    return widened(graph, COMPARISONS[call.op], x, y)


def _both(graph: Graph, both: Value) -> Value:
    """Whether both of a pair hold."""
    return graph.add("REDUCE_ALL", both, np.array([both.rank - 1], np.int32))


def _broadcast(x: Value, y: Value) -> bool:
    pairs_ = zip(reversed(x.dims), reversed(y.dims), strict=False)
    return all(a is None or b is None or a == b or 1 in (a, b) for a, b in pairs_)


@lowers(*LOGIC)
def logic(call: Call) -> Value:
    return call.add(LOGIC[call.op], *call.values())


@lowers("ApproximateEqual")
def approximate_equal(call: Call) -> Value:
    x, y = call.values()
    distance = widened(call.graph, "ABS", widened(call.graph, "SUB", x, y))
    return widened(call.graph, "LESS", distance, np.array(call.attributes.float("tolerance", 1e-5), x.dtype))


@lowers("IsNan", "IsInf", "IsFinite")
def kind_of_number(call: Call) -> Value:
    """Only a number that is none differs from itself; only a finite one less itself is 0."""
    graph, x = call.graph, cast(call.graph, call.value(0), T.FLOAT32)
    if call.op == "IsNan":
        return graph.add("NOT_EQUAL", x, x)
    if call.op == "IsInf":
        return graph.add("EQUAL", graph.add("ABS", x), math.inf)
    return graph.add("EQUAL", graph.add("SUB", x, x), 0.0)


@lowers("Select")
def select(call: Call) -> Value:
    """A vector of conditions chooses rows, a scalar the whole."""
    graph, (condition, x, y) = call.graph, call.values()
    if condition.rank < x.rank:
        return moved(graph, "SELECT", condition, x, y, data=(1, 2))
    return chosen(graph, condition, x, y)


@lowers("SelectV2")
def select_v2(call: Call) -> Value:
    return chosen(call.graph, *call.values())


def chosen(graph: Graph, condition: Value, x: Value, y: Value) -> Value:
    """``x`` where the condition holds, ``y`` elsewhere; the three broadcast."""
    alike = all(value.is_static and value.shapes == condition.shapes for value in (x, y)) and condition.is_static
    return moved(graph, "SELECT" if alike else "SELECT_V2", condition, x, y, data=(1, 2))


# -- bits

_SIGNED = {T.UINT8: T.INT8, T.UINT16: T.INT16, T.UINT32: T.INT32}


@lowers("BitwiseAnd")
def bitwise_and(call: Call) -> Value:
    return _and(call.graph, *call.values())


@lowers("BitwiseOr")
def bitwise_or(call: Call) -> Value:
    graph, (x, y) = call.graph, call.values()
    return _xor(graph, _xor(graph, x, y), _and(graph, x, y))


@lowers("BitwiseXor")
def bitwise_xor(call: Call) -> Value:
    return _xor(call.graph, *call.values())


@lowers("Invert")
def invert(call: Call) -> Value:
    x = call.value(0)
    return _xor(call.graph, x, call.graph.constant(np.invert(np.zeros((), x.dtype)), x.type))


def _and(graph: Graph, x: Value, y: Value) -> Value:
    """STABLEHLO_AND does not broadcast."""
    return graph.add("STABLEHLO_AND", *broadcast_together(graph, [x, y]))


def _xor(graph: Graph, x: Value, y: Value) -> Value:
    """Integers of 64 bits go as pairs of 32 bits."""
    if x.dtype.itemsize < 8:
        return graph.add("BITWISE_XOR", x, y)
    halves = [graph.add("BITCAST", value, type=T.INT32) for value in (x, y)]
    return graph.add("BITCAST", graph.add("BITWISE_XOR", *halves), type=x.type)


@lowers("RightShift")
def right_shift(call: Call) -> Value:
    graph, (x, y) = call.graph, call.values()
    if x.dtype.itemsize == 8:
        x, y = (graph.add("CAST", value, type=T.INT32) for value in (x, y))
        return graph.add("CAST", graph.add("RIGHT_SHIFT", x, y), type=call.value(0).type)
    return graph.add("RIGHT_SHIFT", x, y)


@lowers("LeftShift")
def left_shift(call: Call) -> Value:
    """Of unsigned integers the bits are shifted as those of signed ones; of int64, powers of 2 are multiplied."""
    graph, (x, y) = call.graph, call.values()
    own = x.type
    if x.dtype.itemsize == 8:
        powers = graph.constant(np.int64(1) << np.arange(64, dtype=np.int64))
        wide = x if own == T.INT64 else graph.add("BITCAST", x, type=T.INT64)
        places = y if own == T.INT64 else graph.add("BITCAST", y, type=T.INT64)
        shifted = graph.add("MUL", wide, graph.add("GATHER", powers, places))
        return shifted if own == T.INT64 else graph.add("BITCAST", shifted, type=own)
    x, y = broadcast_together(graph, [x, y])
    if own not in _SIGNED:
        return graph.add("STABLEHLO_SHIFT_LEFT", x, y)
    x, y = (graph.add("BITCAST", value, type=_SIGNED[own]) for value in (x, y))
    return graph.add("BITCAST", graph.add("STABLEHLO_SHIFT_LEFT", x, y), type=own)


@lowers("PopulationCount")
def population_count(call: Call) -> Value:
    """How many bits are set: looked up for each byte."""
    graph, x = call.graph, call.value(0)
    bits = np.array([number.bit_count() for number in range(256)], np.int32)
    octets = graph.add("BITCAST", x, type=T.UINT8)
    if x.dtype.itemsize == 1:
        octets = graph.add("EXPAND_DIMS", octets, np.array(octets.rank, np.int32))
    counts = graph.add("GATHER", bits, cast(graph, octets, T.INT32), axis=0)
    return cast(graph, graph.add("SUM", counts, np.array([counts.rank - 1], np.int32)), T.UINT8)
