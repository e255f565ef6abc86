"""LOGICAL_AND: the truth table, types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.logical_and import op
from gossamer.schema import LogicalAndOptions
from tests.ops.cases import Case, run_case, tensor
from tests.ops.reference import assert_refused

CASES = [
    Case(
        "table",
        [tensor([[True], [False]], np.bool_), tensor([True, False], np.bool_)],
        [tensor([[True, False], [False, False]], np.bool_)],
        LogicalAndOptions(),
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


@pytest.mark.parametrize(
    ("message", "case_"),
    [
        ("y must be bool, got float32", Case("", [tensor(1, np.bool_), tensor(1)], [tensor(1, np.bool_)])),
        ("x must be bool, got float32", Case("", [tensor(1), tensor(1)], [tensor(1, np.bool_)])),
    ],
)
def test_refuses(message: str, case_: Case) -> None:
    assert_refused(op, case_, message)
