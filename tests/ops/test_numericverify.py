"""NumericVerify: differences, tolerances, statistics."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest
from flatbuffers import flexbuffers

from gossamer.errors import InvokeError
from gossamer.ops.custom.numericverify import op
from tests.ops.cases import Case, Operand, run_case, tensor
from tests.ops.reference import assert_refused, output_of


def case_(id: str, x: Operand, expected: Any, difference: Any, tolerance: float = 5.0, log: bool = True) -> Case:
    options = bytes(flexbuffers.Dumps({"tolerance": tolerance, "log_if_failed": log}))
    return Case(id, [x, tensor(expected)], [tensor(difference)], custom_options=options)


INT8 = tensor([1, 2, 3], np.int8, scale=0.5, zero_point=1)

CASES = [
    case_("int8", INT8, [0, 0.25, 1.5], [0, 0.25, -0.5]),
    case_("uint8", tensor([1, 2], np.uint8, scale=0.5), [0, 0], [0.5, 1]),
    case_("int16", tensor([1, 2], np.int16, scale=0.5), [0, 0], [0.5, 1]),
    case_("float16", tensor([1, 2], np.float16), [0, 3], [1, -1], log=False),
    case_("statistics_only", INT8, [100, 100, 100], [-100, -99.5, -99], log=False),
    case_("small_tolerance", INT8, [100, 100, 100], [-100, -99.5, -99], tolerance=0.05),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


def test_fails_beyond_the_tolerance() -> None:
    with pytest.raises(InvokeError, match=r"9\.0 is quantized to 3, which is 1\.0: they differ by more than 2\.5"):
        output_of(op, case_("", INT8, [0, 0, 9], [0, 0, 0]))


def test_logs_statistics(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        output_of(op, case_("", INT8, [0, 0, 0], [0, 0, 0], log=False))
    assert "mean 0.5, deviation 0.408248, maximum 1 (scale 0.5, zero point 1)" in caplog.text


@pytest.mark.parametrize(
    ("message", "case_"),
    [
        ("must be alike", case_("", INT8, [0, 0], [0, 0, 0])),
        ("reference must be float32, got int8", Case("", [INT8, INT8], [tensor([0, 0, 0])])),
        ("got int32", case_("", tensor([1], np.int32), [0], [0])),
    ],
)
def test_refuses(message: str, case_: Case) -> None:
    assert_refused(op, case_, message)
