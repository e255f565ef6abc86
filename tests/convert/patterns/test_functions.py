"""Spellings of functions, and what is close to one and is none."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from gossamer.convert.blocks.special import erf
from gossamer.convert.graph import Graph, Value, unknown
from gossamer.convert.patterns.matching import broadcasts, is_elementwise
from tests.convert.patterns.running import graph_of, rewritten

Make = Callable[[Graph, Value], Value]


def shifted(g: Graph, x: Value) -> Value:
    return g.add("RELU6", g.add("ADD", x, 3.0))


def times(g: Graph, x: Value, *others: Value | float) -> Value:
    for other in others:
        x = g.add("MUL", x, other)
    return x


def gelu_tanh(g: Graph, x: Value) -> Value:
    cube = times(g, x, x, x)
    inner = times(g, g.add("ADD", x, times(g, cube, 0.044715)), math.sqrt(2 / math.pi))
    return times(g, g.add("ADD", g.add("TANH", inner), 1.0), times(g, x, 0.5))


def gelu_erf(g: Graph, x: Value) -> Value:
    return times(g, x, g.add("ADD", erf(g, g.add("DIV", x, math.sqrt(2))), 1.0), 0.5)


SPELLINGS: dict[str, tuple[str, Make]] = {
    "hard swish, divided last": ("HARD_SWISH", lambda g, x: g.add("DIV", times(g, x, shifted(g, x)), 6.0)),
    "hard swish, rounded": ("HARD_SWISH", lambda g, x: times(g, x, shifted(g, x), 0.16667)),
    "hard sigmoid times x": ("HARD_SWISH", lambda g, x: times(g, times(g, shifted(g, x), 1 / 6), x)),
    "relu6": ("RELU6", lambda g, x: g.add("MINIMUM", g.add("MAXIMUM", x, 0.0), 6.0)),
    "relu6 of relu": ("RELU6", lambda g, x: g.add("MINIMUM", 6.0, g.add("RELU", x))),
    "relu of minimum": ("RELU6", lambda g, x: g.add("RELU", g.add("MINIMUM", x, 6.0))),
    "relu n1 to 1": ("RELU_N1_TO_1", lambda g, x: g.add("MAXIMUM", g.add("MINIMUM", x, 1.0), -1.0)),
    "relu": ("RELU", lambda g, x: g.add("MAXIMUM", x, 0.0)),
    "leaky relu": ("LEAKY_RELU", lambda g, x: g.add("MAXIMUM", x, times(g, x, 0.2))),
    "leaky relu, selected": (
        "LEAKY_RELU",
        lambda g, x: g.add("SELECT_V2", g.add("GREATER", x, 0.0), x, times(g, x, 0.1)),
    ),
    "prelu of one slope": (
        "LEAKY_RELU",
        lambda g, x: g.add("SUB", g.add("RELU", x), times(g, g.add("RELU", g.add("NEG", x)), 0.3)),
    ),
    "sigmoid": ("LOGISTIC", lambda g, x: g.add("DIV", 1.0, g.add("ADD", g.add("EXP", g.add("NEG", x)), 1.0))),
    "gelu tanh": ("GELU", gelu_tanh),
    "gelu erf": ("GELU", gelu_erf),
    "absolute": ("ABS", lambda g, x: g.add("MAXIMUM", x, g.add("NEG", x))),
    "square": ("SQUARE", lambda g, x: g.add("POW", x, 2.0)),
    "elu": (
        "ELU",
        lambda g, x: g.add("SELECT_V2", g.add("GREATER", x, 0.0), x, g.add("SUB", g.add("EXP", x), 1.0)),
    ),
}


@pytest.mark.parametrize(("op", "make"), SPELLINGS.values(), ids=SPELLINGS)
def test_spellings(op: str, make: Make) -> None:
    assert rewritten(graph_of((unknown(0), 50), make=make), low=-9, high=9, rtol=3e-5) == [op]


def test_the_inverse_root() -> None:
    graph = graph_of((2, 50), make=lambda g, x: g.add("DIV", 1.0, g.add("SQRT", x)))
    assert rewritten(graph, low=0.1) == ["RSQRT"]


CLOSE: dict[str, tuple[list[str], Make]] = {
    "an epsilon": (["ADD", "SQRT"], lambda g, x: g.add("SQRT", g.add("ADD", x, 1e-7))),
    "a floor": (["MAXIMUM"], lambda g, x: g.add("MAXIMUM", x, 1e-12)),
    "a bound far away": (["MAXIMUM"], lambda g, x: g.add("MAXIMUM", x, float(np.finfo(np.float32).min))),
    "another bound": (["MAXIMUM", "MINIMUM"], lambda g, x: g.add("MINIMUM", g.add("MAXIMUM", x, 0.0), 6.01)),
    "another shift": (
        ["ADD", "MUL", "MUL"],
        lambda g, x: times(g, x, g.add("RELU6", g.add("ADD", x, 3.1)), 1 / 6),
    ),
    "silu": (["LOGISTIC", "MUL"], lambda g, x: times(g, x, g.add("LOGISTIC", x))),
    "a guard against infinities": (
        ["SUB", "EQUAL", "SELECT_V2"],
        lambda g, x: g.add("SELECT_V2", g.add("EQUAL", g.add("SUB", x, x), 0.0), x, 0.0),
    ),
}


@pytest.mark.parametrize(("ops", "make"), CLOSE.values(), ids=CLOSE)
def test_what_is_close(ops: list[str], make: Make) -> None:
    found = rewritten(graph_of((2, 50), make=make), low=0, high=9)
    assert [op.replace("RELU6", "").replace("RELU", "MAXIMUM") for op in found if op != "RELU6"] == ops


def test_what_others_need_stays() -> None:
    def make(g: Graph, x: Value) -> list[Value]:
        exp = g.add("EXP", g.add("NEG", x))
        return [g.add("DIV", 1.0, g.add("ADD", exp, 1.0)), exp]

    assert rewritten(graph_of((2, 50), make=make)) == ["NEG", "EXP", "ADD", "DIV"]


def test_twice_negated() -> None:
    graph = graph_of((2, 5), make=lambda g, x: g.add("SIN", g.add("NEG", g.add("NEG", x))))
    assert rewritten(graph) == ["SIN"]


def test_elementwise_operators_are_found() -> None:
    found = {
        name for name in ("ADD", "SELECT", "SELECT_V2", "GELU", "PRELU", "SQUEEZE", "SOFTMAX") if is_elementwise(name)
    }
    assert found == {"ADD", "SELECT", "SELECT_V2", "GELU", "PRELU"}
    assert {name for name in found if broadcasts(name)} == found - {"SELECT"}
