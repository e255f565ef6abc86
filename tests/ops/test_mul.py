"""MUL: wrapping, clamps, quantised products, folding of constants."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.mul import op
from gossamer.schema import ActivationFunctionType, MulOptions
from tests.ops.cases import Case, Operand, const, model_of, run_case, tensor
from tests.ops.reference import REFERENCE, assert_refused

N1_TO_1 = MulOptions(fused_activation_function=ActivationFunctionType.RELU_N1_TO_1)


INF, NAN = np.inf, np.nan


def _complex() -> Operand:
    return tensor([1], np.complex64)


def _int16(zero_point: int) -> Operand:
    return tensor([1], np.int16, scale=0.5, zero_point=zero_point)


CASES = [
    Case("broadcast", [tensor([[1], [2]]), tensor([10, 20, 30])], [tensor([[10, 20, 30], [20, 40, 60]])], MulOptions()),
    Case(
        "overflow",
        [tensor([3e38, -3e38]), tensor([3e38])],
        [tensor([np.finfo(np.float32).max, np.finfo(np.float32).min])],
        MulOptions(),
        default=[tensor([np.inf, -np.inf])],
    ),
    Case(
        "float16",
        [tensor([2, 6e4], np.float16), tensor([3, 6e4], np.float16)],
        [tensor([6, 65504], np.float16)],
        MulOptions(),
        default=[tensor([6, np.inf], np.float16)],
    ),
    Case(
        "int32_wraps",
        [tensor([65536, -7], np.int32), tensor([65537, 3], np.int32)],
        [tensor([65536, -21], np.int32)],
        MulOptions(),
    ),
    Case("int64", [tensor([2**40], np.int64), tensor([-3], np.int64)], [tensor([-3 * 2**40], np.int64)], MulOptions()),
    Case(
        "uint32", [tensor([2**31, 3], np.uint32), tensor([2, 3], np.uint32)], [tensor([0, 9], np.uint32)], MulOptions()
    ),
    Case(
        "uint32_relu_n1_to_1",
        [tensor([0, 3], np.uint32), tensor([2, 3], np.uint32)],
        [tensor([1, 1], np.uint32)],
        N1_TO_1,
    ),
    Case(
        "int16_plain",
        [tensor([300, 5], np.int16), tensor([300, 7], np.int16)],
        [tensor([24464, 35], np.int16)],
        MulOptions(),
    ),
    Case(
        "complex",
        [tensor([1 + 2j], np.complex64), tensor([3 - 1j], np.complex64)],
        [tensor([5 + 5j], np.complex64)],
        MulOptions(),
    ),
    Case(
        "complex_infinities",
        [
            tensor([complex(0, INF), complex(INF, NAN), 3e38 + 3e38j, 0, 3e38 + 3e38j], np.complex64),
            tensor([complex(INF, INF), 1, complex(0, NAN), complex(INF, 1), 10 - 10j], np.complex64),
        ],
        [
            tensor(
                [complex(-INF, INF), complex(INF, NAN), complex(NAN, NAN), complex(NAN, NAN), complex(INF, NAN)],
                np.complex64,
            )
        ],
        MulOptions(),
    ),
    Case(
        "complex_rounds_each_product",
        [tensor([1 + 2**-12 + 1j], np.complex64), tensor([1 + 2**-12 + (1 + 2**-11) * 1j], np.complex64)],
        [tensor([(2 + 2**-10) * 1j], np.complex64)],
        MulOptions(),
    ),
    Case(
        "int8",
        [
            tensor([10, -20, 127], np.int8, scale=0.5, zero_point=2),
            tensor([4, 8, 127], np.int8, scale=0.25, zero_point=-4),
        ],
        [tensor([7, -34, 127], np.int8, scale=1, zero_point=-1)],
        MulOptions(),
    ),
    Case(
        "uint8_relu6",
        [tensor([6, 0, 255], np.uint8, scale=0.5, zero_point=2), tensor([4], np.uint8, scale=0.5)],
        [tensor([18, 10, 22], np.uint8, scale=0.5, zero_point=10)],
        MulOptions(fused_activation_function=ActivationFunctionType.RELU6),
    ),
    Case(
        "int16",
        [tensor([1000, -30], np.int16, scale=0.01), tensor([100, 200], np.int16, scale=0.02)],
        [tensor([400, -24], np.int16, scale=0.05)],
        MulOptions(),
    ),
    Case(
        "int16_to_int8",
        [tensor([16384, -32768, 32767], np.int16, scale=1), tensor([16384, -32768, -32768], np.int16, scale=1)],
        [tensor([33, 127, -127], np.int8, scale=1, zero_point=1)],
        MulOptions(),
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


@pytest.mark.parametrize(
    ("message", "case_"),
    [
        ("complex64 takes no fused activation", Case("", [_complex(), _complex()], [_complex()], N1_TO_1)),
        ("int16 needs zero points of 0", Case("", [_int16(1), _int16(0)], [_int16(0)])),
        (
            "x of type uint8 needs one finite scale above 0",
            Case("", [tensor(1, np.uint8), tensor(1, np.uint8)], [tensor(1, np.uint8)]),
        ),
    ],
)
def test_refuses(message: str, case_: Case) -> None:
    assert_refused(op, case_, message)


def test_constants_are_folded() -> None:
    case = Case("", [const([2, 3]), const([4])], [tensor([8, 12], np.int32)], MulOptions())
    interpreter = REFERENCE(model_content=model_of(op, case))
    interpreter.allocate_tensors()
    assert interpreter.get_tensor(2).tolist() == [8, 12]
    interpreter.invoke()
    assert interpreter.get_tensor(2).tolist() == [8, 12]
