"""LOGISTIC: floats at their ends, the tables, what outputs must look like."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.dtypes import numpy_dtype
from gossamer.ops.logistic import op
from gossamer.schema import TensorType
from tests.ops.cases import Case, run_case, tensor
from tests.ops.reference import assert_refused, output_of

QS = [-128, -100, -60, -20, -5, 0, 3, 12, 50, 127]
US = [0, 28, 68, 108, 123, 128, 131, 140, 178, 255]
WS = [-32768, -20000, -6000, -700, -1, 0, 2, 900, 9000, 32767]

CASES = [
    Case("float", [tensor([0, np.log(3), -np.log(3)])], [tensor([0.5, 0.75, 0.25])]),
    Case(
        "float_ends",
        [tensor([-np.inf, -87, 100, np.inf, np.nan])],
        [tensor([0, np.exp(-87), 1, 1, np.nan])],
        rtol=1e-5,
        atol=1e-37,
    ),
    Case("float16", [tensor([0, 1, -20], np.float16)], [tensor([0.5, 0.731, 0], np.float16)], rtol=1e-3),
    Case("empty", [tensor(np.zeros((0, 3)))], [tensor(np.zeros((0, 3)))]),
    Case(
        "int8",
        [tensor(QS, np.int8, scale=0.05, zero_point=-5)],
        [tensor([-127, -126, -113, -46, 0, 16, 25, 51, 113, 127], np.int8, scale=1 / 256, zero_point=-128)],
        version=2,
    ),
    Case(
        "uint8",
        [tensor(US, np.uint8, scale=0.05, zero_point=128)],
        [tensor([0, 2, 12, 69, 112, 128, 138, 165, 237, 255], np.uint8, scale=1 / 256)],
    ),
    Case(
        "int16_power_of_two",
        [tensor(WS, np.int16, scale=2**-12)],
        [tensor([11, 247, 6151, 14987, 16382, 16384, 16388, 18177, 29491, 32757], np.int16, scale=2**-15)],
        version=3,
        default=[tensor([11, 243, 6147, 14989, 16383, 16384, 16388, 18174, 29488, 32756], np.int16)],
    ),
    Case(
        "int16",
        [tensor(WS, np.int16, scale=0.001)],
        [tensor([1, 1, 81, 10873, 16376, 16384, 16401, 23296, 32764, 32767], np.int16, scale=2**-15)],
        version=3,
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


@pytest.mark.parametrize(
    ("message", "case_"),
    [
        (
            "output needs a scale of 1/256, got 0.5",
            Case("", [tensor([1], np.int8, scale=1)], [tensor([1], np.int8, scale=0.5)]),
        ),
        (
            "int16 output needs a scale of 2**-15",
            Case("", [tensor([1], np.int16, scale=1)], [tensor([1], np.int16, scale=0.5)]),
        ),
        (
            "int16 needs zero points of 0",
            Case("", [tensor([1], np.int16, scale=1, zero_point=2)], [tensor([1], np.int16, scale=2**-15)]),
        ),
        (
            "input of type int8 needs one finite scale",
            Case("", [tensor([1], np.int8)], [tensor([1], np.int8, scale=1 / 256)]),
        ),
        (
            "must be float32, float16, bfloat16, uint8, int8 or int16, got int32",
            Case("", [tensor([1], np.int32)], [tensor([1], np.int32)]),
        ),
    ],
)
def test_refuses(message: str, case_: Case) -> None:
    assert_refused(op, case_, message)


def test_bfloat16() -> None:
    x, y = np.array([0, 1, -1]), np.array([0.5, 0.731, 0.269])
    dtype = numpy_dtype(TensorType.BFLOAT16)
    case = Case(
        "", [tensor(x, dtype, type=TensorType.BFLOAT16)], [tensor(x, dtype, type=TensorType.BFLOAT16)], version=3
    )
    np.testing.assert_allclose(output_of(op, case).astype(float), y, rtol=0.01)


def test_denormal_results() -> None:
    case = Case("", [tensor([-100])], [tensor([0])])
    assert output_of(op, case) == np.exp(np.float32(-100))
