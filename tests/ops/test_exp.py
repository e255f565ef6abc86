"""EXP: floats, tables of int8 and int16, overflow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.exp import op
from gossamer.schema import ExpOptions
from tests.ops.cases import Case, run_case, tensor
from tests.ops.reference import assert_refused, output_of

CASES = [
    Case("float32", [tensor([0, 1, -1, np.inf, -np.inf])], [tensor([1, np.e, 1 / np.e, np.inf, 0])], ExpOptions()),
    Case(
        "int8",
        [tensor([0, 4, -4, 127], np.int8, scale=0.25)],
        [tensor([-86, -14, -113, 127], np.int8, scale=1 / 42, zero_point=-128)],
        ExpOptions(),
    ),
    Case(
        "int8_overflow", [tensor([100, -128], np.int8, scale=1)], [tensor([127, 0], np.int8, scale=0.01)], ExpOptions()
    ),
    Case(
        "int16",
        [tensor([0, 8192, -8192, 100], np.int16, scale=1 / 8192)],
        [tensor([4096, 11133, 1507, 4146], np.int16, scale=1 / 4096)],
        ExpOptions(),
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
        ("got int32", Case("", [tensor([1], np.int32)], [tensor([1], np.int32)])),
    ],
)
def test_refuses(message: str, case_: Case) -> None:
    assert_refused(op, case_, message)


def test_float16() -> None:
    case = Case("", [tensor([0, 1], np.float16)], [tensor([1, np.e], np.float16)])
    np.testing.assert_allclose(output_of(op, case), case.outputs[0].value, rtol=1e-3)
