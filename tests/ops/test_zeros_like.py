"""ZEROS_LIKE: types and shapes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.zeros_like import op
from gossamer.schema import ZerosLikeOptions
from tests.ops.cases import Case, run_case, tensor
from tests.ops.reference import assert_refused

CASES = [
    Case("float32", [tensor([[1, np.nan]])], [tensor([[0, 0]])], ZerosLikeOptions()),
    Case("int32", [tensor(3, np.int32)], [tensor(0, np.int32)], ZerosLikeOptions()),
    Case("int64", [tensor([3], np.int64)], [tensor([0], np.int64)], ZerosLikeOptions()),
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
