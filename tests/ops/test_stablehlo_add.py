"""STABLEHLO_ADD: wrapping, booleans."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.stablehlo_add import op
from tests.ops.cases import Case, run_case, tensor
from tests.ops.reference import assert_refused

CASES = [
    Case("float32", [tensor([1, 3e38]), tensor([2, 3e38])], [tensor([3, np.inf])]),
    Case("int8_wraps", [tensor([100, 3], np.int8), tensor([100, -5], np.int8)], [tensor([-56, -2], np.int8)]),
    Case("uint64", [tensor([2**63], np.uint64), tensor([5], np.uint64)], [tensor([2**63 + 5], np.uint64)]),
    Case(
        "bool",
        [tensor([True, True, False, False], np.bool_), tensor([True, False, True, False], np.bool_)],
        [tensor([True, True, True, False], np.bool_)],
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
