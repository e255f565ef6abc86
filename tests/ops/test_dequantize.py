"""DEQUANTIZE: every type, channels, constants."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gossamer.dtypes import numpy_dtype
from gossamer.ops.dequantize import op
from gossamer.schema import DequantizeOptions, TensorType
from tests.ops.cases import Case, Operand, const, run_case, tensor
from tests.ops.reference import assert_refused, output_of


def case_(id: str, x: Operand, y: Any) -> Case:
    return Case(id, [x], [tensor(y)], DequantizeOptions(), 9, rtol=0, atol=0)


CASES = [
    case_("int8", tensor([-128, 0, 127], np.int8, scale=0.5, zero_point=1), [-64.5, -0.5, 63]),
    case_("uint8", tensor([0, 128, 255], np.uint8, scale=0.5, zero_point=128), [-64, 0, 63.5]),
    case_("int16", tensor([-32768, 32767], np.int16, scale=2**-15), [-1, 32767 / 32768]),
    case_("int16_of_nothing", tensor([-1, 0, 2], np.int16, scale=2**-140), [-(2**-140), 0, 2**-139]),
    case_("float16", tensor([-1.5, 65504, 2**-24, np.inf, np.nan], np.float16), [-1.5, 65504, 2**-24, np.inf, np.nan]),
    case_("int4", const([-8, 7, 3], np.int8, type=TensorType.INT4, scale=0.5), [-4, 3.5, 1.5]),
    case_("uint4", const([0, 15, 3], np.uint8, type=TensorType.UINT4, scale=0.5, zero_point=1), [-0.5, 7, 1]),
    case_("int2", const([-2, 1, 0, -1, 1], np.int8, type=TensorType.INT2, scale=0.5), [-1, 0.5, 0, -0.5, 0.5]),
    replace(case_("constant_twice", const([2, -3], np.int8, scale=0.5), [1, -1.5]), calls=2),
    case_("scalar", tensor(3, np.int8, scale=0.5), 1.5),
    case_(
        "per_channel",
        tensor([[1, 2], [3, 4]], np.int8, scale=[1, 0.5], zero_point=[0, 2], dimension=1),
        [[1, 0], [3, 1]],
    ),
    case_("per_channel_constant", const([[1, 2], [3, 4]], np.uint8, scale=[1, 0.5]), [[1, 2], [1.5, 2]]),
    case_(
        "per_channel_int4",
        const([[-8, 7], [3, -4]], np.int8, type=TensorType.INT4, scale=[1, 0.5]),
        [[-8, 7], [1.5, -2]],
    ),
    case_("unquantized", tensor([5], np.int8), [0]),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


@pytest.mark.parametrize("element_type", [TensorType.FLOAT8_E4M3FN, TensorType.FLOAT8_E5M2])
def test_float8(element_type: TensorType) -> None:
    values = [0, 0.5, -1.75, 448]
    x = tensor(values, numpy_dtype(element_type), type=element_type)
    np.testing.assert_array_equal(output_of(op, case_("", x, values)), x.value.astype(np.float32))


@pytest.mark.parametrize(
    ("message", "case_"),
    [
        ("int16 needs a zero point of 0, got 1", case_("", tensor([1], np.int16, scale=1, zero_point=1), [0])),
        ("int16 must have one scale, got 2", case_("", tensor([1, 1], np.int16, scale=[1, 1]), [0, 0])),
        ("x must be uint8, int8", case_("", tensor([1], np.int32), [0])),
    ],
)
def test_refuses(message: str, case_: Case) -> None:
    assert_refused(op, case_, message)
