"""SQUARED_DIFFERENCE: wrapping and int8."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.squared_difference import op
from gossamer.schema import SquaredDifferenceOptions
from tests.ops.cases import Case, run_case, tensor
from tests.ops.reference import assert_refused, output_of

CASES = [
    Case("broadcast", [tensor([[1], [2]]), tensor([1, 4])], [tensor([[0, 9], [1, 4]])], SquaredDifferenceOptions()),
    Case(
        "int32_wraps",
        [tensor([65536, 3], np.int32), tensor([-1, 5], np.int32)],
        [tensor([131073, 4], np.int32)],
        SquaredDifferenceOptions(),
    ),
    Case(
        "int8",
        [tensor([10, -20, 127], np.int8, scale=0.5, zero_point=2), tensor([4, 8, -128], np.int8, scale=0.25)],
        [tensor([4, 84, 127], np.int8, scale=2, zero_point=-1)],
        SquaredDifferenceOptions(),
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


@pytest.mark.parametrize(
    ("message", "case_"),
    [
        (
            "zero points must be -128 to 127, got 128",
            Case(
                "",
                [tensor([1], np.int8, scale=1, zero_point=128), tensor([1], np.int8, scale=1)],
                [tensor([1], np.int8, scale=1)],
            ),
        ),
        ("got int16", Case("", [tensor([1], np.int16), tensor([1], np.int16)], [tensor([1], np.int16)])),
    ],
)
def test_refuses(message: str, case_: Case) -> None:
    assert_refused(op, case_, message)


def test_float16() -> None:
    case = Case("", [tensor([1, 5], np.float16), tensor([3], np.float16)], [tensor([0, 0], np.float16)])
    assert output_of(op, case).tolist() == [4, 4]
