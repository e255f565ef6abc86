"""SQRT: floats, int8 and int16, values below 0."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.sqrt import op
from tests.ops.cases import Case, run_case, tensor
from tests.ops.invoking import assert_refused_by_invoke
from tests.ops.reference import assert_refused, output_of

CASES = [
    Case("float32", [tensor([0, 4, 2, -1])], [tensor([0, 2, 2**0.5, np.nan])]),
    Case(
        "int8",
        [tensor([-10, -6, 127, -9], np.int8, scale=0.25, zero_point=-10)],
        [tensor([-100, -90, -42, -95], np.int8, scale=0.1, zero_point=-100)],
    ),
    Case(
        "int16",
        [tensor([0, 16384, 32767], np.int16, scale=1 / 4096)],
        [tensor([0, 8192, 11585], np.int16, scale=1 / 4096)],
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
            "is only defined for values of at least 0, got -0.5",
            Case("", [tensor([1, -1], np.int8, scale=0.5)], [tensor([1, 1], np.int8, scale=0.5)]),
        ),
    ],
)
def test_refuses_values(message: str, case_: Case) -> None:
    assert_refused_by_invoke(op, case_, message)


def test_float16() -> None:
    case = Case("", [tensor([0, 4], np.float16)], [tensor([0, 2], np.float16)])
    np.testing.assert_allclose(output_of(op, case), case.outputs[0].value, rtol=1e-3)
