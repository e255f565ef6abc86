"""TANH: floats, the tables, what outputs must look like."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.tanh import op
from tests.ops.cases import Case, run_case, tensor
from tests.ops.reference import assert_refused

QS = [-128, -100, -60, -20, -5, 0, 3, 12, 50, 127]
US = [0, 28, 68, 108, 123, 128, 131, 140, 178, 255]
WS = [-32768, -20000, -6000, -700, -1, 0, 2, 900, 9000, 32767]

CASES = [
    Case(
        "float",
        [tensor([0, 0.5, -0.5, np.inf, -np.inf, np.nan])],
        [tensor([0, 0.46211717, -0.46211717, 1, -1, np.nan])],
    ),
    Case("float16", [tensor([0, 1, -20], np.float16)], [tensor([0, 0.7617, -1], np.float16)], rtol=1e-3),
    Case(
        "int8",
        [tensor(QS, np.int8, scale=0.02, zero_point=-5)],
        [tensor([-126, -122, -102, -37, 0, 13, 20, 42, 102, 127], np.int8, scale=1 / 128)],
        version=2,
    ),
    Case(
        "uint8",
        [tensor(US, np.uint8, scale=0.02, zero_point=128)],
        [tensor([2, 5, 21, 79, 115, 128, 136, 158, 225, 254], np.uint8, scale=1 / 128, zero_point=128)],
    ),
    Case(
        "int16_2**-12",
        [tensor(WS, np.int16, scale=2**-12)],
        [tensor([-32767, -32764, -29445, -5546, -8, 0, 16, 7086, 31968, 32767], np.int16, scale=2**-15)],
        version=3,
        default=[tensor([-32767, -32767, -29440, -5544, -8, 0, 24, 7088, 31972, 32767], np.int16)],
    ),
    Case(
        "int16_2**-11",
        [tensor(WS, np.int16, scale=2**-11)],
        [tensor([-32767, -32767, -32581, -10783, -16, 0, 32, 13540, 32758, 32767], np.int16, scale=2**-15)],
        version=3,
        default=[tensor([-32767, -32767, -32584, -10784, -24, 0, 36, 13532, 32764, 32767], np.int16)],
    ),
    Case(
        "int16",
        [tensor(WS, np.int16, scale=0.0005)],
        [tensor([-32767, -32767, -32606, -11023, -16, 0, 32, 13823, 32760, 32767], np.int16, scale=2**-15)],
        version=3,
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


@pytest.mark.parametrize(
    ("message", "case_"),
    [
        (
            "int16 output needs a scale of 2**-15",
            Case("", [tensor([1], np.int16, scale=1)], [tensor([1], np.int16, scale=0.5)]),
        ),
        (
            "int16 needs zero points of 0",
            Case("", [tensor([1], np.int16, scale=1)], [tensor([1], np.int16, scale=2**-15, zero_point=2)]),
        ),
        (
            "output of type int8 needs one finite scale",
            Case("", [tensor([1], np.int8, scale=1)], [tensor([1], np.int8)]),
        ),
        ("output must be float32, got float16", Case("", [tensor([1])], [tensor([1], np.float16)])),
    ],
)
def test_refuses(message: str, case_: Case) -> None:
    assert_refused(op, case_, message)
