"""LEAKY_RELU: both branches, alphas of both signs, rescaling."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.leaky_relu import op
from gossamer.schema import LeakyReluOptions
from tests.ops.cases import Case, run_case, tensor
from tests.ops.reference import assert_refused, output_of

QS = [-128, -100, -60, -20, -5, 0, 3, 12, 50, 127]
WS = [-32768, -20000, -6000, -700, -1, 0, 2, 900, 9000, 32767]

CASES = [
    Case("float", [tensor([-4, 0, 3, np.nan])], [tensor([-1, 0, 3, np.nan])], LeakyReluOptions(alpha=0.25)),
    Case("alpha_above_1", [tensor([-4, 3])], [tensor([-8, 3])], LeakyReluOptions(alpha=2)),
    Case("no_alpha", [tensor([-4, 3])], [tensor([0, 3])], LeakyReluOptions()),
    Case(
        "int8",
        [tensor(QS, np.int8, scale=0.5, zero_point=-5)],
        [tensor([-35, -29, -21, -13, -10, 0, 6, 24, 100, 127], np.int8, scale=0.25, zero_point=-10)],
        LeakyReluOptions(alpha=0.1),
        version=2,
    ),
    Case(
        "int8_negative_alpha",
        [tensor(QS, np.int8, scale=0.5, zero_point=-5)],
        [tensor([51, 37, 17, -3, -10, -5, -2, 7, 45, 122], np.int8, scale=0.5, zero_point=-10)],
        LeakyReluOptions(alpha=-0.5),
        version=2,
        default=[tensor([52, 38, 18, -2, -10, -5, -2, 7, 45, 122], np.int8, scale=0.5, zero_point=-10)],
    ),
    Case(
        "uint8",
        [tensor([0, 100, 104, 255], np.uint8, scale=0.5, zero_point=100)],
        [tensor([75, 100, 104, 255], np.uint8, scale=0.5, zero_point=100)],
        LeakyReluOptions(alpha=0.25),
    ),
    Case(
        "int16",
        [tensor(WS, np.int16, scale=2**-12)],
        [tensor([-8192, -5000, -1500, -175, 0, 0, 2, 900, 9000, 32767], np.int16, scale=2**-12)],
        LeakyReluOptions(alpha=0.25),
        version=2,
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


def test_float16() -> None:
    case = Case("", [tensor([-4, 3], np.float16)], [tensor([0, 0], np.float16)], LeakyReluOptions(alpha=0.25))
    np.testing.assert_array_equal(output_of(op, case), np.array([-1, 3], np.float16))


@pytest.mark.parametrize(
    ("message", "case_"),
    [
        (
            "int16 needs zero points of 0",
            Case("", [tensor([1], np.int16, scale=1, zero_point=1)], [tensor([1], np.int16, scale=1)]),
        ),
        ("output must be float32, got int8", Case("", [tensor([1])], [tensor([1], np.int8, scale=1)])),
        ("got int32", Case("", [tensor([1], np.int32)], [tensor([1], np.int32)])),
    ],
)
def test_refuses(message: str, case_: Case) -> None:
    assert_refused(op, case_, message)
