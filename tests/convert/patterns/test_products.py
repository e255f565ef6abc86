from __future__ import annotations

import numpy as np
import pytest

from gossamer.convert.blocks.shapes import transpose
from gossamer.convert.graph import Graph, Value, unknown
from tests.convert.patterns.running import graph_of, rewritten

RNG = np.random.default_rng(5)
BATCH, TIME = unknown(0), unknown(1)


def array(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("adj", [False, True])
def test_exchanged_axes_are_options(adj: bool) -> None:
    def make(g: Graph, x: Value, y: Value) -> Value:
        x, y = (transpose(g, one, (0, 2, 1)) for one in (x, y))
        return g.add("BATCH_MATMUL", x, y, adj_x=adj)

    graph = graph_of((BATCH, 4, 4), (BATCH, 4, 4), make=make)
    assert rewritten(graph, rtol=1e-4) == ["BATCH_MATMUL"]
    options = graph.ordered()[0].options
    assert (options.adj_x, options.adj_y) == (not adj, True)


def test_other_axes_stay() -> None:
    def make(g: Graph, x: Value, y: Value) -> Value:
        return g.add("BATCH_MATMUL", transpose(g, x, (1, 0, 2)), y)

    assert rewritten(graph_of((3, 2, 4), (2, 4, 5), make=make), rtol=1e-4) == ["TRANSPOSE", "BATCH_MATMUL"]


def test_an_exchanged_product() -> None:
    def make(g: Graph, x: Value, y: Value) -> Value:
        return transpose(g, g.add("BATCH_MATMUL", x, y), (0, 2, 1))

    assert rewritten(graph_of((2, 3, 4), (2, 4, 5), make=make), rtol=1e-4) == ["BATCH_MATMUL"]


@pytest.mark.parametrize("adj", [False, True])
@pytest.mark.parametrize("shape", [(BATCH, 4), (BATCH, TIME, 4)])
def test_a_constant_matrix_becomes_weights(shape: tuple[int, ...], adj: bool) -> None:
    matrix = array(5, 4) if adj else array(4, 5)

    def make(g: Graph, x: Value) -> Value:
        return g.add("RELU", g.add("ADD", g.add("BATCH_MATMUL", x, matrix, adj_y=adj), array(5)))

    graph = graph_of(shape, make=make)
    assert rewritten(graph, rtol=1e-4) == ["FULLY_CONNECTED"]
    weights = graph.ordered()[0].constant(1)
    assert weights is not None
    assert np.shares_memory(weights, matrix)


def test_constant_matrices_of_several_batches_stay() -> None:
    graph = graph_of((2, 3, 4), make=lambda g, x: g.add("BATCH_MATMUL", x, array(2, 4, 5)))
    assert rewritten(graph, rtol=1e-4) == ["BATCH_MATMUL"]


def test_rows_are_not_reshaped() -> None:
    def make(g: Graph, x: Value) -> Value:
        y = g.add("FULLY_CONNECTED", g.add("RESHAPE", x, [-1, 4]), array(5, 4), array(5))
        return g.add("ADD", g.add("RESHAPE", y, [-1, 3, 5]), array(5))

    graph = graph_of((BATCH, 3, 4), make=make)
    assert rewritten(graph, rtol=1e-4) == ["FULLY_CONNECTED"]
    assert graph.ordered()[0].options.keep_num_dims


def test_rows_of_other_lengths_are_reshaped() -> None:
    def make(g: Graph, x: Value) -> Value:
        y = g.add("FULLY_CONNECTED", g.add("RESHAPE", x, [-1, 12]), array(6, 12))
        return g.add("RESHAPE", y, [-1, 3, 2])

    assert rewritten(graph_of((BATCH, 3, 4), make=make), rtol=1e-4) == ["RESHAPE", "FULLY_CONNECTED", "RESHAPE"]


def test_the_input_of_a_product_of_older_version_is_reshaped_afterwards() -> None:
    def make(g: Graph, x: Value) -> Value:
        shaped = g.add("RESHAPE", x, [3, 1, 4], new_shape=[3, 1, 4])
        return g.add("ADD", g.add("FULLY_CONNECTED", shaped, array(5, 4), keep_num_dims=True), array(5))

    graph = graph_of((1, 3, 4), make=make)
    assert rewritten(graph, rtol=1e-4) == ["FULLY_CONNECTED", "RESHAPE"]
    assert not graph.ordered()[0].options.keep_num_dims


def test_numbers_on_both_sides() -> None:
    def make(g: Graph, x: Value, y: Value) -> Value:
        return g.add("BATCH_MATMUL", g.add("MUL", x, 0.5), g.add("MUL", y, 3.0))

    assert rewritten(graph_of((2, 3, 4), (2, 4, 5), make=make), rtol=1e-4) == ["MUL", "BATCH_MATMUL"]


def test_batches_are_not_reshaped() -> None:
    def make(g: Graph, x: Value, y: Value) -> Value:
        x, y = g.add("RESHAPE", x, [6, 4, 5]), g.add("RESHAPE", y, [6, 5, 7])
        return g.add("RESHAPE", g.add("BATCH_MATMUL", x, y), [2, 3, 4, 7])

    assert rewritten(graph_of((2, 3, 4, 5), (2, 3, 5, 7), make=make), rtol=1e-4) == ["BATCH_MATMUL"]
    assert len(rewritten(graph_of((3, 2, 4, 5), (3, 2, 5, 7), make=make), rtol=1e-4)) == 4
