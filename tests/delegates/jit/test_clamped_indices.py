"""Indices that count from the end if they are less than 0 and are clamped, as exporters write them, of a loop's counter
and of data."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from gossamer.affine import Affine, Ranges
from gossamer.codegen.graph import MAP, Kernel, KernelGraph
from gossamer.delegates.jit.numbers import greatest
from gossamer.schema import StridedSliceOptions, TensorType
from gossamer.views import Buffer
from tests.delegates.jit.running import TARGETS, check, machine_code
from tests.delegates.jit.test_control_flow import BOOL, COUNTER, FLOAT, INT, Kind, floats, kinds_of, number, op
from tests.delegates.jit.test_loops import counted, not_claimed, plus, strided, vector
from tests.runtime.graphs import ModelMaker

pytestmark = pytest.mark.skipif(not TARGETS, reason="no machine code for this CPU")

ROWS: Kind = ((5, 3), FLOAT)
Index = Callable[[ModelMaker, int], int]


def clamped(make: ModelMaker, at: int, most: int) -> int:
    least = op(make, "MINIMUM", [at, number(make, most, INT)], COUNTER)
    return op(make, "MAXIMUM", [least, number(make, 0, INT)], COUNTER)


def from_the_end(make: ModelMaker, at: int, size: int) -> int:
    is_negative = op(make, "LESS", [at, number(make, 0, INT)], ((), BOOL))
    return op(make, "SELECT", [is_negative, plus(make, at, size), at], COUNTER)


def box(make: ModelMaker, x: int, at: int, width: int) -> int:
    """x[at:at + width], whose end counts from its begin."""
    vectors = [vector(make, 0, 2, at, 0), number(make, [width, 3], INT), number(make, [1, 1], INT)]
    return op(make, "STRIDED_SLICE", [x, *vectors], ((width, 3), FLOAT), StridedSliceOptions(offset=True))


def rows_at(index: Index, width: int, limit: int | None = None) -> bytes:
    """The sum of the boxes at an index of the counter."""

    def body(make: ModelMaker, at: int, v: list[int]) -> list[int]:
        return [v[0], op(make, "ADD", [v[1], box(make, v[0], index(make, at), width)], ((width, 3), FLOAT))]

    return counted([ROWS, ((width, 3), FLOAT)], body, limit)


@pytest.mark.parametrize("width", [1, 2])
def test_a_counter_that_is_inside_anyway(width: int) -> None:
    """It is read itself: what is left are the sums of the boxes and of the counter."""
    model = rows_at(lambda make, at: clamped(make, from_the_end(make, at, 5), 5 - width), width, 6 - width)
    check(model, {0: floats(5, 3), 1: floats(width, 3)})
    _, kernel = machine_code(model)
    turn = kinds_of(kernel)[1]
    assert (turn.count("map"), turn.count("gather")) == (2, 1)


@pytest.mark.parametrize("first", [-7, 0, 2, 9])
def test_a_clamp_says_where_data_are(first: int) -> None:
    """x[t:t + 2] for t of the data, clamped: wherever that is."""

    def body(make: ModelMaker, at: int, v: list[int]) -> list[int]:
        row = box(make, v[1], clamped(make, v[0], 3), 2)
        return [plus(make, v[0], 1), v[1], op(make, "ADD", [v[2], row], ((2, 3), FLOAT))]

    model = counted([COUNTER, ROWS, ((2, 3), FLOAT)], body, 3)
    check(model, {0: np.array(first, np.int32), 1: floats(5, 3), 2: floats(2, 3)})


@pytest.mark.parametrize("first", [-5, -1, 0, 4])
def test_what_counts_from_the_end_is_known_if_it_is_clamped(first: int) -> None:
    def body(make: ModelMaker, at: int, v: list[int]) -> list[int]:
        row = box(make, v[1], clamped(make, from_the_end(make, v[0], 5), 4), 1)
        return [v[0], v[1], op(make, "ADD", [v[2], row], ((1, 3), FLOAT))]

    model = counted([COUNTER, ROWS, ((1, 3), FLOAT)], body, 2)
    check(model, {0: np.array(first, np.int32), 1: floats(5, 3), 2: floats(1, 3)})


def test_an_end_behind_a_clamped_begin() -> None:
    """x[b:b + 2] with b clamped is of two elements, and inside."""

    def body(make: ModelMaker, at: int, v: list[int]) -> list[int]:
        begin = clamped(make, v[0], 3)
        row = strided(make, v[1], ROWS, 0, begin, plus(make, begin, 2))
        return [v[0], v[1], op(make, "ADD", [v[2], row], ((2, 3), FLOAT))]

    model = counted([COUNTER, ROWS, ((2, 3), FLOAT)], body, 2)
    for first in (-3, 1, 8):
        check(model, {0: np.array(first, np.int32), 1: floats(5, 3), 2: floats(2, 3)})


def test_a_clamp_that_is_too_wide_says_nothing() -> None:
    model = rows_at(lambda make, at: clamped(make, at, 4), 2)
    inputs = {0: floats(5, 3), 1: floats(2, 3), 2: np.array(3, np.int32)}
    not_claimed(model, inputs, "whether begin or end is outside is only known")


def test_a_clamp_of_clamps_is_looked_into_once() -> None:
    """Each is of the one before twice, so that there are 2 ** 25 ways through them."""
    graph = KernelGraph()
    index = Buffer((1,), TensorType.INT32)
    for most in range(25):
        sides = [Buffer((1,), TensorType.INT32) for _ in range(2)]
        for side, limit in zip(sides, (most, most + 7), strict=True):
            constant = Buffer((1,), TensorType.INT32, -1, np.array([limit], np.int32))
            graph.kernels.append(Kernel(MAP, [index.view(), constant.view()], side.view(), epilogue=("min", 0, 1)))
        index = Buffer((1,), TensorType.INT32)
        graph.kernels.append(Kernel(MAP, [side.view() for side in sides], index.view(), epilogue=("max", 0, 1)))
    assert greatest(Affine(0, {(index, 0): 1}), graph, Ranges()) == 7
