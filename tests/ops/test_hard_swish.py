"""HARD_SWISH: floats and the 16-bit arithmetic."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gossamer.ops.hard_swish import op
from gossamer.schema import HardSwishOptions
from tests.ops.cases import Case, run_case, tensor
from tests.ops.reference import assert_refused, output_of

QS = [-128, -100, -60, -20, -5, 0, 3, 12, 50, 127]
US = [0, 28, 68, 108, 123, 128, 131, 140, 178, 255]

CASES = [
    Case(
        "float",
        [tensor([-np.inf, -4, -3, -1.5, 0, 1.5, 3, 5, np.inf])],
        [tensor([np.nan, 0, 0, -0.375, 0, 1.125, 3, 5, np.inf])],
    ),
    Case(
        "int8",
        [tensor(QS, np.int8, scale=0.06, zero_point=-5)],
        [tensor([-100, -100, -100, -111, -100, -95, -91, -77, 10, 127], np.int8, scale=0.03, zero_point=-100)],
    ),
    Case(
        "uint8",
        [tensor(US, np.uint8, scale=0.02, zero_point=128)],
        [tensor([0, 0, 0, 0, 1, 3, 5, 9, 36, 120], np.uint8, scale=0.02, zero_point=3)],
    ),
    # 2.0 is far beyond 3 in a few steps: the relu-ish factor saturates.
    Case(
        "int8_coarse",
        [tensor(QS, np.int8, scale=2)],
        [tensor([-1, -1, -1, -1, -1, -1, 1, 7, 32, 84], np.int8, scale=3, zero_point=-1)],
    ),
]
CASES = [replace(case, options=HardSwishOptions()) for case in CASES]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


def test_float16() -> None:
    case = Case("", [tensor([-1.5, 1.5], np.float16)], [tensor([0, 0], np.float16)])
    np.testing.assert_array_equal(output_of(op, case), np.array([-0.375, 1.125], np.float16))


@pytest.mark.parametrize(
    ("message", "case_"),
    [
        (
            "the output's scale is too small",
            Case("", [tensor([1], np.int8, scale=1)], [tensor([1], np.int8, scale=0.005)]),
        ),
        ("got int16", Case("", [tensor([1], np.int16, scale=1)], [tensor([1], np.int16, scale=1)])),
    ],
)
def test_refuses(message: str, case_: Case) -> None:
    assert_refused(op, case_, message)
