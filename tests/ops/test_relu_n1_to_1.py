"""RELU_N1_TO_1: both clamps, rescaling, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.relu_n1_to_1 import op
from tests.ops.cases import Case, run_case, tensor
from tests.ops.reference import assert_refused, output_of

QS = [-128, -100, -60, -20, -5, 0, 3, 12, 50, 127]
US = [0, 28, 68, 108, 123, 128, 131, 140, 178, 255]

CASES = [
    Case(
        "float",
        [tensor([-np.inf, -7, -1.5, -0.5, 0, 0.5, 1.5, 7, np.inf, np.nan])],
        [tensor([-1, -1, -1, -0.5, 0, 0.5, 1, 1, 1, np.nan])],
    ),
    Case("scalar", [tensor(0.25)], [tensor(0.25)]),
    Case("empty", [tensor(np.zeros((2, 0)))], [tensor(np.zeros((2, 0)))]),
    Case(
        "int8",
        [tensor(QS, np.int8, scale=0.02, zero_point=3)],
        [tensor([-128, -128, -128, -59, -20, -8, 0, 23, 120, 127], np.int8, scale=1 / 128)],
    ),
    Case(
        "uint8",
        [tensor(US, np.uint8, scale=0.02, zero_point=128)],
        [tensor([1, 1, 1, 77, 115, 128, 136, 159, 255, 255], np.uint8, scale=2 / 255, zero_point=128)],
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


def test_float16() -> None:
    case = Case("", [tensor([-2, 0.5, 9], np.float16)], [tensor([0, 0, 0], np.float16)])
    np.testing.assert_array_equal(output_of(op, case), np.array([-1, 0.5, 1], np.float16))


@pytest.mark.parametrize(
    ("message", "case_"),
    [
        ("must be float32, float16, uint8", Case("", [tensor([1], np.int32)], [tensor([1], np.int32)])),
        ("output must be int8, got float32", Case("", [tensor([1], np.int8, scale=1)], [tensor([1])])),
        ("needs one finite scale above 0", Case("", [tensor([1], np.int8)], [tensor([1], np.int8)])),
    ],
)
def test_refuses(message: str, case_: Case) -> None:
    assert_refused(op, case_, message)
