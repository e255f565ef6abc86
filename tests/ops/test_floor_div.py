"""FLOOR_DIV: signs, wrapping, zeros."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.floor_div import op
from gossamer.schema import FloorDivOptions
from tests.ops.cases import Case, run_case, tensor
from tests.ops.invoking import assert_refused_by_invoke
from tests.ops.reference import assert_refused

CASES = [
    Case("broadcast", [tensor([[7], [-7]]), tensor([2, -2])], [tensor([[3, -4], [-4, 3]])], FloorDivOptions()),
    Case(
        "infinity",
        [tensor([1, -1, np.inf]), tensor([np.nan, np.inf, 2])],
        [tensor([np.nan, 0, np.inf])],
        FloorDivOptions(),
    ),
    Case(
        "int32",
        [tensor([7, -7, -(2**31)], np.int32), tensor([2, 2, -1], np.int32)],
        [tensor([3, -4, -(2**31)], np.int32)],
        FloorDivOptions(),
    ),
    Case("int16", [tensor([7, -7], np.int16), tensor([-2], np.int16)], [tensor([-4, 3], np.int16)], FloorDivOptions()),
    Case(
        "int8", [tensor([-128, 7], np.int8), tensor([-1, 2], np.int8)], [tensor([-128, 3], np.int8)], FloorDivOptions()
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


@pytest.mark.parametrize(
    ("message", "case_"),
    [
        ("got int64", Case("", [tensor(1, np.int64), tensor(1, np.int64)], [tensor(1, np.int64)])),
    ],
)
def test_refuses(message: str, case_: Case) -> None:
    assert_refused(op, case_, message)


@pytest.mark.parametrize(
    ("message", "case_"),
    [
        ("division by 0: input 1 is 0 at [0]", Case("", [tensor([1.0]), tensor([0.0])], [tensor([0.0])])),
        (
            "division by 0: input 1 is 0 at [0, 1]",
            Case("", [tensor([1], np.int8), tensor([[1, 0]], np.int8)], [tensor([[0, 0]], np.int8)]),
        ),
    ],
)
def test_refuses_values(message: str, case_: Case) -> None:
    assert_refused_by_invoke(op, case_, message)
