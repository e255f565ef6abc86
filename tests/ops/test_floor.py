"""FLOOR: floats."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from gossamer.ops.floor import op
from gossamer.schema import TensorType
from tests.ops.cases import Case, run_case, tensor
from tests.ops.reference import assert_refused, output_of

CASES = [
    Case("float32", [tensor([-1.5, -0.5, 0.5, 2, np.inf])], [tensor([-2, -1, 0, 2, np.inf])]),
    Case("float16", [tensor([-1.5, 2], np.float16)], [tensor([-2, 2], np.float16)]),
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


def test_bfloat16() -> None:
    x, want = (tensor(v, ml_dtypes.bfloat16, type=TensorType.BFLOAT16) for v in ([-1.5, 2.5], [-2, 2]))
    assert output_of(op, Case("", [x], [want])).tolist() == want.value.tolist()
