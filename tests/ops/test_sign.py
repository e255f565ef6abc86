"""SIGN: floats and int32, NaN."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.sign import op
from gossamer.schema import SignOptions
from tests.ops.cases import Case, run_case, tensor
from tests.ops.reference import assert_refused

CASES = [
    Case("float32", [tensor([-1.5, -0.0, 0.5, np.nan, -np.inf])], [tensor([-1, 0, 1, np.nan, -1])], SignOptions()),
    Case("float64", [tensor([-1.5, 3], np.float64)], [tensor([-1, 1], np.float64)], SignOptions()),
    Case("int32", [tensor([-5, 0, 5], np.int32)], [tensor([-1, 0, 1], np.int32)], SignOptions()),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


@pytest.mark.parametrize(
    ("message", "case_"),
    [
        ("got int8", Case("", [tensor([1], np.int8)], [tensor([1], np.int8)])),
    ],
)
def test_refuses(message: str, case_: Case) -> None:
    assert_refused(op, case_, message)
