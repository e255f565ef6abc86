"""LOG_SOFTMAX: rows, fixed point, what outputs must look like."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.log_softmax import op
from tests.ops.cases import Case, run_case, tensor
from tests.ops.reference import assert_refused

CASES = [
    Case("float", [tensor([[0, np.log(3)], [1000, 1000]])], [tensor(np.log([[0.25, 0.75], [0.5, 0.5]]))]),
    Case("far_apart", [tensor([0, 500, -1e30])], [tensor([-500, 0, -1e30])]),
    Case("no_columns", [tensor(np.zeros((3, 0)))], [tensor(np.zeros((3, 0)))]),
    Case(
        "int8",
        [tensor([[-128, -100, -60, -20, -5], [-20, -5, 0, 3, 12]], np.int8, scale=0.1, zero_point=3)],
        [tensor([[-73, -28, 36, 100, 124], [65, 89, 97, 102, 116]], np.int8, scale=1 / 16, zero_point=127)],
        version=2,
    ),
    # log(4) = 1.386 is 22 sixteenths; 127.5 under the greatest is out of range.
    Case(
        "uint8",
        [tensor([[0, 1, 2, 3], [10, 10, 10, 10], [0, 255, 0, 0]], np.uint8, scale=0.5)],
        [tensor([[218, 226, 234, 242], [233, 233, 233, 233], [0, 255, 0, 0]], np.uint8, scale=1 / 16, zero_point=255)],
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


@pytest.mark.parametrize(
    ("message", "case_"),
    [
        ("at least 1 dimension", Case("", [tensor(1)], [tensor(1)])),
        (
            "a scale of 1/16 and a zero point of 127, got 0.0625 and 0",
            Case("", [tensor([1], np.int8, scale=1)], [tensor([1], np.int8, scale=1 / 16)]),
        ),
        (
            "must be float32, uint8 or int8, got int16",
            Case("", [tensor([1], np.int16, scale=1)], [tensor([1], np.int16, scale=1)]),
        ),
        (
            "are too fine",
            Case("", [tensor([1], np.int8, scale=1e-8)], [tensor([1], np.int8, scale=1 / 16, zero_point=127)]),
        ),
    ],
)
def test_refuses(message: str, case_: Case) -> None:
    assert_refused(op, case_, message)
