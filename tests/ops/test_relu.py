"""RELU: the clamp from below, rescaling, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.relu import op
from tests.ops.cases import Case, run_case, tensor
from tests.ops.reference import assert_refused, output_of

QS = [-128, -100, -60, -20, -5, 0, 3, 12, 50, 127]
US = [0, 28, 68, 108, 123, 128, 131, 140, 178, 255]
WS = [-32768, -20000, -6000, -700, -1, 0, 2, 900, 9000, 32767]

CASES = [
    Case(
        "float",
        [tensor([-np.inf, -7, -1.5, -0.5, 0, 0.5, 1.5, 7, np.inf, np.nan])],
        [tensor([0, 0, 0, 0, 0, 0.5, 1.5, 7, np.inf, np.nan])],
    ),
    Case("scalar", [tensor(0.25)], [tensor(0.25)]),
    Case("empty", [tensor(np.zeros((2, 0)))], [tensor(np.zeros((2, 0)))]),
    # The input's zero point becomes the output's; a step of the input is two of the output.
    Case(
        "int8",
        [tensor(QS, np.int8, scale=0.5, zero_point=-5)],
        [tensor([-10, -10, -10, -10, -10, 0, 6, 24, 100, 127], np.int8, scale=0.25, zero_point=-10)],
        version=2,
    ),
    Case(
        "uint8",
        [tensor(US, np.uint8, scale=0.05, zero_point=128)],
        [tensor([0, 0, 0, 0, 0, 0, 2, 6, 25, 64], np.uint8, scale=0.1)],
    ),
    Case(
        "int16",
        [tensor(WS, np.int16, scale=2**-12)],
        [tensor([0, 0, 0, 0, 0, 0, 4, 1800, 18000, 32767], np.int16, scale=2**-13)],
        version=3,
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


def test_float16() -> None:
    case = Case("", [tensor([-2, 0.5, 9], np.float16)], [tensor([0, 0, 0], np.float16)])
    np.testing.assert_array_equal(output_of(op, case), np.array([0, 0.5, 9], np.float16))


@pytest.mark.parametrize(
    ("message", "case_"),
    [
        ("must be float32, float16, uint8", Case("", [tensor([1], np.int32)], [tensor([1], np.int32)])),
        ("output must be int8, got float32", Case("", [tensor([1], np.int8, scale=1)], [tensor([1])])),
        ("needs one finite scale above 0", Case("", [tensor([1], np.int8)], [tensor([1], np.int8)])),
        (
            "int16 needs zero points of 0",
            Case("", [tensor([1], np.int16, scale=1, zero_point=1)], [tensor([1], np.int16, scale=1)]),
        ),
    ],
)
def test_refuses(message: str, case_: Case) -> None:
    assert_refused(op, case_, message)
