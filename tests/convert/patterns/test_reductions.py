from __future__ import annotations

import numpy as np
import pytest

from gossamer.convert.graph import Graph, Value, unknown
from gossamer.schema.enums import TensorType
from tests.convert.patterns.running import graph_of, rewritten

BATCH = unknown(0)


@pytest.mark.parametrize("op", ["SUM", "MEAN", "REDUCE_MAX", "REDUCE_PROD"])
@pytest.mark.parametrize("keeps", [False, True])
def test_reductions_of_reductions(op: str, keeps: bool) -> None:
    def make(g: Graph, x: Value) -> Value:
        return g.add(op, g.add(op, x, [1], keep_dims=keeps), [2 if keeps else 1], keep_dims=keeps)

    graph = graph_of((BATCH, 3, 4, 5), make=make)
    assert rewritten(graph, rtol=1e-4) == [op]


def test_different_reductions_stay() -> None:
    graph = graph_of((2, 3, 4), make=lambda g, x: g.add("SUM", g.add("MEAN", x, [1]), [1]))
    assert rewritten(graph) == ["MEAN", "SUM"]


@pytest.mark.parametrize("keeps", [False, True])
def test_dropped_or_kept(keeps: bool) -> None:
    def make(g: Graph, x: Value) -> Value:
        y = g.add("MEAN", x, [1, 2], keep_dims=keeps)
        return g.add("RESHAPE", y, [-1, 5] if keeps else [-1, 1, 1, 5])

    assert rewritten(graph_of((BATCH, 3, 4, 5), make=make)) == ["MEAN"]


def test_another_shape_stays() -> None:
    graph = graph_of((BATCH, 3, 4), make=lambda g, x: g.add("RESHAPE", g.add("MEAN", x, [1]), [-1, 2, 2]))
    assert rewritten(graph) == ["MEAN", "RESHAPE"]


@pytest.mark.parametrize(("op", "c", "left"), [("MUL", 1 / 12, ["MEAN"]), ("DIV", 12.0, ["MEAN"]), ("DIV", 11.0, [])])
def test_means(op: str, c: float, left: list[str]) -> None:
    graph = graph_of((BATCH, 3, 4), make=lambda g, x: g.add(op, g.add("SUM", x, [1, 2]), c))
    assert rewritten(graph) == (left or ["SUM", "DIV"])


@pytest.mark.parametrize(
    ("numbers", "left"), [([0, 1, 2, 3], ["ONE_HOT"]), ([0, 2, 1, 3], ["RESHAPE", "EQUAL", "CAST"])]
)
def test_one_hot(numbers: list[int], left: list[str]) -> None:
    def make(g: Graph, x: Value) -> Value:
        same = g.add("EQUAL", g.add("EXPAND_DIMS", x, -1), np.array(numbers, np.int32))
        return g.add("CAST", same, type=TensorType.FLOAT32, in_data_type=TensorType.BOOL)

    assert rewritten(graph_of((BATCH, 3), make=make, type=TensorType.INT32)) == left
