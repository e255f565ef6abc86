from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from gossamer.convert.graph import Graph, Value, unknown
from gossamer.convert.patterns import rewrite
from gossamer.schema.enums import Padding, TensorType
from tests.convert.patterns.running import graph_of, ops_of, rewritten

Make = Callable[[Graph, Value], Value]
RNG = np.random.default_rng(5)


def array(*shape: int) -> np.ndarray:
    return RNG.uniform(0.5, 2, shape).astype(np.float32)


def conv(g: Graph, x: Value, padding: Padding = Padding.VALID, filter: np.ndarray | None = None) -> Value:
    filter = array(5, 3, 3, 4) if filter is None else filter
    return g.add("CONV_2D", x, filter, array(len(filter)), stride_h=2, stride_w=2, padding=padding)


def depthwise(g: Graph, x: Value) -> Value:
    return g.add(
        "DEPTHWISE_CONV_2D", x, array(1, 3, 3, 8), array(8), stride_h=1, stride_w=1, depth_multiplier=2, padding=1
    )


def transposed(g: Graph, x: Value) -> Value:
    return g.add("TRANSPOSE_CONV", [2, 13, 13, 5], array(5, 3, 3, 4), x, stride_h=2, stride_w=2, padding=Padding.VALID)


def connected(g: Graph, x: Value) -> Value:
    return g.add("FULLY_CONNECTED", x, array(5, 4), keep_num_dims=True)


LINEAR: dict[str, tuple[Make, int]] = {
    "CONV_2D": (conv, 5),
    "DEPTHWISE_CONV_2D": (depthwise, 8),
    "TRANSPOSE_CONV": (transposed, 5),
    "FULLY_CONNECTED": (connected, 5),
}


@pytest.mark.parametrize("op", ["ADD", "SUB", "MUL", "DIV"])
@pytest.mark.parametrize("scalar", [True, False])
@pytest.mark.parametrize("linear", LINEAR)
def test_constants_after(linear: str, op: str, scalar: bool) -> None:
    make, channels = LINEAR[linear]
    c = array(1) if scalar else array(1, 1, channels)
    graph = graph_of((2, 6, 6, 4), make=lambda g, x: g.add("RELU6", g.add(op, make(g, x), c)))
    assert rewritten(graph, rtol=1e-4) == [linear]


@pytest.mark.parametrize("linear", LINEAR)
def test_a_batch_norm_and_constants_before(linear: str) -> None:
    make, channels = LINEAR[linear]

    def normalized(g: Graph, x: Value) -> Value:
        y = make(g, g.add("MUL", x, array(4)))
        return g.add("ADD", g.add("MUL", y, array(channels)), array(channels))

    assert rewritten(graph_of((2, 6, 6, 4), make=normalized), rtol=1e-4) == [linear]


def test_a_difference_from_a_constant() -> None:
    graph = graph_of((2, 6, 6, 4), make=lambda g, x: g.add("SUB", array(5), conv(g, x)))
    assert rewritten(graph, rtol=1e-4) == ["CONV_2D"]


@pytest.mark.parametrize("make", [conv, depthwise, connected])
def test_a_sum_before_what_pads_nothing(make: Make) -> None:
    graph = graph_of((2, 6, 6, 4), make=lambda g, x: make(g, g.add("ADD", x, array(4))))
    assert len(rewritten(graph, rtol=1e-4)) == 1


@pytest.mark.parametrize(
    "make",
    [
        lambda g, x: conv(g, g.add("ADD", x, array(4)), Padding.SAME),
        lambda g, x: transposed(g, g.add("ADD", x, array(4))),
        lambda g, x: conv(g, g.add("MUL", x, array(6, 6, 1))),
        lambda g, x: conv(g, g.add("MUL", x, x)),
        lambda g, x: conv(g, g.add("MUL", x, array(4), fused_activation_function=1)),
        lambda g, x: conv(g, g.add("MUL", x, array(4)), filter=array(4, 3, 3, 2)),
        lambda g, x: g.add("ADD", conv(g, x), array(2, 2, 1)),
        lambda g, x: g.add("MUL", conv(g, x), g.add("MEAN", x, [0, 1, 2, 3])),
    ],
)
def test_what_stays(make: Make) -> None:
    graph = graph_of((2, 6, 6, 4), make=make)
    before = ops_of(graph)
    assert rewritten(graph, rtol=1e-4) == before


def test_what_others_need_stays() -> None:
    def make(g: Graph, x: Value) -> list[Value]:
        y = conv(g, x)
        return [g.add("ADD", y, array(5)), g.add("TANH", y)]

    assert rewritten(graph_of((2, 6, 6, 4), make=make)) == ["CONV_2D", "ADD", "TANH"]


def test_a_filter_that_is_computed_stays() -> None:
    def make(g: Graph, x: Value, filter: Value) -> Value:
        y = g.add("CONV_2D", x, filter, array(5), stride_h=1, stride_w=1)
        return g.add("MUL", y, array(5))

    assert rewritten(graph_of((2, 6, 6, 4), (5, 3, 3, 4), make=make), rtol=1e-4) == ["CONV_2D", "MUL"]


@pytest.mark.parametrize(
    ("steps", "left"),
    [
        ([("ADD", 1.0), ("SUB", 3.0)], ["ADD"]),
        ([("MUL", 2.0), ("DIV", 3.0)], ["MUL"]),
        ([("MUL", 2.0), ("ADD", 3.0), ("MUL", 4.0)], ["MUL", "ADD"]),
        ([("ADD", 0.0), ("MUL", 1.0), ("SUB", 0.0), ("DIV", 1.0)], ["TANH"]),
        ([("MUL", 2.0), ("ADD", 3.0)], ["MUL", "ADD"]),
        ([("ADD", 2.0), ("MUL", 3.0)], ["ADD", "MUL"]),
    ],
)
def test_chains(steps: list[tuple[str, float]], left: list[str]) -> None:
    def make(g: Graph, x: Value) -> Value:
        for op, c in steps:
            x = g.add(op, x, c)
        return g.add("TANH", x)

    assert rewritten(graph_of((unknown(0), 4), make=make)) == ([*left, "TANH"] if left != ["TANH"] else left)


def test_neutral_integers() -> None:
    graph = graph_of((2, 4), make=lambda g, x: g.add("ABS", g.add("ADD", x, 0)), type=TensorType.INT32)
    assert rewritten(graph) == ["ABS"]


def test_a_zero_that_broadcasts_stays() -> None:
    graph = graph_of((2, 1), make=lambda g, x: g.add("ADD", x, np.zeros((2, 4), np.float32)))
    assert rewritten(graph) == ["ADD"]


def test_weights_are_not_copied_but_once() -> None:
    filter = array(5, 3, 3, 4).transpose(0, 2, 1, 3)
    graph = graph_of((2, 6, 6, 4), make=lambda g, x: g.add("ADD", conv(g, x, filter=filter), array(5)))
    rewrite(graph)
    (node,) = graph.ordered()
    assert node.constant(1) is filter


@pytest.mark.parametrize("make", [conv, connected])
def test_chosen_channels(make: Make) -> None:
    graph = graph_of((2, 6, 6, 4), make=lambda g, x: g.add("GATHER", make(g, x), [4, 1, 3], axis=-1))
    assert len(rewritten(graph, rtol=1e-4)) == 1


def test_chosen_pixels_stay() -> None:
    graph = graph_of((2, 6, 6, 4), make=lambda g, x: g.add("GATHER", conv(g, x), [1, 0], axis=2))
    assert rewritten(graph, rtol=1e-4) == ["CONV_2D", "GATHER"]


def test_a_factor_of_a_factor_goes_into_the_filter() -> None:
    def make(g: Graph, x: Value, y: Value) -> Value:
        return conv(g, g.add("MUL", x, g.add("MUL", y, 1 / 6)))

    assert rewritten(graph_of((2, 6, 6, 4), (2, 1, 1, 4), make=make), rtol=1e-4) == ["MUL", "CONV_2D"]


@pytest.mark.parametrize("c", [0.0, 1e-40])
def test_divisors_without_an_inverse_stay(c: float) -> None:
    graph = graph_of((2, 4), make=lambda g, x: g.add("DIV", g.add("MUL", x, 3.0), c))
    rewrite(graph)
    assert ops_of(graph) == ["MUL", "DIV"]
