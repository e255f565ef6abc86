"""SIN: floats."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.sin import op
from tests.ops.cases import Case, run_case, tensor
from tests.ops.reference import assert_refused, output_of

CASES = [
    Case("float32", [tensor([0, np.pi / 6, np.pi / 2])], [tensor([0, 0.5, 1])]),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


@pytest.mark.parametrize(
    ("message", "case_"),
    [
        ("got int32", Case("", [tensor([1], np.int32)], [tensor([1], np.int32)])),
    ],
)
def test_refuses(message: str, case_: Case) -> None:
    assert_refused(op, case_, message)


def test_float16() -> None:
    case = Case("", [tensor([0, np.pi / 6], np.float16)], [tensor([0, 0.5], np.float16)])
    np.testing.assert_allclose(output_of(op, case), case.outputs[0].value, rtol=1e-3)
