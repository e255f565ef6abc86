"""CEIL: floats."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from gossamer.ops.ceil import op
from gossamer.schema import TensorType
from tests.ops.cases import Case, Operand, run_case, tensor
from tests.ops.reference import assert_refused, output_of


def _bfloat16() -> Operand:
    return tensor([1], ml_dtypes.bfloat16, type=TensorType.BFLOAT16)


CASES = [
    Case("float32", [tensor([-1.5, -0.5, 0.5, 2, np.inf])], [tensor([-1, 0, 1, 2, np.inf])]),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


@pytest.mark.parametrize(
    ("message", "case_"),
    [
        ("got bfloat16", Case("", [_bfloat16()], [_bfloat16()])),
    ],
)
def test_refuses(message: str, case_: Case) -> None:
    assert_refused(op, case_, message)


def test_float16() -> None:
    case = Case("", [tensor([-1.5, 1.5], np.float16)], [tensor([-1, 2], np.float16)])
    np.testing.assert_allclose(output_of(op, case), case.outputs[0].value, rtol=1e-3)
