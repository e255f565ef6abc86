"""SUM: axes, wrapping, rescaling of each integer type."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.sum import op
from gossamer.schema import ReducerOptions
from tests.ops.cases import Case, const, run_case, tensor
from tests.ops.reference import assert_refused, output_of

X = [[1, -2, 3], [4, 5, -6]]
KEEP, DROP = ReducerOptions(keep_dims=True), ReducerOptions()

CASES = [
    Case("rows", [tensor(X), const([1])], [tensor([2, 3])], DROP),
    Case("columns_kept", [tensor(X), const([-2])], [tensor([[5, 3, -3]])], KEEP),
    Case("all", [tensor(X), const([0, 1])], [tensor(5)], DROP),
    Case("twice", [tensor(X), const([1, -1])], [tensor([2, 3])], DROP),
    Case("no_axes", [tensor(X), const([], np.int32)], [tensor(X)], DROP),
    Case("axes_fed", [tensor(X), tensor([1], np.int32)], [tensor([2, 3])], DROP),
    Case("scalar", [tensor(5), const([7])], [tensor(5)], DROP),
    Case("nothing", [tensor(np.zeros((2, 0))), const([1])], [tensor([0, 0])], DROP),
    Case("int64", [tensor(X, np.int64), const([1])], [tensor([2, 3], np.int64)], DROP),
    Case("int32_wraps", [tensor([2**31 - 1, 1], np.int32), const([0])], [tensor(-(2**31), np.int32)], DROP),
    Case("bool", [tensor([[0, 1], [0, 0]], np.bool_), const([1])], [tensor([1, 0], np.bool_)], DROP),
    # (-2 + 3 + 10) * 0.5 = 5.5 is 22 steps of 0.25.
    Case(
        "uint8",
        [tensor([[0, 5, 12]], np.uint8, scale=0.5, zero_point=2), const([1])],
        [tensor([25], np.uint8, scale=0.25, zero_point=3)],
        DROP,
        2,
    ),
    Case(
        "nothing_uint8",
        [tensor(np.zeros((2, 0)), np.uint8, scale=1, zero_point=9), const([1])],
        [tensor([0, 0], np.uint8, scale=1, zero_point=9)],
        DROP,
        2,
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


def test_int8() -> None:
    # LiteRT's reference kernel takes int8 for uint8.
    x = tensor([[-1, 4, 11], [1, 1, -100]], np.int8, scale=0.5, zero_point=1)
    case = Case("", [x, const([1])], [tensor([0, 0], np.int8, scale=0.25, zero_point=3)], DROP, 2)
    np.testing.assert_array_equal(output_of(op, case), np.int8([25, -128]))


def test_int16() -> None:
    x = tensor([[-20000, 4, 11], [1, 1, 1]], np.int16, scale=0.5)
    case = Case("", [x, const([1])], [tensor([[0], [0]], np.int16, scale=1)], KEEP, 2)
    np.testing.assert_array_equal(output_of(op, case), np.int16([[-9993], [2]]))


@pytest.mark.parametrize(
    ("message", "case_"),
    [
        ("axis 2 is not within an input of 2 dimensions", Case("", [tensor(X), const([2])], [tensor([0])], DROP)),
        ("axis -3 is not within", Case("", [tensor(X), const([-3])], [tensor([0])], DROP)),
        ("axes must be int32, got int64", Case("", [tensor(X), const([0], np.int64)], [tensor([0])], DROP)),
        ("output must be float32, got int32", Case("", [tensor(X), const([0])], [tensor([0], np.int32)], DROP)),
        (
            "input of type int8 needs one finite scale",
            Case("", [tensor(X, np.int8), const([0])], [tensor([0], np.int8)], DROP),
        ),
    ],
)
def test_refuses(message: str, case_: Case) -> None:
    assert_refused(op, case_, message)
