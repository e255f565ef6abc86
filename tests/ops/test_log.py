"""LOG: floats, tables of int8 and int16, values at and below 0."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.log import op
from tests.ops.cases import Case, run_case, tensor
from tests.ops.reference import assert_refused, output_of

CASES = [
    Case("float32", [tensor([1, np.e, 0, -1, np.inf])], [tensor([0, 1, -np.inf, np.nan, np.inf])]),
    Case(
        "int8",
        [tensor([4, 127, 1, 0, -5], np.int8, scale=0.25)],
        [tensor([0, 69, -28, -128, -128], np.int8, scale=0.05)],
    ),
    Case(
        "int16",
        [tensor([4096, 32767, 0, -5], np.int16, scale=1 / 4096)],
        [tensor([0, 17035, -32768, -32768], np.int16, scale=1 / 8192)],
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


def test_float16() -> None:
    case = Case("", [tensor([1, np.e], np.float16)], [tensor([0, 1], np.float16)])
    np.testing.assert_allclose(output_of(op, case), case.outputs[0].value, atol=1e-3)
