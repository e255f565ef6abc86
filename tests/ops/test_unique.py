"""UNIQUE: different values in order of appearance."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.unique import op
from gossamer.schema import TensorType, UniqueOptions
from tests.ops.cases import Case, run_case, tensor
from tests.ops.reference import assert_refused

INT32 = UniqueOptions(idx_out_type=TensorType.INT32)

CASES = [
    Case("int32", [tensor([5, 3, 5, 9])], [tensor([5, 3, 9]), tensor([0, 1, 0, 2], np.int32)], INT32),
    Case(
        "int64",
        [tensor([-1, -1], np.int8)],
        [tensor([-1], np.int8), tensor([0, 0], np.int64)],
        UniqueOptions(idx_out_type=TensorType.INT64),
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


REFUSED = [
    (
        "input must have 1 dimensions, got 2 [1, 1]",
        Case("", [tensor([[1]])], [tensor([1]), tensor([0], np.int32)], INT32),
    ),
    (
        "idx_out_type must be int32 or int64, got float32",
        Case("", [tensor([1])], [tensor([1]), tensor([0], np.int32)], UniqueOptions(idx_out_type=TensorType.FLOAT32)),
    ),
    ("indices must be int32 here, got int64", Case("", [tensor([1])], [tensor([1]), tensor([0], np.int64)], INT32)),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED, ids=[message for message, _ in REFUSED])
def test_refuses(message: str, refused: Case) -> None:
    assert_refused(op, refused, message)
