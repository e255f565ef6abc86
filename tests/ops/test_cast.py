"""CAST: saturation, wrapping, bool, complex, small types."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from gossamer.ops.cast import op
from gossamer.schema import CastOptions, TensorType
from tests.ops.cases import Case, run_case, tensor
from tests.ops.reference import assert_refused, output_of

FLOATS = tensor([1.9, -1.9, np.nan, np.inf, -np.inf, 3e9, -3e9])

CASES = [
    Case("float_to_int8", [FLOATS], [tensor([1, -1, 127, 127, -128, 127, -128], np.int8)], CastOptions()),
    Case("float_to_uint8", [FLOATS], [tensor([1, 0, 255, 255, 0, 255, 0], np.uint8)], CastOptions()),
    Case(
        "float_to_int32",
        [FLOATS],
        [tensor([1, -1, 2**31 - 1, 2**31 - 1, -(2**31), 2**31 - 1, -(2**31)], np.int32)],
        CastOptions(),
    ),
    Case(
        "float_to_uint32", [FLOATS], [tensor([1, 0, 2**32 - 1, 2**32 - 1, 0, 3 * 10**9, 0], np.uint32)], CastOptions()
    ),
    Case(
        "float_to_int64",
        [FLOATS],
        [tensor([1, -1, 2**63 - 1, 2**63 - 1, -(2**63), 3 * 10**9, -3 * 10**9], np.int64)],
        CastOptions(),
    ),
    Case("float_to_bool", [tensor([0, 0.1, np.nan])], [tensor([False, True, True], np.bool_)], CastOptions()),
    Case("float_to_float16", [tensor([1.5, 1e9])], [tensor([1.5, np.inf], np.float16)], CastOptions()),
    Case("float_to_complex", [tensor([1.5])], [tensor([1.5], np.complex64)], CastOptions()),
    Case("complex_to_int32", [tensor([1.9 + 5j], np.complex64)], [tensor([1], np.int32)], CastOptions()),
    Case("int64_to_int8", [tensor([300, -1], np.int64)], [tensor([44, -1], np.int8)], CastOptions()),
    Case("int32_to_uint16", [tensor([-1, 65537], np.int32)], [tensor([65535, 1], np.uint16)], CastOptions()),
    Case("bool_to_float", [tensor([True, False], np.bool_)], [tensor([1, 0])], CastOptions()),
    Case(
        "float64_to_float16_by_float32",
        [tensor([1 + 2**-11 + 2**-30], np.float64)],
        [tensor([1], np.float16)],
        CastOptions(),
    ),
    Case("int4_to_float", [tensor([-8, 7, 1], np.int8, type=TensorType.INT4)], [tensor([-8, 7, 1])], CastOptions()),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


@pytest.mark.parametrize(
    ("message", "case_"),
    [
        (
            "cannot cast int4 to int8: int4 is cast to and from float32 and float8 only",
            Case("", [tensor([1], np.int8, type=TensorType.INT4)], [tensor([1], np.int8)]),
        ),
        ("cannot cast int32 to int2", Case("", [tensor([1], np.int32)], [tensor([1], np.int8, type=TensorType.INT2)])),
        ("got uint64", Case("", [tensor([1], np.uint64)], [tensor([1])])),
        ("got string", Case("", [tensor([b"1"], object)], [tensor([1])])),
    ],
)
def test_refuses(message: str, case_: Case) -> None:
    assert_refused(op, case_, message)


@pytest.mark.parametrize(
    ("type_", "dtype", "want"),
    [
        (TensorType.INT4, np.int8, [1, -1, 7, 7, -8]),
        (TensorType.UINT4, np.uint8, [1, 0, 15, 15, 0]),
        (TensorType.INT2, np.int8, [1, -1, 1, 1, -2]),
        (TensorType.BFLOAT16, ml_dtypes.bfloat16, [1.8984375, -1.8984375, np.nan, 99, -99]),
        (TensorType.FLOAT8_E5M2, ml_dtypes.float8_e5m2, [2, -2, np.nan, 96, -96]),
    ],
)
def test_from_float(type_: TensorType, dtype: Any, want: list[float]) -> None:
    case = Case("", [tensor([1.9, -1.9, np.nan, 99, -99])], [tensor(want, dtype, type=type_)])
    np.testing.assert_array_equal(output_of(op, case).astype(np.float32), want)


@pytest.mark.parametrize(
    ("type_", "dtype"),
    [(TensorType.BFLOAT16, ml_dtypes.bfloat16), (TensorType.FLOAT8_E4M3FN, ml_dtypes.float8_e4m3fn)],
)
@pytest.mark.parametrize("target", [np.float32, np.int16, np.bool_, np.complex64])
def test_from_small_float(type_: TensorType, dtype: Any, target: Any) -> None:
    case = Case("", [tensor([1.5, -3, 0], dtype, type=type_)], [tensor([0, 0, 0], target)])
    want = {np.int16: [1, -3, 0], np.bool_: [True, True, False]}.get(target, [1.5, -3, 0])
    assert output_of(op, case).tolist() == want
