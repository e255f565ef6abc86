"""ADD: wrapping, clamps, rescaling, powers of two."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.add import op
from gossamer.schema import ActivationFunctionType, AddOptions
from tests.ops.cases import Case, Operand, const, run_case, tensor
from tests.ops.reference import assert_refused

RELU6 = AddOptions(fused_activation_function=ActivationFunctionType.RELU6)
TANH = AddOptions(fused_activation_function=ActivationFunctionType.TANH)
LIMITS = np.array([np.finfo(np.float32).max, np.finfo(np.float32).min, np.nan, np.finfo(np.float32).max])


def _int16(scale: float, zero_point: int = 0) -> Operand:
    return tensor([1], np.int16, scale=scale, zero_point=zero_point)


CASES = [
    Case("broadcast", [tensor([[1], [2]]), tensor([10, 20, 30])], [tensor([[11, 21, 31], [12, 22, 32]])], AddOptions()),
    Case("scalars", [tensor(1.5), tensor(2)], [tensor(3.5)], AddOptions()),
    Case("empty", [tensor(np.zeros((2, 0))), tensor(np.zeros((2, 1)))], [tensor(np.zeros((2, 0)))], AddOptions()),
    Case("constant", [tensor([1, 2]), const([3, 4], np.float32)], [tensor([4, 6])], AddOptions()),
    Case("relu6", [tensor([-5, 1, 5]), tensor([1, 1, 5])], [tensor([0, 2, 6])], RELU6),
    Case("tanh_does_nothing", [tensor([1, 2]), tensor([3, 4])], [tensor([4, 6])], TANH),
    Case(
        "overflow",
        [tensor([3e38, -3e38, np.nan, np.inf]), tensor([3e38, -3e38, 1, 1])],
        [tensor(LIMITS)],
        AddOptions(),
        default=[tensor([np.inf, -np.inf, np.nan, np.inf])],
    ),
    Case(
        "float16",
        [tensor([1, 6e4], np.float16), tensor([2, 6e4], np.float16)],
        [tensor([3, 65504], np.float16)],
        AddOptions(),
        default=[tensor([3, np.inf], np.float16)],
    ),
    Case(
        "int32_wraps",
        [tensor([2**31 - 1, 7], np.int32), tensor([1, 1], np.int32)],
        [tensor([-(2**31), 8], np.int32)],
        AddOptions(),
    ),
    Case("int32_relu6", [tensor([-9, 2, 9], np.int32), tensor([1], np.int32)], [tensor([0, 3, 6], np.int32)], RELU6),
    Case("int64", [tensor([2**40], np.int64), tensor([1], np.int64)], [tensor([2**40 + 1], np.int64)], AddOptions()),
    Case(
        "int16_plain",
        [tensor([32767, 5], np.int16), tensor([2], np.int16)],
        [tensor([-32767, 7], np.int16)],
        AddOptions(),
    ),
    Case(
        "int8",
        [tensor([10, -20, 127, -128], np.int8, scale=0.5), tensor([4, 8, 127, -128], np.int8, scale=0.25)],
        [tensor([12, -16, 127, -128], np.int8, scale=0.5)],
        AddOptions(),
    ),
    Case(
        "int8_zero_points_relu",
        [tensor([0, 1, -128], np.int8, scale=1, zero_point=-3), tensor([5], np.int8, scale=0.5, zero_point=3)],
        [tensor([-2, 0, -10], np.int8, scale=0.5, zero_point=-10)],
        AddOptions(fused_activation_function=ActivationFunctionType.RELU),
    ),
    Case(
        "uint8",
        [
            tensor([0, 128, 255], np.uint8, scale=0.1, zero_point=128),
            tensor([138], np.uint8, scale=0.1, zero_point=128),
        ],
        [tensor([10, 138, 255], np.uint8, scale=0.1, zero_point=128)],
        AddOptions(),
    ),
    Case(
        "int16",
        [tensor([1000, -3, 32767], np.int16, scale=0.003), tensor([1, 2, 3], np.int16, scale=0.001)],
        [tensor([3001, -7, 32767], np.int16, scale=0.001)],
        AddOptions(pot_scale_int16=False),
    ),
    Case(
        "int16_power_of_two",
        [tensor([32767, 5, -5], np.int16, scale=2**-15), tensor([2, 3, 3], np.int16, scale=2**-16)],
        [tensor([32767, 7, -3], np.int16, scale=2**-15)],
        AddOptions(),
    ),
    Case(
        "int16_sixteen_at_a_time",
        [tensor([-1147] * 17, np.int16, scale=1), tensor([2285] * 17, np.int16, scale=0.3)],
        [tensor([-461] * 17, np.int16, scale=1)],
        AddOptions(pot_scale_int16=False),
        default=[tensor([-462] * 16 + [-461], np.int16, scale=1)],
    ),
    Case(
        "int16_broadcast",
        [tensor([-1147] * 17, np.int16, scale=1), tensor([2285], np.int16, scale=0.3)],
        [tensor([-461] * 17, np.int16, scale=1)],
        AddOptions(pot_scale_int16=False),
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


@pytest.mark.parametrize(
    ("message", "case_"),
    [
        (
            "shapes [2, 3] and [4] do not broadcast",
            Case("", [tensor(np.zeros((2, 3))), tensor(np.zeros(4))], [tensor(np.zeros(4))]),
        ),
        ("shapes [2] and [0] do not broadcast", Case("", [tensor([1, 2]), tensor([])], [tensor([])])),
        ("needs 2 inputs (x, y), got 1", Case("", [tensor(1)], [tensor(1)])),
        ("same type, got float32 and int32", Case("", [tensor(1), tensor(1, np.int32)], [tensor(1)])),
        ("got uint32", Case("", [tensor(1, np.uint32), tensor(1, np.uint32)], [tensor(1, np.uint32)])),
        (
            "input 0 of type int8 needs one finite scale above 0, got none",
            Case("", [tensor(1, np.int8), tensor(1, np.int8)], [tensor(1, np.int8)]),
        ),
        (
            "int16 needs zero points of 0, got 1, 0, 0",
            Case("", [_int16(0.5, 1), _int16(0.5)], [_int16(0.5)], AddOptions()),
        ),
        (
            "the other a smaller one, got 2**-2 and 2**-3",
            Case("", [_int16(0.25), _int16(0.125)], [_int16(0.5)], AddOptions()),
        ),
    ],
)
def test_refuses(message: str, case_: Case) -> None:
    assert_refused(op, case_, message)
