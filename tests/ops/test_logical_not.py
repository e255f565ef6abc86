"""LOGICAL_NOT: the truth table, types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.logical_not import op
from gossamer.schema import LogicalNotOptions
from tests.ops.cases import Case, run_case, tensor
from tests.ops.reference import assert_refused

CASES = [
    Case("table", [tensor([[True], [False]], np.bool_)], [tensor([[False], [True]], np.bool_)], LogicalNotOptions()),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


@pytest.mark.parametrize(
    ("message", "case_"),
    [
        ("x must be bool, got int32", Case("", [tensor(1, np.int32)], [tensor(1, np.bool_)])),
    ],
)
def test_refuses(message: str, case_: Case) -> None:
    assert_refused(op, case_, message)
