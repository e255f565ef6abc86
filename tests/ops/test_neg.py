"""NEG: least integers, stored values of quantised types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.neg import op
from gossamer.schema import NegOptions
from tests.ops.cases import Case, run_case, tensor
from tests.ops.reference import assert_refused

CASES = [
    Case("float32", [tensor([-1.5, 0, 2])], [tensor([1.5, 0, -2])], NegOptions()),
    Case("float16", [tensor([-1.5], np.float16)], [tensor([1.5], np.float16)], NegOptions()),
    Case("int64", [tensor([2**40], np.int64)], [tensor([-(2**40)], np.int64)], NegOptions()),
    Case("int32", [tensor([5, -(2**31)], np.int32)], [tensor([-5, -(2**31)], np.int32)], NegOptions()),
    Case("int16", [tensor([5, -32768], np.int16)], [tensor([-5, -32768], np.int16)], NegOptions()),
    Case(
        "int8_as_stored",
        [tensor([5, -128], np.int8, scale=1, zero_point=9)],
        [tensor([-5, -128], np.int8, scale=2)],
        NegOptions(),
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


@pytest.mark.parametrize(
    ("message", "case_"),
    [
        ("got uint8", Case("", [tensor([1], np.uint8)], [tensor([1], np.uint8)])),
    ],
)
def test_refuses(message: str, case_: Case) -> None:
    assert_refused(op, case_, message)
