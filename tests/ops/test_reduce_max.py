"""REDUCE_MAX: axes, types, what NaN and nothing give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.reduce_max import op
from gossamer.schema import ReducerOptions
from tests.ops.cases import Case, const, run_case, tensor
from tests.ops.reference import assert_refused, output_of

X = [[1, -2, 3], [4, 5, -6]]
KEEP, DROP = ReducerOptions(keep_dims=True), ReducerOptions()

CASES = [
    Case("rows", [tensor(X), const([1])], [tensor([3, 5])], DROP),
    Case("columns_kept", [tensor(X), const([-2])], [tensor([[4, 5, 3]])], KEEP),
    Case("all", [tensor(X), const([0, 1])], [tensor(5)], DROP),
    Case("twice", [tensor(X), const([1, -1])], [tensor([3, 5])], DROP),
    Case("no_axes", [tensor(X), const([], np.int32)], [tensor(X)], DROP),
    Case("axes_fed", [tensor(X), tensor([1], np.int32)], [tensor([3, 5])], DROP),
    Case("scalar", [tensor(5), const([7])], [tensor(5)], DROP),
    Case(
        "nothing",
        [tensor(np.zeros((2, 0))), const([1])],
        [tensor([np.finfo(np.float32).min, np.finfo(np.float32).min])],
        DROP,
    ),
    Case("int32", [tensor(X, np.int32), const([1])], [tensor([3, 5], np.int32)], DROP),
    Case("int64", [tensor(X, np.int64), const([0, 1])], [tensor(5, np.int64)], DROP),
    Case("bool", [tensor([[0, 1], [0, 0]], np.bool_), const([1])], [tensor([1, 0], np.bool_)], DROP),
    Case("nan", [tensor([[1, np.nan, 3], [np.nan, 2, np.nan]]), const([1])], [tensor([3, 2])], DROP),
    Case(
        "int8",
        [tensor(X, np.int8, scale=0.5, zero_point=3), const([1])],
        [tensor([3, 5], np.int8, scale=0.5, zero_point=3)],
        DROP,
        2,
    ),
    Case(
        "nothing_uint8",
        [tensor(np.zeros((1, 0)), np.uint8, scale=1), const([1])],
        [tensor([0], np.uint8, scale=1)],
        DROP,
        2,
    ),
    Case("int16", [tensor(X, np.int16, scale=1), const([1])], [tensor([3, 5], np.int16, scale=1)], DROP, 3),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


def test_only_infinities() -> None:
    # LiteRT's reference kernel gives its start, the least finite number.
    case = Case("", [tensor([[-np.inf]]), const([1])], [tensor([0])], DROP)
    np.testing.assert_array_equal(output_of(op, case), np.float32([-np.inf]))


@pytest.mark.parametrize(
    ("message", "case_"),
    [
        ("axis 2 is not within an input of 2 dimensions", Case("", [tensor(X), const([2])], [tensor([0])], DROP)),
        ("axis -3 is not within", Case("", [tensor(X), const([-3])], [tensor([0])], DROP)),
        ("axes must be int32, got int64", Case("", [tensor(X), const([0], np.int64)], [tensor([0])], DROP)),
        ("output must be float32, got int32", Case("", [tensor(X), const([0])], [tensor([0], np.int32)], DROP)),
        (
            "must have one scale and zero point",
            Case("", [tensor(X, np.int8, scale=1), const([0])], [tensor([0], np.int8, scale=0.5)], DROP),
        ),
    ],
)
def test_refuses(message: str, case_: Case) -> None:
    assert_refused(op, case_, message)
