"""ATAN2: quadrants, types, shapes."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from gossamer.ops.atan2 import op
from gossamer.schema import ATan2Options, TensorType
from tests.ops.cases import Case, run_case, tensor
from tests.ops.reference import assert_refused, output_of

CASES = [
    Case(
        "quadrants",
        [tensor([1, 1, -1, -1]), tensor([1, -1, -1, 1])],
        [tensor(np.pi * np.array([0.25, 0.75, -0.75, -0.25]))],
        ATan2Options(),
    ),
    Case(
        "float64",
        [tensor([[0.0]], np.float64), tensor([[-1]], np.float64)],
        [tensor([[np.pi]], np.float64)],
        ATan2Options(),
    ),
    Case(
        "float16", [tensor([1], np.float16), tensor([0], np.float16)], [tensor([np.pi / 2], np.float16)], ATan2Options()
    ),
    Case(
        "x_of_another_shape",
        [tensor([[1], [0]]), tensor([[0, -1, 7]])],
        [tensor([[np.pi / 2], [np.pi]])],
        ATan2Options(),
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


@pytest.mark.parametrize(
    ("message", "case_"),
    [
        (
            "no fewer elements, got shapes [2] of y and [1] of x",
            Case("", [tensor([1, 2]), tensor([1])], [tensor([1, 2])]),
        ),
        ("must have the rank of y", Case("", [tensor([1, 2]), tensor([[1, 2]])], [tensor([1, 2])])),
        ("got int32", Case("", [tensor(1, np.int32), tensor(1, np.int32)], [tensor(1, np.int32)])),
    ],
)
def test_refuses(message: str, case_: Case) -> None:
    assert_refused(op, case_, message)


def test_bfloat16() -> None:
    y, x, angle = (tensor([v], ml_dtypes.bfloat16, type=TensorType.BFLOAT16) for v in (1, 0, np.pi / 2))
    assert output_of(op, Case("", [y, x], [angle])).tolist() == angle.value.tolist()
