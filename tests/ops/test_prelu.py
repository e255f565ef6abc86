"""PRELU: alpha broadcasts, both branches, rescaling."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.prelu import op
from tests.ops.cases import Case, const, run_case, tensor
from tests.ops.reference import assert_refused, output_of

X = [[-4, 0, 3], [2, -1, -2]]

CASES = [
    Case("per_channel", [tensor(X), const([0.5, 2, -1], np.float32)], [tensor([[-2, 0, 3], [2, -2, 2]])]),
    Case("scalar", [tensor(X), const(0.5, np.float32)], [tensor([[-2, 0, 3], [2, -0.5, -1]])]),
    Case("alpha_fed", [tensor(X), tensor([[10], [1]])], [tensor([[-40, 0, 3], [2, -1, -2]])]),
    Case("same_shape", [tensor([-1, -1]), const([3, 4], np.float32)], [tensor([-3, -4])]),
    Case("nan", [tensor([np.nan]), const([3], np.float32)], [tensor([np.nan])]),
    # (-4 - 1) * (6 - 2) * 0.5 * 0.25 / 1 = -2.5, away from zero: -3, and 7 added.
    Case(
        "int8",
        [
            tensor([-4, 1, 4, -8], np.int8, scale=0.5, zero_point=1),
            const([6, 6, 6, -6], np.int8, scale=0.25, zero_point=2),
        ],
        [tensor([4, 7, 9, 16], np.int8, scale=1, zero_point=7)],
    ),
    Case(
        "uint8",
        [
            tensor([0, 128, 255], np.uint8, scale=0.5, zero_point=128),
            const([192], np.uint8, scale=1 / 128, zero_point=128),
        ],
        [tensor([64, 128, 255], np.uint8, scale=0.5, zero_point=128)],
    ),
    Case(
        "int16_with_int8_alpha",
        [tensor([[-20000, 0, 20000]], np.int16, scale=2**-12), const([[32]], np.int8, scale=1 / 128)],
        [tensor([[-5000, 0, 20000]], np.int16, scale=2**-12)],
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


def test_alpha_of_int16_is_int16() -> None:
    # LiteRT takes its bytes for int8.
    x, alpha = tensor([-20000, 20000], np.int16, scale=1), const([8192], np.int16, scale=2**-15)
    case = Case("", [x, alpha], [tensor([0, 0], np.int16, scale=1)])
    np.testing.assert_array_equal(output_of(op, case), np.int16([-5000, 20000]))


@pytest.mark.parametrize(
    ("message", "case_"),
    [
        ("shapes [2, 3] and [2] do not broadcast", Case("", [tensor(X), const([1, 2], np.float32)], [tensor(X)])),
        (
            "alpha [2, 1] must broadcast to x [3], together they give [2, 3]",
            Case("", [tensor([1, 2, 3]), const([[1], [2]], np.float32)], [tensor(X)]),
        ),
        (
            "alpha must be of x's type float32, got int8",
            Case("", [tensor(X), const([1], np.int8, scale=1)], [tensor(X)]),
        ),
        (
            "alpha of type int8 needs one finite scale",
            Case("", [tensor([1], np.int8, scale=1), const([1], np.int8)], [tensor([1], np.int8, scale=1)]),
        ),
    ],
)
def test_refuses(message: str, case_: Case) -> None:
    assert_refused(op, case_, message)
