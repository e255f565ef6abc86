from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from gossamer.convert.graph import Graph, Value, unknown
from gossamer.schema.enums import ActivationFunctionType
from tests.convert.patterns.running import graph_of, ops_of, rewritten

Make = Callable[[Graph, Value], Value]
RNG = np.random.default_rng(3)
ALPHA = RNG.uniform(0.1, 0.9, (1, 1, 4)).astype(np.float32)


def conv(g: Graph, x: Value, **options: int) -> Value:
    weights = RNG.normal(size=(4, 3, 3, 4)).astype(np.float32)
    return g.add("CONV_2D", x, weights, np.zeros(4, np.float32), stride_h=1, stride_w=1, **options)


def pool(op: str) -> Make:
    return lambda g, x: g.add(op, x, filter_height=2, filter_width=2, stride_h=2, stride_w=2)


PRODUCERS: dict[str, Make] = {
    "CONV_2D": conv,
    "DEPTHWISE_CONV_2D": lambda g, x: g.add(
        "DEPTHWISE_CONV_2D",
        x,
        RNG.normal(size=(1, 3, 3, 4)).astype(np.float32),
        np.zeros(4, np.float32),
        stride_h=1,
        stride_w=1,
        depth_multiplier=1,
    ),
    "FULLY_CONNECTED": lambda g, x: g.add(
        "FULLY_CONNECTED", x, RNG.normal(size=(5, 4)).astype(np.float32), keep_num_dims=True
    ),
    "AVERAGE_POOL_2D": pool("AVERAGE_POOL_2D"),
    "MAX_POOL_2D": pool("MAX_POOL_2D"),
    "ADD": lambda g, x: g.add("ADD", x, ALPHA),
    "SUB": lambda g, x: g.add("SUB", ALPHA, x),
    "MUL": lambda g, x: g.add("MUL", x, x),
    "DIV": lambda g, x: g.add("DIV", x, ALPHA),
}


@pytest.mark.parametrize("op", ["RELU", "RELU6", "RELU_N1_TO_1"])
@pytest.mark.parametrize("producer", PRODUCERS)
def test_what_takes_an_activation(producer: str, op: str) -> None:
    graph = graph_of((unknown(0), 6, 8, 4), make=lambda g, x: g.add(op, PRODUCERS[producer](g, x)))
    assert rewritten(graph) == [producer]
    node = graph.ordered()[0]
    assert node.options.fused_activation_function == ActivationFunctionType[op]


@pytest.mark.parametrize("producer", ["CONCATENATION", "L2_NORMALIZATION", "TANH"])
def test_what_takes_none(producer: str) -> None:
    def make(g: Graph, x: Value) -> Value:
        return g.add("RELU", g.add(producer, *[x] * (1 + (producer == "CONCATENATION"))))

    assert rewritten(graph_of((2, 4), make=make)) == [producer, "RELU"]


def test_what_others_need_is_not_clamped() -> None:
    def make(g: Graph, x: Value) -> list[Value]:
        y = g.add("ADD", x, 1.0)
        return [g.add("RELU", y), g.add("TANH", y)]

    assert rewritten(graph_of((2, 4), make=make)) == ["ADD", "RELU", "TANH"]


@pytest.mark.parametrize(
    ("first", "second", "left"),
    [("RELU", "RELU6", ["ADD"]), ("RELU6", "RELU", ["ADD"]), ("RELU_N1_TO_1", "RELU", ["ADD", "RELU"])],
)
def test_clamps_of_clamps(first: str, second: str, left: list[str]) -> None:
    graph = graph_of((2, 40), make=lambda g, x: g.add(second, g.add(first, g.add("ADD", x, 3.0))))
    assert rewritten(graph, low=-9, high=9) == left


def test_an_activation_moves_before_a_reshape() -> None:
    graph = graph_of((2, 4), make=lambda g, x: g.add("RELU", g.add("RESHAPE", g.add("MUL", x, x), [8])))
    assert rewritten(graph) == ["MUL", "RESHAPE"]


def prelu(second: Callable[[Graph, Value], Value], op: str = "ADD") -> Make:
    return lambda g, x: g.add(op, g.add("RELU", x), second(g, x))


PRELUS: dict[str, Make] = {
    "minus alpha": prelu(lambda g, x: g.add("MUL", -ALPHA, g.add("RELU", g.add("NEG", x)))),
    "negated": prelu(lambda g, x: g.add("NEG", g.add("MUL", g.add("RELU", g.add("NEG", x)), ALPHA))),
    "subtracted": prelu(lambda g, x: g.add("MUL", g.add("RELU", g.add("NEG", x)), ALPHA), "SUB"),
    "minimum": prelu(lambda g, x: g.add("MUL", g.add("MINIMUM", x, 0.0), ALPHA)),
    "absolute": prelu(lambda g, x: g.add("MUL", g.add("MUL", ALPHA, g.add("SUB", x, g.add("ABS", x))), 0.5)),
    "selected": lambda g, x: g.add("SELECT_V2", g.add("GREATER_EQUAL", x, 0.0), x, g.add("MUL", x, ALPHA)),
}


@pytest.mark.parametrize("make", PRELUS.values(), ids=PRELUS)
def test_slopes(make: Make) -> None:
    assert rewritten(graph_of((2, 3, 3, 4), make=make)) == ["PRELU"]


def test_no_slope_of_another_value() -> None:
    def make(g: Graph, x: Value, y: Value) -> Value:
        return g.add("ADD", g.add("RELU", x), g.add("MUL", ALPHA, g.add("RELU", g.add("NEG", y))))

    assert "PRELU" not in rewritten(graph_of((2, 3, 3, 4), (2, 3, 3, 4), make=make))


def total(g: Graph, x: Value, axis: int = -1, *, kept: bool = True) -> Value:
    return g.add("SUM", x, [axis], keep_dims=kept)


def less_maximum(g: Graph, x: Value) -> Value:
    return g.add("SUB", x, g.add("REDUCE_MAX", x, [-1], keep_dims=True))


def softmax(g: Graph, x: Value, axis: int = -1) -> Value:
    return g.add("DIV", g.add("EXP", x), total(g, g.add("EXP", x), axis))


def norm(g: Graph, x: Value, epsilon: float, axis: int = -1) -> Value:
    return g.add("RSQRT", g.add("MAXIMUM", total(g, g.add("MUL", x, x), axis), epsilon))


NORMS: dict[str, tuple[str, Make]] = {
    "softmax": ("SOFTMAX", softmax),
    "softmax, shifted": ("SOFTMAX", lambda g, x: softmax(g, less_maximum(g, x))),
    "log of softmax": ("LOG_SOFTMAX", lambda g, x: g.add("LOG", g.add("SOFTMAX", x, beta=1.0))),
    "log of exps": ("LOG_SOFTMAX", lambda g, x: g.add("SUB", x, g.add("LOG", total(g, g.add("EXP", x))))),
    "l2": ("L2_NORMALIZATION", lambda g, x: g.add("MUL", x, norm(g, x, 1e-12))),
    "l2, divided": (
        "L2_NORMALIZATION",
        lambda g, x: g.add("DIV", x, g.add("MAXIMUM", g.add("SQRT", total(g, g.add("SQUARE", x))), 1e-7)),
    ),
    "squared difference": (
        "SQUARED_DIFFERENCE",
        lambda g, x: g.add("SQUARE", g.add("SUB", x, np.arange(4, dtype=np.float32))),
    ),
    "difference times itself": ("SQUARED_DIFFERENCE", lambda g, x: g.add("MUL", *[g.add("SUB", x, ALPHA)] * 2)),
}


@pytest.mark.parametrize(("op", "make"), NORMS.values(), ids=NORMS)
def test_norms(op: str, make: Make) -> None:
    assert rewritten(graph_of((unknown(0), 3, 3, 4), make=make)) == [op]


@pytest.mark.parametrize(
    "make",
    [
        lambda g, x: softmax(g, x, 1),
        lambda g, x: g.add("MUL", x, norm(g, x, 1e-12, 1)),
        lambda g, x: g.add("MUL", x, norm(g, x, 0.1)),
        lambda g, x: g.add("SUB", x, g.add("LOG", total(g, g.add("EXP", x), 2))),
    ],
)
def test_no_norm_along_another_axis_nor_with_a_large_epsilon(make: Make) -> None:
    graph = graph_of((2, 3, 3, 4), make=make)
    assert not {"SOFTMAX", "LOG_SOFTMAX", "L2_NORMALIZATION"}.intersection(rewritten(graph))


def test_origins_of_what_is_fused() -> None:
    from gossamer.convert.graph import Origin
    from gossamer.convert.patterns import rewrite

    graph = Graph()
    x = graph.input("x", ALPHA_TYPE, (2, 4))
    with graph.at(Origin("Mul", "product")):
        y = graph.add("MUL", x, x)
    with graph.at(Origin("Relu", "act")):
        graph.outputs = [graph.add("RELU", y)]
    rewrite(graph)
    assert ops_of(graph) == ["MUL"]
    assert graph.ordered()[0].origins == (Origin("Relu", "act"), Origin("Mul", "product"))
    assert graph.outputs[0].name == "act"


ALPHA_TYPE = Graph().constant(ALPHA).type
