"""CONCATENATION: along any axis, uint8 with rescaling, constants while preparing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.concatenation import op
from gossamer.schema import ActivationFunctionType, ConcatenationOptions, TensorType
from tests.ops.cases import Case, const, run_case, tensor
from tests.ops.reference import assert_refused


def along(axis: int) -> ConcatenationOptions:
    return ConcatenationOptions(axis=axis)


CASES = [
    Case("rows", [tensor([[1, 2]]), tensor([[3, 4], [5, 6]])], [tensor([[1, 2], [3, 4], [5, 6]])], along(0)),
    Case("columns", [tensor([[1], [2]]), tensor([[3, 4], [5, 6]])], [tensor([[1, 3, 4], [2, 5, 6]])], along(-1)),
    Case("one", [tensor([1, 2], np.bool_)], [tensor([1, 2], np.bool_)], along(0)),
    Case("constants", [const([1]), const([2, 3])], [tensor([1, 2, 3], np.int32)], along(0)),
    Case("constant_scalars", [const(1), const(2)], [tensor([1, 2], np.int32)], along(0)),
    Case("nothing", [tensor(np.zeros((2, 0))), tensor([[1], [2]])], [tensor([[1], [2]])], along(1)),
    # 100: (100 - 10) * 0.5 / 0.25 + 20 = 200; 11: 2 + 20; 0: -20 + 20; 255: 490 + 20, too large
    Case(
        "uint8_of_another_scale",
        [
            tensor([100, 11, 0, 255], np.uint8, scale=0.5, zero_point=10),
            tensor([20, 21], np.uint8, scale=0.25, zero_point=20),
        ],
        [tensor([200, 22, 0, 255, 20, 21], np.uint8, scale=0.25, zero_point=20)],
        along(0),
    ),
    # 0.5 and -0.5 round away from zero.
    Case(
        "uint8_halves",
        [tensor([11, 9, 12], np.uint8, scale=0.5, zero_point=10)],
        [tensor([101, 99, 101], np.uint8, scale=1, zero_point=100)],
        along(0),
    ),
    Case(
        "int8",
        [tensor([1], np.int8, scale=0.5, zero_point=3)] * 2,
        [tensor([1, 1], np.int8, scale=0.5, zero_point=3)],
        along(0),
    ),
    Case(
        "int4",
        [tensor([1, -8, 3], np.int8, type=TensorType.INT4), tensor([7], np.int8, type=TensorType.INT4)],
        [tensor([1, -8, 3, 7], np.int8, type=TensorType.INT4)],
        along(0),
        version=4,
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


REFUSED = [
    ("axis 2 is out of range, must be in [-1, 0]", Case("", [tensor([1]), tensor([2])], [tensor(0)], along(2))),
    (
        "must match the first input [1, 2] except along axis 0",
        Case("", [tensor([[1, 2]]), tensor([[1, 2, 3]])], [tensor(0)], along(0)),
    ),
    ("must be float32 here, got int32", Case("", [tensor([1]), tensor([1], np.int32)], [tensor(0)], along(0))),
    (
        "scalars can only be concatenated if all of them are constant",
        Case("", [tensor(1), tensor(2)], [tensor(0)], along(0)),
    ),
    ("axis of scalars must be 0, got -1", Case("", [const(1), const(2)], [tensor(0, np.int32)], along(-1))),
    (
        "must have the same scale and zero point, got (0.5, 0) and (0.25, 0)",
        Case("", [tensor([1], np.int8, scale=0.5)], [tensor(0, np.int8, scale=0.25)], along(0)),
    ),
    (
        "must have zero point 0, got 3",
        Case("", [tensor([1], np.int16, scale=0.5, zero_point=3)], [tensor(0, np.int16, scale=0.5)], along(0)),
    ),
    (
        "a fused activation is not supported",
        Case("", [tensor([1])], [tensor(0)], along(0).replace(fused_activation_function=ActivationFunctionType.RELU)),
    ),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED, ids=[message for message, _ in REFUSED])
def test_refuses(message: str, refused: Case) -> None:
    assert_refused(op, refused, message)
