"""REAL: both complex types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.real import op
from tests.ops.cases import Case, run_case, tensor
from tests.ops.reference import assert_refused

COMPLEX = (np.arange(90) - 1j * np.arange(90, 180)).astype(np.complex64).reshape(3, 30)

CASES = [
    Case("complex64", [tensor([3 + 4j, -1], np.complex64)], [tensor([3, -1])]),
    Case("matrix", [tensor(COMPLEX[:, ::2], np.complex64)], [tensor(COMPLEX[:, ::2].real)]),
    Case("nothing", [tensor(COMPLEX[:0], np.complex64)], [tensor(COMPLEX[:0].real)]),
    Case("complex128", [tensor([3 + 4j, -1], np.complex128)], [tensor([3, -1], np.float64)]),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


@pytest.mark.parametrize(
    ("message", "case_"),
    [
        ("output must be float32, got float64", Case("", [tensor([1], np.complex64)], [tensor([1], np.float64)])),
        ("x must be complex64 or complex128, got float32", Case("", [tensor([1])], [tensor([1])])),
    ],
)
def test_refuses(message: str, case_: Case) -> None:
    assert_refused(op, case_, message)
