"""STABLEHLO_SHIFT_LEFT: bits that fall off, shifts beyond the type."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.stablehlo_shift_left import op
from tests.ops.cases import Case, run_case, tensor
from tests.ops.reference import assert_refused

CASES = [
    Case(
        "int32",
        [tensor([1, 3, 1, 1], np.int32), tensor([5, 31, 32, 33], np.int32)],
        [tensor([32, -(2**31), 1, 2], np.int32)],
    ),
    Case("int16", [tensor([1, -3], np.int16), tensor([15, 1], np.int16)], [tensor([-32768, -6], np.int16)]),
    Case("int8", [tensor([1, 1, 1, 1], np.int8), tensor([7, 8, 33, -1], np.int8)], [tensor([-128, 0, 2, 0], np.int8)]),
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
            "got complex64",
            Case("", [tensor([1], np.complex64), tensor([1], np.complex64)], [tensor([1], np.complex64)]),
        ),
    ],
)
def test_refuses(message: str, case_: Case) -> None:
    assert_refused(op, case_, message)
