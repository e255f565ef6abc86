"""FLOOR_MOD: signs, infinities, zeros."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.floor_mod import op
from gossamer.schema import FloorModOptions
from tests.ops.cases import Case, run_case, tensor
from tests.ops.invoking import assert_refused_by_invoke
from tests.ops.reference import assert_refused, output_of

CASES = [
    Case("signs", [tensor([[7], [-7]]), tensor([3, -3])], [tensor([[1, -2], [2, -1]])], FloorModOptions()),
    Case(
        "special",
        [tensor([1, -1, 1, 5, 0]), tensor([np.nan, np.inf, 0, -np.inf, -3])],
        [tensor([np.nan, np.inf, np.nan, -np.inf, 0])],
        FloorModOptions(),
    ),
    Case(
        "int32",
        [tensor([7, -7, 7], np.int32), tensor([3, 3, -3], np.int32)],
        [tensor([1, 2, -2], np.int32)],
        FloorModOptions(),
    ),
    Case(
        "int64", [tensor([2**40 + 1], np.int64), tensor([2**20], np.int64)], [tensor([1], np.int64)], FloorModOptions()
    ),
    Case("int8", [tensor([-127], np.int8), tensor([100], np.int8)], [tensor([73], np.int8)], FloorModOptions()),
    Case("int16", [tensor([-1], np.int16), tensor([100], np.int16)], [tensor([99], np.int16)], FloorModOptions()),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


@pytest.mark.parametrize(
    ("message", "case_"),
    [
        ("got uint8", Case("", [tensor(1, np.uint8), tensor(1, np.uint8)], [tensor(1, np.uint8)])),
    ],
)
def test_refuses(message: str, case_: Case) -> None:
    assert_refused(op, case_, message)


@pytest.mark.parametrize(
    ("message", "case_"),
    [
        ("division by 0", Case("", [tensor([1], np.int16), tensor([0], np.int16)], [tensor([0], np.int16)])),
    ],
)
def test_refuses_values(message: str, case_: Case) -> None:
    assert_refused_by_invoke(op, case_, message)


def test_least_integer_over_minus_one() -> None:
    case = Case("", [tensor([-(2**31)], np.int32), tensor([-1], np.int32)], [tensor([0], np.int32)])
    assert output_of(op, case).tolist() == [0]
