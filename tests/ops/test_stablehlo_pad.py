"""STABLEHLO_PAD: edges, crops, interior."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.stablehlo_pad import op
from gossamer.schema import StablehloPadOptions
from tests.ops.cases import Case, run_case, tensor
from tests.ops.reference import assert_refused, output_of


def padding(low: tuple[int, ...], high: tuple[int, ...], interior: tuple[int, ...]) -> StablehloPadOptions:
    return StablehloPadOptions(edge_padding_low=low, edge_padding_high=high, interior_padding=interior)


def line(id: str, expected: list[int], low: int, high: int, interior: int) -> Case:
    """[1, 2, 3] padded with 9."""
    return Case(
        id,
        [tensor([1, 2, 3], np.int32), tensor(9, np.int32)],
        [tensor(expected, np.int32)],
        padding((low,), (high,), (interior,)),
    )


CASES = [
    line("edges", [9, 1, 2, 3, 9, 9], 1, 2, 0),
    line("interior", [1, 9, 9, 2, 9, 9, 3], 0, 0, 2),
    line("nothing", [1, 2, 3], 0, 0, 0),
    line("crop", [2], -1, -1, 0),
    line("crop_the_interior", [9, 2, 9, 9, 3], -2, 0, 2),
    line("crop_both", [9, 2, 9], -2, -2, 2),
    line("crop_all_elements", [9], -1, -5, 2),
    line("crop_more_than_there_is", [], -3, -2, 0),
    line("crop_and_pad", [9, 9, 9], 4, -4, 0),
    line("crop_and_pad_behind", [3, 9, 9], -2, 2, 0),
    Case(
        "two_dimensions",
        [tensor([[1, 2], [3, 4]]), tensor([0.5])],
        [tensor([[0.5, 0.5, 0.5, 0.5], [0.5, 1, 0.5, 2], [0.5, 3, 0.5, 4]])],
        padding((1, 1), (0, 0), (0, 1)),
    ),
    Case(
        "bool",
        [tensor([False], bool), tensor(True, bool)],
        [tensor([True, False], bool)],
        padding((1,), (0,), (0,)),
    ),
    Case(
        "of_nothing",
        [tensor(np.zeros((0, 1)), np.int8), tensor(7, np.int8)],
        [tensor([[7], [7]], np.int8)],
        padding((1, 0), (1, 0), (3, 0)),
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


def test_an_empty_dimension_empties_all() -> None:
    case = Case("", [tensor(np.ones((2, 3))), tensor(0)], [tensor(np.zeros((1, 1)))], padding((-2, 0), (0, 1), (0, 0)))
    assert output_of(op, case).shape == (0, 0)


X, ZERO = tensor([[1, 2]]), tensor(0)
FLAT = padding((0, 0), (0, 0), (0, 0))
REFUSED = [
    ("operand must have 1 to 8 dimensions, got 0", Case("", [ZERO, ZERO], [X], FLAT)),
    ("padding_value must be float32 here, got int8", Case("", [X, tensor(0, np.int8)], [X], FLAT)),
    ("padding_value must have one element, got shape [2]", Case("", [X, tensor([0, 0])], [X], FLAT)),
    ("output must be float32 here, got int8", Case("", [X, ZERO], [tensor([[1]], np.int8)], FLAT)),
    (
        "edge_padding_low must have 2 elements, one for each dimension, got 1",
        Case("", [X, ZERO], [X], padding((0,), (0,), (0,))),
    ),
    ("interior_padding must not be negative, got [0, -1]", Case("", [X, ZERO], [X], padding((0, 0), (0, 0), (0, -1)))),
    ("is too large", Case("", [X, ZERO], [X], padding((0, 2**40), (0, 0), (0, 0)))),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED, ids=[message for message, _ in REFUSED])
def test_refuses(message: str, refused: Case) -> None:
    assert_refused(op, refused, message)
