"""ADD_N: many inputs, wrapping, scratch memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.add_n import op
from gossamer.schema import AddNOptions
from tests.ops.cases import Case, run_case, tensor
from tests.ops.reference import assert_refused

CASES = [
    Case("three", [tensor([1, 2]), tensor([3, 4]), tensor([5, 6])], [tensor([9, 12])], AddNOptions()),
    Case(
        "int32_wraps",
        [tensor([2**31 - 1], np.int32), tensor([1], np.int32)],
        [tensor([-(2**31)], np.int32)],
        AddNOptions(),
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


@pytest.mark.parametrize(
    ("message", "case_"),
    [
        ("needs 2 or more inputs, got 1", Case("", [tensor([1])], [tensor([1])])),
        (
            "input 1 must have the shape of input 0 [2], got [1]",
            Case("", [tensor([1, 2]), tensor([1])], [tensor([1, 2])]),
        ),
        ("same type, got float32 and int32", Case("", [tensor([1]), tensor([1], np.int32)], [tensor([1])])),
        ("got int64", Case("", [tensor([1], np.int64), tensor([1], np.int64)], [tensor([1], np.int64)])),
    ],
)
def test_refuses(message: str, case_: Case) -> None:
    assert_refused(op, case_, message)
