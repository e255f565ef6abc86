"""DIV: truncation, saturation, fixed-point quotients, zeros."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.div import op
from gossamer.schema import ActivationFunctionType, DivOptions
from tests.ops.cases import Case, Operand, run_case, tensor
from tests.ops.invoking import assert_refused_by_invoke
from tests.ops.reference import assert_refused


def _int8(scale: float | list[float]) -> Operand:
    return tensor([1, 2], np.int8, scale=scale)


CASES = [
    Case("broadcast", [tensor([[1], [2]]), tensor([1, 2, 4])], [tensor([[1, 0.5, 0.25], [2, 1, 0.5]])], DivOptions()),
    Case(
        "by_zero",
        [tensor([1, -1, 0]), tensor([0.0])],
        [tensor([np.finfo(np.float32).max, np.finfo(np.float32).min, np.nan])],
        DivOptions(),
    ),
    Case(
        "relu6",
        [tensor([-1, 1, 9]), tensor([1.0])],
        [tensor([0, 1, 6])],
        DivOptions(fused_activation_function=ActivationFunctionType.RELU6),
    ),
    Case(
        "int32",
        [tensor([-7, 7, -7, -(2**31)], np.int32), tensor([2, -2, -2, -1], np.int32)],
        [tensor([-3, -3, 3, 2**31 - 1], np.int32)],
        DivOptions(),
    ),
    Case(
        "int8",
        [tensor([100, -100, 7, 0], np.int8, scale=0.5), tensor([10, 10, -3, 1], np.int8, scale=0.25)],
        [tensor([41, -39, -8, 1], np.int8, scale=0.5, zero_point=1)],
        DivOptions(),
    ),
    Case(
        "uint8",
        [tensor([0, 128, 200], np.uint8, scale=1, zero_point=100), tensor([14], np.uint8, scale=1, zero_point=10)],
        [tensor([0, 135, 227], np.uint8, scale=0.195, zero_point=99)],
        DivOptions(),
    ),
    Case(
        "int16",
        [tensor([32767, -32768, 1000], np.int16, scale=0.001), tensor([1000, 1000, -30], np.int16, scale=0.001)],
        [tensor([32767, -32768, -33333 + 565], np.int16, scale=0.001)],
        DivOptions(),
    ),
    Case(
        "int8_zero_is_a_step_off",
        [tensor([0, 0], np.int8, scale=0.01), tensor([100, 10], np.int8, scale=0.01)],
        [tensor([1, 0], np.int8, scale=0.1)],
        DivOptions(),
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


@pytest.mark.parametrize(
    ("message", "case_"),
    [
        ("y has 2 scales, must have one", Case("", [_int8(0.5), _int8([0.5, 0.25])], [_int8(0.5)])),
        ("got int64", Case("", [tensor(1, np.int64), tensor(1, np.int64)], [tensor(1, np.int64)])),
    ],
)
def test_refuses(message: str, case_: Case) -> None:
    assert_refused(op, case_, message)


@pytest.mark.parametrize(
    ("message", "case_"),
    [
        (
            "division by 0: input 1 is 0 at [1]",
            Case("", [tensor([1, 2], np.int32), tensor([1, 0], np.int32)], [tensor([0, 0], np.int32)]),
        ),
        (
            "division by 0: input 1 is 3 at [0]",
            Case("", [_int8(0.5), tensor([3, 4], np.int8, scale=1, zero_point=3)], [_int8(0.5)]),
        ),
    ],
)
def test_refuses_values(message: str, case_: Case) -> None:
    assert_refused_by_invoke(op, case_, message)
