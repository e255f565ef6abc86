"""SELECT: the three shapes of a condition, single elements."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.select import op
from gossamer.schema import SelectOptions
from tests.ops.cases import Case, Operand, run_case, tensor
from tests.ops.reference import assert_refused

_SQUARES = [tensor(np.zeros((2, 2))), tensor(np.ones((2, 2)))]


def _condition(values: Any) -> Operand:
    return tensor(values, np.bool_)


CASES = [
    Case(
        "same_shape",
        [_condition([[True, False]]), tensor([[1, 2]]), tensor([[3, 4]])],
        [tensor([[1, 4]])],
        SelectOptions(),
    ),
    Case("scalar", [_condition(False), tensor([1, 2]), tensor([3, 4])], [tensor([3, 4])], SelectOptions()),
    Case(
        "rows",
        [_condition([True, False]), tensor([[1, 2], [3, 4]]), tensor([[5, 6], [7, 8]])],
        [tensor([[1, 2], [7, 8]])],
        SelectOptions(),
    ),
    Case("single_elements", [_condition([[True]]), tensor([1]), tensor(2)], [tensor([[[1]]])], SelectOptions()),
    Case(
        "int64",
        [_condition([True, False]), tensor([1, 2], np.int64), tensor([3, 4], np.int64)],
        [tensor([1, 4], np.int64)],
        SelectOptions(),
    ),
    Case(
        "complex",
        [_condition([True, False]), tensor([1j, 2], np.complex64), tensor([3, 4j], np.complex64)],
        [tensor([1j, 4j], np.complex64)],
        SelectOptions(),
    ),
    Case("empty", [_condition([]), tensor([]), tensor([])], [tensor([])], SelectOptions()),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


@pytest.mark.parametrize(
    ("message", "case_"),
    [
        (
            "x and y must have the same shape, got [2] and [1]",
            Case("", [_condition([True, False]), tensor([1, 2]), tensor([1])], [tensor([0, 0])]),
        ),
        (
            "condition must have the shape of x [2, 2]",
            Case("", [_condition([[True, False]]), *_SQUARES], [tensor(np.zeros((2, 2)))]),
        ),
        (
            "x and y must have the same type, got float32 and int32",
            Case("", [_condition(True), tensor(1), tensor(1, np.int32)], [tensor(1)]),
        ),
        ("condition must be bool, got int32", Case("", [tensor(1, np.int32), tensor(1), tensor(1)], [tensor(1)])),
        (
            "got string",
            Case("", [_condition([True]), tensor([b"a"], object), tensor([b"b"], object)], [tensor([b""], object)]),
        ),
    ],
)
def test_refuses(message: str, case_: Case) -> None:
    assert_refused(op, case_, message)
