"""ABS: least integers, quantised types with and without rescaling."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.abs import op
from gossamer.schema import AbsOptions
from tests.ops.cases import Case, run_case, tensor
from tests.ops.reference import assert_refused, output_of

CASES = [
    Case("float32", [tensor([-1.5, 0, 2])], [tensor([1.5, 0, 2])], AbsOptions()),
    Case("int32", [tensor([-5, 5, -(2**31)], np.int32)], [tensor([5, 5, -(2**31)], np.int32)], AbsOptions()),
    Case("int16_plain", [tensor([-5, -32768], np.int16)], [tensor([5, -32768], np.int16)], AbsOptions()),
    Case(
        "int16",
        [tensor([-5, 7, -32768], np.int16, scale=0.5)],
        [tensor([10, 14, 32767], np.int16, scale=0.25)],
        AbsOptions(),
    ),
    Case(
        "int8_same_scale",
        [tensor([-128, -3, 127], np.int8, scale=0.5, zero_point=-3)],
        [tensor([124, -1, 127], np.int8, scale=0.5, zero_point=-1)],
        AbsOptions(),
    ),
    Case(
        "int8",
        [tensor([-128, -3, 127], np.int8, scale=0.5, zero_point=-3)],
        [tensor([22, -10, 23], np.int8, scale=2, zero_point=-10)],
        AbsOptions(),
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


@pytest.mark.parametrize(
    ("message", "case_"),
    [
        (
            "input of type int8 needs one finite scale above 0, got none",
            Case("", [tensor([1], np.int8)], [tensor([1], np.int8)]),
        ),
        ("output of type int8 needs", Case("", [tensor([1], np.int8, scale=1)], [tensor([1], np.int8)])),
        (
            "int16 needs zero points of 0, got 1, 0",
            Case("", [tensor([1], np.int16, scale=1, zero_point=1)], [tensor([1], np.int16, scale=1)]),
        ),
        ("output must be float32, got int32", Case("", [tensor([1])], [tensor([1], np.int32)])),
        ("got uint8", Case("", [tensor([1], np.uint8, scale=1)], [tensor([1], np.uint8, scale=1)])),
    ],
)
def test_refuses(message: str, case_: Case) -> None:
    assert_refused(op, case_, message)


def test_float16() -> None:
    case = Case("", [tensor([-1.5, 2], np.float16)], [tensor([1.5, 2], np.float16)])
    np.testing.assert_allclose(output_of(op, case), case.outputs[0].value, rtol=1e-3)
