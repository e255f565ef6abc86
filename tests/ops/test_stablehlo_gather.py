"""STABLEHLO_GATHER: where slices start and where they go."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.stablehlo_gather import op
from gossamer.schema import StablehloGatherOptions, TensorType
from tests.ops.cases import Case, Operand, run_case, tensor
from tests.ops.reference import REFERENCE, assert_refused

X = np.arange(24).reshape(2, 3, 4)


def indices(values: Any, dtype: Any = np.int32) -> Operand:
    return tensor(values, dtype)


def gathering(
    offset: tuple[int, ...],
    collapsed: tuple[int, ...],
    start: tuple[int, ...],
    vector: int,
    sizes: tuple[int, ...],
) -> StablehloGatherOptions:
    return StablehloGatherOptions(
        offset_dims=offset,
        collapsed_slice_dims=collapsed,
        start_index_map=start,
        index_vector_dim=vector,
        slice_sizes=sizes,
    )


CASES = [
    Case(
        "rows",
        [tensor(X), indices([[0, 2], [1, 0]])],
        [tensor([X[0, 2], X[1, 0]])],
        gathering((1,), (0, 1), (0, 1), 1, (1, 1, 4)),
    ),
    Case(
        "windows_first",
        [tensor(X, np.int8), indices([[0, 1], [2, 1]], np.int64)],
        [tensor(np.stack([X[:, 2:3, 0:2], X[:, 1:2, 1:3]], -1), np.int8)],
        gathering((0, 1, 2), (), (2, 1), 0, (2, 1, 2)),
        notes="vectors are columns: (0, 2) and (1, 1) along dimensions 2 and 1",
    ),
    Case(
        "moved_inside",
        [tensor([1, 2, 3, 4, 5]), indices([[9], [-9], [2]])],
        [tensor([[4, 5], [1, 2], [3, 4]])],
        gathering((1,), (), (0,), 1, (2,)),
    ),
    Case(
        "no_batch",
        [tensor(X, np.int64), indices([1, 0, 1])],
        [tensor(X[1, 0, 1:3], np.int64)],
        gathering((0,), (0, 1), (0, 1, 2), 0, (1, 1, 2)),
    ),
    Case(
        "collapsed_but_long",
        [tensor([1, 2, 3]), indices([[2]])],
        [tensor([1])],
        gathering((), (0,), (0,), 1, (3,)),
        notes="the whole slice must fit, then its first element is taken",
    ),
    Case(
        "empty",
        [tensor(X), indices(np.zeros((0, 1)))],
        [tensor(np.zeros((0, 4)))],
        gathering((1,), (0, 1), (0,), 1, (1, 1, 4)),
    ),
    Case(
        "bool",
        [tensor([True, False], bool), indices([[1], [0]])],
        [tensor([False, True], bool)],
        gathering((), (0,), (0,), 1, (1,)),
    ),
]

ONE_COMPONENT = Case(
    "vectors_of_one_component",
    [tensor([5, 6, 7]), indices([2, 0])],
    [tensor([7, 5])],
    gathering((), (0,), (0,), 1, (1,)),
    notes="LiteRT reads beyond the shape here",
)


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


def test_vector_dimension_may_be_left_out() -> None:
    run_case(REFERENCE, op, ONE_COMPONENT)


ROWS = indices([[0], [1]])
ROW = (1, 3, 4)
REFUSED = [
    ("slice_sizes [1, 3] must lie within the operand [2, 3, 4]", ROWS, gathering((1, 2), (0,), (0,), 1, (1, 3))),
    ("slice_sizes [1, 3, 5] must lie within", ROWS, gathering((1, 2), (0,), (0,), 1, (1, 3, 5))),
    ("slice_sizes [1, -1, 4] must lie within", ROWS, gathering((1, 2), (0,), (0,), 1, (1, -1, 4))),
    ("collapsed_slice_dims [3] must be different dimensions in [0, 3)", ROWS, gathering((1, 2), (3,), (0,), 1, ROW)),
    ("start_index_map [0, 0] must be different", indices([[0, 0]]), gathering((1, 2), (0,), (0, 0), 1, ROW)),
    ("index_vector_dim 3 must be in [0, 2]", ROWS, gathering((1, 2), (0,), (0,), 3, ROW)),
    ("index vectors have 1 components, the options map 2", ROWS, gathering((1, 2), (0,), (0, 1), 1, ROW)),
    ("offset_dims [1] must name 2 dimensions", ROWS, gathering((1,), (0,), (0,), 1, ROW)),
    ("offset_dims [1, 3] must be different dimensions in [0, 3)", ROWS, gathering((1, 3), (0,), (0,), 1, ROW)),
]


@pytest.mark.parametrize(("message", "at", "options"), REFUSED, ids=[refused[0] for refused in REFUSED])
def test_refuses(message: str, at: Operand, options: StablehloGatherOptions) -> None:
    assert_refused(op, Case("", [tensor(X), at], [tensor(np.zeros((2, 3, 4)))], options), message)


def test_refuses_packed_types() -> None:
    operand = tensor([1, 2], np.int8, type=TensorType.INT4)
    refused = Case("", [operand, indices([[0]])], [operand], gathering((), (0,), (0,), 1, (1,)))
    assert_refused(op, refused, "got int4")
