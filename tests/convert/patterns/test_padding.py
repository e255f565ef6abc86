from __future__ import annotations

import numpy as np
import pytest

from gossamer.convert.graph import Graph, Size, Value, unknown
from gossamer.schema.enums import Padding
from tests.convert.patterns.running import graph_of, rewritten

RNG = np.random.default_rng(5)
OPEN = unknown(3, large=True)


def conv(g: Graph, x: Value, size: int = 3, stride: int = 1, dilation: int = 1, op: str = "CONV_2D") -> Value:
    filter = RNG.normal(size=(4 if op == "CONV_2D" else 1, size, size, 4)).astype(np.float32)
    more = {} if op == "CONV_2D" else {"depth_multiplier": 1}
    return g.add(
        op, x, filter, np.zeros(4, np.float32), stride_h=stride, stride_w=stride, padding=Padding.VALID,
        dilation_h_factor=dilation, dilation_w_factor=dilation, **more,
    )  # fmt: skip


def pad(g: Graph, x: Value, before: int, after: int) -> Value:
    return g.add("PAD", x, np.array([(0, 0), (before, after), (before, after), (0, 0)], np.int32))


@pytest.mark.parametrize("op", ["CONV_2D", "DEPTHWISE_CONV_2D"])
@pytest.mark.parametrize(
    ("size", "window", "stride", "dilation", "borders"),
    [(8, 3, 1, 1, (1, 1)), (8, 3, 2, 1, (0, 1)), (7, 3, 2, 1, (1, 1)), (OPEN, 3, 1, 2, (2, 2)), (9, 4, 1, 1, (1, 2))],
)
def test_borders_of_same(
    op: str, size: int | Size, window: int, stride: int, dilation: int, borders: tuple[int, int]
) -> None:
    graph = graph_of((2, size, size, 4), make=lambda g, x: conv(g, pad(g, x, *borders), window, stride, dilation, op))
    assert rewritten(graph, {OPEN: 9} if isinstance(size, Size) else {}) == [op]


@pytest.mark.parametrize(
    ("size", "window", "stride", "borders"),
    [(8, 3, 2, (1, 1)), (OPEN, 3, 2, (0, 1)), (8, 3, 1, (2, 2)), (8, 3, 1, (0, 2))],
)
def test_other_borders_stay(size: int | Size, window: int, stride: int, borders: tuple[int, int]) -> None:
    graph = graph_of((2, size, size, 4), make=lambda g, x: conv(g, pad(g, x, *borders), window, stride))
    assert rewritten(graph, {OPEN: 9} if isinstance(size, Size) else {}) == ["PAD", "CONV_2D"]


def max_pool(g: Graph, x: Value) -> Value:
    return g.add("MAX_POOL_2D", x, filter_height=3, filter_width=3, stride_h=1, stride_w=1, padding=Padding.VALID)


def test_borders_of_a_maximum() -> None:
    borders = np.array([(0, 0), (1, 1), (1, 1), (0, 0)], np.int32)

    def make(filler: float) -> Graph:
        return graph_of((2, 6, 6, 4), make=lambda g, x: max_pool(g, g.add("PADV2", x, borders, filler)))

    assert rewritten(make(-np.inf)) == ["MAX_POOL_2D"]
    assert rewritten(make(0.0)) == ["PADV2", "MAX_POOL_2D"]


def test_borders_around_borders() -> None:
    graph = graph_of((2, 8, 8, 4), make=lambda g, x: pad(g, pad(g, x, 2, 1), 0, 3))
    assert rewritten(graph) == ["PAD"]


@pytest.mark.parametrize(
    ("borders", "crops", "left"),
    [((2, 2), (0, 0), []), ((0, 0), (0, 0), []), ((2, 3), (0, 1), []), ((3, 1), (0, 0), ["PAD"])],
)
def test_interleaved_pictures(borders: tuple[int, int], crops: tuple[int, int], left: list[str]) -> None:
    def make(g: Graph, x: Value) -> Value:
        spread = g.add("SPACE_TO_BATCH_ND", x, [2, 2], np.array([borders] * 2, np.int32))
        return g.add("BATCH_TO_SPACE_ND", conv(g, spread), [2, 2], np.array([crops] * 2, np.int32))

    size = 8 if (sum(borders)) % 2 == 0 else 7
    graph = graph_of((2, size, size, 4), make=make)
    assert rewritten(graph) == [*left, "CONV_2D"]
    assert graph.ordered()[-1].options.dilation_w_factor == 2
