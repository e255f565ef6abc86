"""STABLEHLO_MULTIPLY: wrapping, booleans."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.stablehlo_multiply import op
from tests.ops.cases import Case, run_case, tensor
from tests.ops.reference import assert_refused

CASES = [
    Case("float64", [tensor([1.5], np.float64), tensor([2], np.float64)], [tensor([3], np.float64)]),
    Case("int8_wraps", [tensor([100, 3], np.int8), tensor([3, -5], np.int8)], [tensor([44, -15], np.int8)]),
    Case(
        "bool",
        [tensor([True, True, False, False], np.bool_), tensor([True, False, True, False], np.bool_)],
        [tensor([True, False, False, False], np.bool_)],
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


@pytest.mark.parametrize(
    ("message", "case_"),
    [
        (
            "inputs must have the same shape, got [2] and [1]",
            Case("", [tensor([1, 2], np.int8), tensor([1], np.int8)], [tensor([1, 2], np.int8)]),
        ),
        (
            "same type, got int8 and int16",
            Case("", [tensor([1], np.int8), tensor([1], np.int16)], [tensor([1], np.int8)]),
        ),
        (
            "output must be int8, got int16",
            Case("", [tensor([1], np.int8), tensor([1], np.int8)], [tensor([1], np.int16)]),
        ),
        (
            "got complex64",
            Case("", [tensor([1], np.complex64), tensor([1], np.complex64)], [tensor([1], np.complex64)]),
        ),
    ],
)
def test_refuses(message: str, case_: Case) -> None:
    assert_refused(op, case_, message)
