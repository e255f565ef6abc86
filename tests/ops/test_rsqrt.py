"""RSQRT: floats, int8 in fixed point, the int16 table, values at and below 0."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.rsqrt import op
from tests.ops.cases import Case, run_case, tensor
from tests.ops.invoking import assert_refused_by_invoke
from tests.ops.reference import assert_refused, output_of

CASES = [
    Case("float32", [tensor([4, 2, 0, -1])], [tensor([0.5, 2**-0.5, np.inf, np.nan])]),
    Case(
        "int8",
        [tensor([-10, -6, 127, -9], np.int8, scale=0.25, zero_point=-10)],
        [tensor([127, 0, -83, 100], np.int8, scale=0.01, zero_point=-100)],
    ),
    Case(
        "int16",
        [tensor([4096, 16384, 32767, 0], np.int16, scale=1 / 4096)],
        [tensor([4096, 2048, 1448, 32767], np.int16, scale=1 / 4096)],
    ),
    Case(
        "int16, where the root is rounded before it divides",
        [tensor([3584], np.int16, scale=1 / 4096)],
        [tensor([17516], np.int16, scale=1 / 16384)],
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


@pytest.mark.parametrize(
    ("message", "case_"),
    [
        (
            "input of type int16 needs one finite scale above 0, got none",
            Case("", [tensor([1], np.int16)], [tensor([1], np.int16)]),
        ),
    ],
)
def test_refuses(message: str, case_: Case) -> None:
    assert_refused(op, case_, message)


@pytest.mark.parametrize(
    ("message", "case_"),
    [
        (
            "is only defined for positive values, got -3 with zero point -2",
            Case("", [tensor([1, -3], np.int8, scale=0.5, zero_point=-2)], [tensor([1, 1], np.int8, scale=0.5)]),
        ),
        (
            "got -1 with zero point 0",
            Case("", [tensor([1, -1], np.int16, scale=0.5)], [tensor([1, 1], np.int16, scale=0.5)]),
        ),
    ],
)
def test_refuses_values(message: str, case_: Case) -> None:
    assert_refused_by_invoke(op, case_, message)


def test_float16() -> None:
    case = Case("", [tensor([4, 0.25], np.float16)], [tensor([0.5, 2], np.float16)])
    np.testing.assert_allclose(output_of(op, case), case.outputs[0].value, rtol=1e-3)
