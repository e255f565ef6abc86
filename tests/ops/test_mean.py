"""MEAN: axes, truncation, rescaling."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.mean import op
from gossamer.schema import ReducerOptions
from tests.ops.cases import Case, const, run_case, tensor
from tests.ops.reference import assert_refused, output_of

X = [[1, -2, 3], [4, 5, -6]]
KEEP, DROP = ReducerOptions(keep_dims=True), ReducerOptions()

CASES = [
    Case("rows", [tensor(X), const([1])], [tensor([2 / 3, 1])], DROP),
    Case("columns_kept", [tensor(X), const([-2])], [tensor([[2.5, 1.5, -1.5]])], KEEP),
    Case("all", [tensor(X), const([0, 1])], [tensor(5 / 6)], DROP),
    Case("twice", [tensor(X), const([1, -1])], [tensor([2 / 3, 1])], DROP),
    Case("no_axes", [tensor(X), const([], np.int32)], [tensor(X)], DROP),
    Case("axes_fed", [tensor(X), tensor([1], np.int32)], [tensor([2 / 3, 1])], DROP),
    Case("scalar", [tensor(5), const([7])], [tensor(5)], DROP),
    Case("nothing", [tensor(np.zeros((2, 0))), const([1])], [tensor([np.nan, np.nan])], DROP),
    Case("int32", [tensor(X, np.int32), const([1])], [tensor([0, 1], np.int32)], DROP),
    Case("int64", [tensor([-7, 4], np.int64), const([0])], [tensor(-1, np.int64)], DROP),
    Case("nothing_int32", [tensor(np.zeros((2, 0)), np.int32), const([1])], [tensor([0, 0], np.int32)], DROP),
    # (-2 + 3 + 10) / 3 * 0.5 = 1.83 is 3.67 steps of 0.5 and 7.33 of 0.25.
    Case(
        "int8",
        [tensor([[-1, 4, 11]], np.int8, scale=0.5, zero_point=1), const([1])],
        [tensor([7 + 3], np.int8, scale=0.25, zero_point=3)],
        DROP,
        2,
    ),
    Case(
        "uint8_image",
        [tensor(np.arange(12).reshape(1, 2, 3, 2), np.uint8, scale=1), const([1, 2])],
        [tensor([[[[5, 6]]]], np.uint8, scale=1)],
        KEEP,
    ),
    Case(
        "int16",
        [tensor([[-32768, -32768, 5], [1, 2, 3]], np.int16, scale=0.5), const([1])],
        [tensor([-21844, 2], np.int16, scale=0.5)],
        DROP,
        3,
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


def test_float16() -> None:
    case = Case("", [tensor([1, 2], np.float16), const([0])], [tensor(0, np.float16)], DROP)
    np.testing.assert_array_equal(output_of(op, case), np.float16(1.5))


@pytest.mark.parametrize(
    ("message", "case_"),
    [
        ("axis 2 is not within an input of 2 dimensions", Case("", [tensor(X), const([2])], [tensor([0])], DROP)),
        ("axis -3 is not within", Case("", [tensor(X), const([-3])], [tensor([0])], DROP)),
        ("axes must be int32, got int64", Case("", [tensor(X), const([0], np.int64)], [tensor([0])], DROP)),
        ("output must be float32, got int32", Case("", [tensor(X), const([0])], [tensor([0], np.int32)], DROP)),
        (
            "int16 needs zero points of 0, got 1 and 0",
            Case("", [tensor(X, np.int16, scale=1, zero_point=1), const([0])], [tensor([0], np.int16, scale=1)], DROP),
        ),
        ("got bool", Case("", [tensor(X, np.bool_), const([0])], [tensor([0], np.bool_)], DROP)),
        (
            "input of type int8 needs one finite scale",
            Case("", [tensor(X, np.int8), const([0])], [tensor([0], np.int8)], DROP),
        ),
    ],
)
def test_refuses(message: str, case_: Case) -> None:
    assert_refused(op, case_, message)
