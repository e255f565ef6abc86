"""MINIMUM: NaN, stored values of quantised types, many types."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from gossamer.ops.minimum import op
from gossamer.schema import MaximumMinimumOptions, TensorType
from tests.ops.cases import Case, run_case, tensor
from tests.ops.reference import assert_refused, output_of

CASES = [
    Case(
        "broadcast",
        [tensor([[1], [20]]), tensor([10, 2, 3])],
        [tensor([[1, 1, 1], [10, 2, 3]])],
        MaximumMinimumOptions(),
    ),
    Case(
        "nan_gives_the_second",
        [tensor([np.nan, 1, 0]), tensor([1, np.nan, 0])],
        [tensor([1, np.nan, 0])],
        MaximumMinimumOptions(),
    ),
    Case("empty", [tensor(np.zeros((0, 3))), tensor(1)], [tensor(np.zeros((0, 3)))], MaximumMinimumOptions()),
    Case(
        "float16",
        [tensor([1, 3], np.float16), tensor([2], np.float16)],
        [tensor([1, 2], np.float16)],
        MaximumMinimumOptions(),
    ),
    Case(
        "int8_as_stored",
        [tensor([5, -128], np.int8, scale=1), tensor([-3, 127], np.int8, scale=9)],
        [tensor([-3, -128], np.int8, scale=1)],
        MaximumMinimumOptions(),
    ),
    Case(
        "uint8",
        [tensor([5, 200], np.uint8), tensor([100], np.uint8)],
        [tensor([5, 100], np.uint8)],
        MaximumMinimumOptions(),
    ),
    Case(
        "int64",
        [tensor([2**40, -(2**40)], np.int64), tensor([3, 1], np.int64)],
        [tensor([3, -(2**40)], np.int64)],
        MaximumMinimumOptions(),
    ),
    Case(
        "int16",
        [tensor([5, -5], np.int16), tensor([0], np.int16)],
        [tensor([0, -5], np.int16)],
        MaximumMinimumOptions(),
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


@pytest.mark.parametrize(
    ("message", "case_"),
    [
        ("same type, got int32 and int64", Case("", [tensor(1, np.int32), tensor(1, np.int64)], [tensor(1, np.int32)])),
        ("got bool", Case("", [tensor(1, np.bool_), tensor(1, np.bool_)], [tensor(1, np.bool_)])),
    ],
)
def test_refuses(message: str, case_: Case) -> None:
    assert_refused(op, case_, message)


def test_bfloat16() -> None:
    x, y, z = (tensor(v, ml_dtypes.bfloat16, type=TensorType.BFLOAT16) for v in ([1.5, -2], [1, -1], [1, -2]))
    assert output_of(op, Case("", [x, y], [z])).tolist() == z.value.tolist()
