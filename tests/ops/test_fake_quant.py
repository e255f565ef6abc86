"""FAKE_QUANT: the nudged range and its levels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.fake_quant import op
from gossamer.schema import FakeQuantOptions
from tests.ops.cases import Case, run_case, tensor
from tests.ops.reference import assert_refused

RANGE = FakeQuantOptions(min=0, max=7.5, num_bits=4)

CASES = [
    Case("4_bits", [tensor([-1, 0.2, 0.25, 3.3, 9])], [tensor([0, 0, 0.5, 3.5, 7.5])], RANGE),
    # 0 lies at 0.4 of a step of 2: the range moves to [0, 6].
    Case(
        "nudged",
        [tensor([-0.8, 0.9, 1.1, 5.2, 9])],
        [tensor([0, 0, 2, 6, 6])],
        FakeQuantOptions(min=-0.8, max=5.2, num_bits=2),
    ),
    Case("all_positive", [tensor([0, 4, 9])], [tensor([0, 4, 6])], FakeQuantOptions(min=2, max=8, num_bits=2), 2),
    Case("nan", [tensor([np.nan])], [tensor([0])], RANGE),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


@pytest.mark.parametrize(
    ("message", "case_"),
    [
        ("narrow_range is for weights", Case("", [tensor([1])], [tensor([1])], RANGE.replace(narrow_range=True))),
        ("num_bits must be 1 to 16, got 0", Case("", [tensor([1])], [tensor([1])], RANGE.replace(num_bits=0))),
        ("min must be less than max, got 7.5 and 7.5", Case("", [tensor([1])], [tensor([1])], RANGE.replace(min=7.5))),
        ("must be float32, got int8", Case("", [tensor([1], np.int8)], [tensor([1], np.int8)], RANGE)),
    ],
)
def test_refuses(message: str, case_: Case) -> None:
    assert_refused(op, case_, message)
