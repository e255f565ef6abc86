"""REDUCE_ANY: axes and nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.reduce_any import op
from gossamer.schema import ReducerOptions
from tests.ops.cases import Case, const, run_case, tensor
from tests.ops.reference import assert_refused

X = [[False, True], [False, False]]
KEEP, DROP = ReducerOptions(keep_dims=True), ReducerOptions()

CASES = [
    Case("rows", [tensor(X, np.bool_), const([1])], [tensor([True, False], np.bool_)], DROP),
    Case("columns_kept", [tensor(X, np.bool_), const([0])], [tensor([[False, True]], np.bool_)], KEEP),
    Case("all", [tensor(X, np.bool_), const([0, 1])], [tensor(True, np.bool_)], DROP),
    Case("axes_fed", [tensor(X, np.bool_), tensor([-1], np.int32)], [tensor([True, False], np.bool_)], DROP),
    Case("scalar", [tensor(True, np.bool_), const([0])], [tensor(True, np.bool_)], DROP),
    Case("nothing", [tensor(np.zeros((2, 0)), np.bool_), const([1])], [tensor([False, False], np.bool_)], DROP),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


@pytest.mark.parametrize(
    ("message", "case_"),
    [
        (
            "axis 2 is not within an input of 2 dimensions",
            Case("", [tensor(X, np.bool_), const([2])], [tensor([0], np.bool_)], DROP),
        ),
        ("x must be bool, got int32", Case("", [tensor(X, np.int32), const([0])], [tensor([0], np.bool_)], DROP)),
    ],
)
def test_refuses(message: str, case_: Case) -> None:
    assert_refused(op, case_, message)
