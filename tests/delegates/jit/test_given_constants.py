"""Constants that subgraphs are called with, or that loops hand on, decide shapes there as they do outside."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer.schema import ReshapeOptions, ShapeOptions, WhileOptions
from tests.delegates.jit.running import TARGETS, check
from tests.delegates.jit.test_control_flow import BOOL, COUNTER, FLOAT, INT, Kind, floats, number, op, subgraph
from tests.delegates.jit.test_loops import not_claimed
from tests.runtime.graphs import ModelMaker

pytestmark = pytest.mark.skipif(not TARGETS, reason="no machine code for this CPU")

X: Kind = ((2, 6), FLOAT)
SHAPE: Kind = ((2,), INT)


def reshaped(make: ModelMaker, x: int, shape: int) -> int:
    """x of a shape that only the run tells, for all that the file says of it."""
    result = make.tensor([1, 1], FLOAT, shape_signature=(-1, -1))
    make.op("RESHAPE", [x, shape], [result], ReshapeOptions())
    return result


def looped(*, changes: bool = False, is_input: bool = False) -> bytes:
    """Three turns that add to x itself, after it has been of another shape, which is a variable of the loop."""
    make = ModelMaker()
    x = make.tensor(*X)
    given = make.tensor(*SHAPE) if is_input else number(make, [3, 4], INT)
    variables = [COUNTER, X, SHAPE]
    results = [make.tensor(*kind) for kind in variables]
    begin = [number(make, 0, INT), x, given]
    make.op("WHILE", begin, results, WhileOptions(cond_subgraph_index=1, body_subgraph_index=2))
    make.io([x, given] if is_input else [x], [results[1]])

    def condition(make: ModelMaker, v: list[int]) -> list[int]:
        return [op(make, "LESS", [v[0], number(make, 3, INT)], ((), BOOL))]

    def turn(make: ModelMaker, v: list[int]) -> list[int]:
        there = reshaped(make, v[1], v[2])
        other = make.tensor([1, 1], FLOAT, shape_signature=(-1, -1))
        make.op("ADD", [there, there], [other])
        back = make.tensor(*X)
        make.op("RESHAPE", [other, number(make, [2, 6], INT)], [back], ReshapeOptions())
        shape = op(make, "MAXIMUM", [v[2], number(make, [2, 2], INT)], SHAPE) if changes else v[2]
        return [op(make, "ADD", [v[0], number(make, 1, INT)], COUNTER), back, shape]

    subgraph(make, "condition", variables, condition)
    subgraph(make, "turn", variables, turn)
    return make.model()


def test_a_shape_that_a_loop_hands_on() -> None:
    check(looped(), {0: floats(2, 6)})


def test_a_shape_that_a_loop_computes_is_known_where_turns_are_counted() -> None:
    check(looped(changes=True), {0: floats(2, 6)})


def test_a_shape_of_the_data_is_not_known() -> None:
    inputs = {0: floats(2, 6), 1: np.array([4, 3], np.int32)}
    not_claimed(looped(is_input=True), inputs, "is only known when the model runs")


def test_a_condition_knows_it_too() -> None:
    """Turns until as many are done as the largest size of a shape."""
    make = ModelMaker()
    x = make.tensor(*X)
    variables = [COUNTER, X, SHAPE]
    results = [make.tensor(*kind) for kind in variables]
    begin = [number(make, 0, INT), x, number(make, [4, 3], INT)]
    make.op("WHILE", begin, results, WhileOptions(cond_subgraph_index=1, body_subgraph_index=2))
    make.io([x], [results[1]])

    def condition(make: ModelMaker, v: list[int]) -> list[int]:
        there = reshaped(make, v[1], v[2])
        size = make.tensor((2,), INT)
        make.op("SHAPE", [there], [size], ShapeOptions(out_type=INT))
        most = op(make, "REDUCE_MAX", [size, number(make, [0], INT)], ((), INT))
        return [op(make, "LESS", [v[0], most], ((), BOOL))]

    def turn(make: ModelMaker, v: list[int]) -> list[int]:
        more = op(make, "ADD", [v[1], v[1]], X)
        return [op(make, "ADD", [v[0], number(make, 1, INT)], COUNTER), more, v[2]]

    subgraph(make, "condition", variables, condition)
    subgraph(make, "turn", variables, turn)
    check(make.model(), {0: np.ones((2, 6), np.float32)})
