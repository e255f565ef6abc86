"""L2_NORMALIZATION: floats and the Newton steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.l2_normalization import op
from gossamer.schema import ActivationFunctionType, L2NormOptions
from tests.ops.cases import Case, run_case, tensor
from tests.ops.reference import assert_refused

NONE = L2NormOptions()

CASES = [
    Case("float", [tensor([[3, 4], [0, 0], [0, -1e-20]])], [tensor([[0.6, 0.8], [0, 0], [0, -1e-14]])], NONE, atol=0),
    Case("nan", [tensor([1, np.nan])], [tensor([np.nan, np.nan])], NONE),
    Case("no_columns", [tensor(np.zeros((3, 0)))], [tensor(np.zeros((3, 0)))], NONE),
    Case(
        "int8",
        [tensor([[3, 4, 0], [0, 0, 0], [1, 0, 0], [-100, 100, 127]], np.int8, scale=1)],
        [tensor([[77, 102, 0], [0, 0, 0], [127, 0, 0], [-67, 67, 86]], np.int8, scale=1 / 128)],
        NONE,
        2,
    ),
    Case(
        "uint8",
        [tensor([[131, 124, 128], [128, 128, 128], [0, 255, 200]], np.uint8, scale=0.1, zero_point=128)],
        [tensor([[205, 26, 128], [128, 128, 128], [44, 212, 175]], np.uint8, scale=1 / 128, zero_point=128)],
        NONE,
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


@pytest.mark.parametrize(
    ("message", "case_"),
    [
        ("at least 1 dimension", Case("", [tensor(1)], [tensor(1)], NONE)),
        (
            "has no fused activation",
            Case(
                "", [tensor([1])], [tensor([1])], L2NormOptions(fused_activation_function=ActivationFunctionType.RELU)
            ),
        ),
        (
            "a scale of 1/128 and a zero point of 128, got 0.0078125 and 0",
            Case("", [tensor([1], np.uint8, scale=1)], [tensor([1], np.uint8, scale=1 / 128)], NONE),
        ),
        ("got int16", Case("", [tensor([1], np.int16)], [tensor([1], np.int16)], NONE)),
    ],
)
def test_refuses(message: str, case_: Case) -> None:
    assert_refused(op, case_, message)
