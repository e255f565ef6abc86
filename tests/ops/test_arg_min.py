"""ARG_MIN: axes, ties, NaN, index types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.arg_min import op
from gossamer.schema import ArgMinOptions, TensorType
from tests.ops.cases import Case, const, run_case, tensor
from tests.ops.reference import assert_refused

X = [[1, -2, 3], [4, 4, -6]]
INT32, INT64 = ArgMinOptions(output_type=TensorType.INT32), ArgMinOptions(output_type=TensorType.INT64)

CASES = [
    Case("last_axis", [tensor(X), const([-1])], [tensor([1, 2], np.int32)], INT32),
    Case("first_axis", [tensor(X), const(0, np.int64)], [tensor([0, 0, 1], np.int64)], INT64),
    Case("axis_fed", [tensor(X), tensor([1], np.int32)], [tensor([1, 2], np.int32)], INT32),
    Case("uint8", [tensor([7, 200, 3, 200, 3], np.uint8), const([0])], [tensor(2, np.int32)], INT32, 2),
    Case("int8", [tensor([7, -100, 9, -100, 9], np.int8), const([0])], [tensor(1, np.int32)], INT32, 2),
    Case("int32", [tensor(X, np.int32), const([1])], [tensor([1, 2], np.int32)], INT32),
    Case("bool", [tensor([True, False, True], np.bool_), const([0])], [tensor(1, np.int32)], INT32, 2),
    Case("nan", [tensor([[np.nan], [2], [np.nan]]), const([0])], [tensor([1], np.int32)], INT32),
    Case("empty", [tensor(np.zeros((0, 3))), const([1])], [tensor(np.zeros(0), np.int32)], INT32),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


@pytest.mark.parametrize(
    ("message", "case_"),
    [
        (
            "axis 2 is not within an input of 2 dimensions",
            Case("", [tensor(X), const([2])], [tensor([0, 0], np.int32)], INT32),
        ),
        ("axis must hold 1 value, got 2", Case("", [tensor(X), const([0, 1])], [tensor(0, np.int32)], INT32)),
        (
            "axis 1 of [2, 0] is empty",
            Case("", [tensor(np.zeros((2, 0))), const([1])], [tensor([0, 0], np.int32)], INT32),
        ),
        (
            "output_type must be int32 or int64, got float32",
            Case("", [tensor(X), const([1])], [tensor([0, 0], np.int32)], ArgMinOptions()),
        ),
        ("x must have at least 1 dimension", Case("", [tensor(1), const([0])], [tensor(0, np.int32)], INT32)),
        ("got int64", Case("", [tensor(X, np.int64), const([0])], [tensor([0], np.int32)], INT32)),
    ],
)
def test_refuses(message: str, case_: Case) -> None:
    assert_refused(op, case_, message)
