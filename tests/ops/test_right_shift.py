"""RIGHT_SHIFT: sign, clamped shifts, all integer types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.right_shift import op
from gossamer.schema import RightShiftOptions
from tests.ops.cases import Case, run_case, tensor
from tests.ops.reference import assert_refused

CASES = [
    Case(
        "int8",
        [tensor([-128, 100, 100, -1], np.int8), tensor([100, -1, 3, 1], np.int8)],
        [tensor([-1, 100, 12, -1], np.int8)],
        RightShiftOptions(),
    ),
    Case(
        "uint8",
        [tensor([255, 255], np.uint8), tensor([4, 200], np.uint8)],
        [tensor([15, 1], np.uint8)],
        RightShiftOptions(),
    ),
    Case(
        "int16",
        [tensor([-256], np.int16), tensor([[4], [20]], np.int16)],
        [tensor([[-16], [-1]], np.int16)],
        RightShiftOptions(),
    ),
    Case(
        "uint16", [tensor([65535], np.uint16), tensor([15], np.uint16)], [tensor([1], np.uint16)], RightShiftOptions()
    ),
    Case(
        "int32", [tensor([-(2**31)], np.int32), tensor([31], np.int32)], [tensor([-1], np.int32)], RightShiftOptions()
    ),
    Case(
        "uint32",
        [tensor([2**32 - 1], np.uint32), tensor([31], np.uint32)],
        [tensor([1], np.uint32)],
        RightShiftOptions(),
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


@pytest.mark.parametrize(
    ("message", "case_"),
    [
        ("got float32", Case("", [tensor(1), tensor(1)], [tensor(1)])),
    ],
)
def test_refuses(message: str, case_: Case) -> None:
    assert_refused(op, case_, message)
