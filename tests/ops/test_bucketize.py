"""BUCKETIZE: bounds belong to the bucket above."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.bucketize import op
from gossamer.schema import BucketizeOptions
from tests.ops.cases import Case, run_case, tensor
from tests.ops.reference import assert_refused

BOUNDS = BucketizeOptions(boundaries=np.array([0, 10, 10, 100], np.float32))
NONE = BucketizeOptions(boundaries=np.array([], np.float32))

CASES = [
    Case("float", [tensor([[-1, 0, 5], [10, 100, np.nan]])], [tensor([[0, 1, 1], [3, 4, 4]], np.int32)], BOUNDS),
    Case("float64", [tensor([-1e-300, 99.999999999], np.float64)], [tensor([0, 3], np.int32)], BOUNDS),
    Case("int32", [tensor([-5, 9, 10, 1000], np.int32)], [tensor([0, 1, 3, 4], np.int32)], BOUNDS),
    # 2**24 + 1 is 2**24 as float32.
    Case(
        "int64_as_float32",
        [tensor([2**24 + 1], np.int64)],
        [tensor([0], np.int32)],
        BucketizeOptions(boundaries=np.array([2**24 + 2], np.float32)),
    ),
    Case("scalar", [tensor(3)], [tensor(1, np.int32)], BOUNDS),
    Case("no_boundaries", [tensor([3])], [tensor([0], np.int32)], NONE),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


@pytest.mark.parametrize(
    ("message", "case_"),
    [
        ("boundaries are missing", Case("", [tensor([1])], [tensor([1], np.int32)], BucketizeOptions())),
        (
            "boundaries must be sorted",
            Case("", [tensor([1])], [tensor([1], np.int32)], BucketizeOptions(boundaries=np.array([2, 1], np.float32))),
        ),
        ("got int8", Case("", [tensor([1], np.int8)], [tensor([1], np.int32)], BOUNDS)),
    ],
)
def test_refuses(message: str, case_: Case) -> None:
    assert_refused(op, case_, message)
