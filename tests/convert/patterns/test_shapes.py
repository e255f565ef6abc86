from __future__ import annotations

import numpy as np
import pytest

from gossamer.convert.blocks.shapes import reshape, transpose
from gossamer.convert.graph import Graph, Value, unknown
from gossamer.schema.enums import TensorType
from tests.convert.patterns.running import graph_of, rewritten

BATCH, TIME = unknown(0), unknown(1)


def computed_shape(graph: Graph, x: Value, *sizes: int) -> Value:
    """The first size of a value, then others, packed when the model runs."""
    first = graph.add("STRIDED_SLICE", graph.add("SHAPE", x), [0], [1], [1], shrink_axis_mask=1)
    return graph.add("PACK", first, *[np.array(size, np.int32) for size in sizes], values_count=len(sizes) + 1)


def test_a_shape_with_one_open_size_is_not_computed() -> None:
    graph = graph_of((BATCH, 4, 6), make=lambda g, x: g.add("RESHAPE", x, computed_shape(g, x, 3, 8)))
    assert rewritten(graph, {BATCH: 3}) == ["RESHAPE"]
    assert graph.ordered()[0].input(1).data.tolist() == [-1, 3, 8]


def test_a_shape_with_two_open_sizes_is_computed() -> None:
    def make(g: Graph, x: Value) -> Value:
        shape = g.add("SHAPE", x)
        parts = [g.add("STRIDED_SLICE", shape, [n], [n + 1], [1], shrink_axis_mask=1) for n in (0, 1)]
        rest = [np.array(size, np.int32) for size in (3, 2)]
        return g.add("RESHAPE", x, g.add("PACK", *parts, *rest, values_count=4))

    assert "PACK" in rewritten(graph_of((BATCH, TIME, 6), make=make), {BATCH: 3, TIME: 5})


def test_reshapes_of_reshapes_are_one() -> None:
    def make(g: Graph, x: Value) -> Value:
        y = g.add("RESHAPE", x, [-1, 8])
        y = g.add("EXPAND_DIMS", y, np.array(1, np.int32))
        return g.add("ABS", g.add("RESHAPE", y, [-1, 2, 4]))

    assert rewritten(graph_of((BATCH, 4, 2), make=make)) == ["RESHAPE", "ABS"]
    assert rewritten(graph_of((BATCH, 2, 4), make=make)) == ["ABS"]


@pytest.mark.parametrize(
    ("op", "operands"),
    [
        ("RESHAPE", [[-1, 4]]),
        ("SLICE", [[0, 0], [-1, 4]]),
        ("PAD", [np.zeros((2, 2), np.int32)]),
        ("TILE", [[1, 1]]),
        ("TRANSPOSE", [[0, 1]]),
        ("STRIDED_SLICE", [[0, 0], [3, 4], [1, 1]]),
    ],
)
def test_what_changes_nothing_is_gone(op: str, operands: list[object]) -> None:
    assert rewritten(graph_of((3, 4), make=lambda g, x: g.add("ABS", g.add(op, x, *operands)))) == ["ABS"]


def test_what_changes_something_stays() -> None:
    def make(g: Graph, x: Value) -> list[Value]:
        return [
            g.add("STRIDED_SLICE", x, [3, 0], [-4, 4], [-1, 1]),
            g.add("SLICE", x, [1, 0], [2, 4]),
            g.add("TRANSPOSE", x, [1, 0]),
            g.add("TILE", x, [1, 2]),
        ]

    assert rewritten(graph_of((3, 4), make=make)) == ["STRIDED_SLICE", "SLICE", "TRANSPOSE", "TILE"]


def test_transposes() -> None:
    def pair(g: Graph, x: Value) -> Value:
        return g.add("ABS", transpose(g, transpose(g, x, (0, 2, 3, 1)), (0, 3, 1, 2)))

    assert rewritten(graph_of((BATCH, 2, 3, 4), make=pair)) == ["ABS"]
    chain = graph_of((2, 3, 4), make=lambda g, x: transpose(g, transpose(g, x, (0, 2, 1)), (1, 0, 2)))
    assert rewritten(chain) == ["TRANSPOSE"]
    ones = graph_of((BATCH, 5, 1, 1), make=lambda g, x: transpose(g, x, (0, 2, 3, 1)))
    assert rewritten(ones) == ["RESHAPE"]


def test_slices_that_are_computed_but_reach_to_the_end() -> None:
    def last(g: Graph, x: Value) -> Value:
        size = g.add("STRIDED_SLICE", g.add("SHAPE", x), [1], [2], [1], shrink_axis_mask=1)
        begin = g.add("PACK", np.array(0, np.int32), g.add("SUB", size, np.array(1, np.int32)), values_count=2)
        return g.add("STRIDED_SLICE", x, begin, [0, 0], [1, 1], begin_mask=1, end_mask=1, shrink_axis_mask=2)

    assert rewritten(graph_of((3, TIME), make=last), {TIME: 7}) == ["STRIDED_SLICE"]

    def size_of_rest(g: Graph, x: Value) -> Value:
        size = g.add("SUB", g.add("SHAPE", x), np.array([0, 2], np.int32))
        return g.add("SLICE", x, [0, 2], size)

    assert rewritten(graph_of((3, TIME), make=size_of_rest), {TIME: 7}) == ["SLICE"]

    def half(g: Graph, x: Value) -> Value:
        return g.add("SLICE", x, [0, 0], g.add("FLOOR_DIV", g.add("SHAPE", x), np.array([1, 2], np.int32)))

    assert "FLOOR_DIV" in rewritten(graph_of((3, TIME), make=half), {TIME: 7})


def test_an_open_size_may_be_larger_than_any_number() -> None:
    def make(g: Graph, x: Value) -> Value:
        return g.add("ABS", g.add("STRIDED_SLICE", x, [0, 0], [3, 1000], [1, 1], begin_mask=3))

    graph = graph_of((3, TIME), make=make)
    assert rewritten(graph, {TIME: 1500}) == ["STRIDED_SLICE", "ABS"]
    assert rewritten(graph_of((3, 900), make=make)) == ["ABS"]


def test_shrinking_a_one_is_a_reshape() -> None:
    graph = graph_of(
        (BATCH, 1, 4),
        make=lambda g, x: g.add("STRIDED_SLICE", x, [0, 0], [0, 1], [1, 1], end_mask=1, shrink_axis_mask=2),
    )
    assert rewritten(graph) == ["RESHAPE"]


def test_parts_put_together_again() -> None:
    def make(g: Graph, x: Value) -> list[Value]:
        rows = g.add_many("UNPACK", [x], 3, num=3, axis=1)
        halves = g.add_many("SPLIT", [np.array(2, np.int32), x], 2, num_splits=2)
        return [
            g.add("ABS", g.add("PACK", *rows, values_count=3, axis=1)),
            g.add("NEG", g.add("PACK", *rows, values_count=3, axis=2)),
            g.add("ABS", g.add("CONCATENATION", *halves, axis=-1)),
        ]

    assert sorted(rewritten(graph_of((2, 3, 4), make=make))) == ["ABS", "NEG", "TRANSPOSE"]


def test_parts_in_another_order_stay() -> None:
    def make(g: Graph, x: Value) -> Value:
        halves = g.add_many("SPLIT", [np.array(2, np.int32), x], 2, num_splits=2)
        return g.add("CONCATENATION", halves[1], halves[0], axis=2)

    assert rewritten(graph_of((2, 3, 4), make=make)) == ["SPLIT", "CONCATENATION"]


def test_a_broadcast_is_left_to_the_operator() -> None:
    def make(g: Graph, x: Value, y: Value) -> list[Value]:
        wide = g.add("BROADCAST_TO", x, [5, 3, 4])
        return [
            g.add("ADD", wide, y),
            g.add("MUL", g.add("TILE", x, [1, 4]), g.constant(np.full((3, 4), 2, np.float32))),
        ]

    assert rewritten(graph_of((3, 1), (5, 3, 4), make=make)) == ["ADD", "MUL"]


def test_a_broadcast_that_makes_the_result_larger_stays() -> None:
    graph = graph_of((3, 1), (3, 1), make=lambda g, x, y: g.add("ADD", g.add("TILE", x, [1, 4]), y))
    assert rewritten(graph) == ["TILE", "ADD"]


def test_what_is_computed_twice_is_computed_once() -> None:
    def make(g: Graph, x: Value) -> list[Value]:
        twice = [g.add("SUM", x, [1], keep_dims=True) for _ in range(2)]
        return [g.add("ADD", *twice), g.add("SUM", x, [1]), g.add("SUM", x, [0], keep_dims=True)]

    assert rewritten(graph_of((2, 3), make=make)) == ["SUM", "ADD", "SUM", "SUM"]


def test_what_is_random_is_not_computed_once() -> None:
    def make(g: Graph, x: Value) -> Value:
        shape = g.constant([2, 3])
        return g.add("ADD", *[g.add("RANDOM_UNIFORM", shape, seed=0, seed2=0) for _ in range(2)])

    graph = graph_of((2, 3), make=make)
    from gossamer.convert.patterns import rewrite

    rewrite(graph)
    assert [node.op for node in graph.ordered()] == ["RANDOM_UNIFORM", "RANDOM_UNIFORM", "ADD"]


def test_ones_are_not_reduced() -> None:
    graph = graph_of((BATCH, 1, 4), make=lambda g, x: g.add("ABS", g.add("MEAN", x, [1])))
    assert rewritten(graph) == ["RESHAPE", "ABS"]


def test_no_cast_to_the_same_type() -> None:
    def make(g: Graph, x: Value) -> Value:
        return g.add("ABS", g.add("CAST", x, type=TensorType.INT32, in_data_type=TensorType.INT32))

    assert rewritten(graph_of((2, 3), make=make, type=TensorType.INT32)) == ["ABS"]


def test_reshape_helper_leaves_shapes_alone() -> None:
    graph = graph_of((BATCH, 4), make=lambda g, x: g.add("ABS", reshape(g, x, (BATCH, 2, 2))))
    assert rewritten(graph) == ["RESHAPE", "ABS"]


def test_values_that_get_an_axis_to_be_joined_along_are_packed() -> None:
    def make(g: Graph, x: Value) -> Value:
        parts = [g.add("EXPAND_DIMS", g.add(op, x), 1) for op in ("ABS", "SIN", "NEG")]
        return g.add("CONCATENATION", *parts, axis=1)

    assert rewritten(graph_of((BATCH, 4), make=make)) == ["ABS", "SIN", "NEG", "PACK"]
    other = graph_of((2, 1, 4), make=lambda g, x: g.add("CONCATENATION", x, g.add("ABS", x), axis=1))
    assert rewritten(other) == ["ABS", "CONCATENATION"]


def test_ones_are_dropped_before_a_transpose() -> None:
    def make(g: Graph, x: Value) -> Value:
        y = g.add("RESHAPE", x, [-1, 5, 1, 2, 4])
        return g.add("RESHAPE", transpose(g, y, (2, 0, 3, 1, 4)), [-1, 2, 5, 4])

    graph = graph_of((BATCH, 5, 8), make=make)
    assert rewritten(graph) == ["RESHAPE", "TRANSPOSE"]


def test_a_slice_drops_what_is_one() -> None:
    def make(g: Graph, x: Value) -> Value:
        y = g.add("STRIDED_SLICE", x, [0, 0, 1], [0, 0, 2], [1, 1, 1], begin_mask=3, end_mask=3)
        return g.add("RESHAPE", transpose(g, y, (2, 1, 0)), [3, -1])

    assert rewritten(graph_of((BATCH, 3, 4), make=make)) == ["STRIDED_SLICE", "TRANSPOSE"]


def test_shapes_of_what_has_the_same() -> None:
    def make(g: Graph, x: Value) -> list[Value]:
        y = g.add("MUL", g.add("TANH", x), 2.0)
        return [g.add("SHAPE", y), g.add("SHAPE", g.add("MEAN", y, [1]))]

    assert rewritten(graph_of((BATCH, TIME, 4), make=make)).count("SHAPE") == 2
    graph = graph_of((BATCH, TIME, 4), make=lambda g, x: g.add("SHAPE", g.add("TANH", x)))
    assert rewritten(graph) == ["SHAPE"]


def test_ones_in_front_are_left_to_operators_that_broadcast() -> None:
    graph = graph_of((1, 4), (2, 4), make=lambda g, x, y: g.add("ADD", g.add("RESHAPE", g.add("TANH", x), [4]), y))
    assert rewritten(graph) == ["TANH", "ADD"]
    graph = graph_of((1, 4), (4,), make=lambda g, x, y: g.add("ADD", g.add("RESHAPE", g.add("TANH", x), [4]), y))
    assert rewritten(graph) == ["TANH", "RESHAPE", "ADD"]
