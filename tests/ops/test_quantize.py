"""QUANTIZE: rounding, saturation, channels, and from integers to integers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.quantize import op
from gossamer.schema import QuantizeOptions, TensorType
from tests.ops.cases import Case, Operand, run_case, tensor
from tests.ops.reference import assert_refused, output_of


def case_(id: str, x: Operand, y: Operand, version: int = 1, default: Operand | None = None) -> Case:
    return Case(id, [x], [y], QuantizeOptions(), version, default=[default] if default else ())


FLOATS = tensor([-100, -0.75, -0.25, 0, 0.25, 0.74, 100])

CASES = [
    # Halves go away from zero; XNNPACK rounds them to even, and 1 / scale before it multiplies.
    case_(
        "int8",
        FLOATS,
        tensor([-128, -1, 0, 1, 2, 2, 127], np.int8, scale=0.5, zero_point=1),
        default=tensor([-128, -1, 1, 1, 1, 2, 127], np.int8),
    ),
    case_(
        "uint8",
        FLOATS,
        tensor([0, 126, 127, 128, 129, 129, 255], np.uint8, scale=0.5, zero_point=128),
        default=tensor([0, 126, 128, 128, 128, 129, 255], np.uint8),
    ),
    case_("int16", FLOATS, tensor([-200, -2, -1, 0, 1, 1, 200], np.int16, scale=0.5), 2),
    case_("int4", FLOATS, tensor([-8, -1, 0, 1, 2, 2, 7], np.int8, type=TensorType.INT4, scale=0.5, zero_point=1), 4),
    case_("uint4", FLOATS, tensor([0, 1, 2, 3, 4, 4, 15], np.uint8, type=TensorType.UINT4, scale=0.5, zero_point=3), 6),
    case_("scalar", tensor(3), tensor(6, np.int8, scale=0.5)),
    case_("empty", tensor(np.zeros((0, 2))), tensor(np.zeros((0, 2)), np.int8, scale=0.5)),
    case_(
        "per_channel",
        tensor([[1, 1, 1], [-2, -2, 100]]),
        tensor([[1, 2, 5], [-2, -4, 127]], np.int8, scale=[1, 0.5, 0.25], zero_point=[0, 0, 1], dimension=1),
        3,
    ),
    case_(
        "per_channel_int16",
        tensor([[1, 1, 1], [-2, -2, 100]]),
        tensor([[1, 1, 1], [-4, -4, 200]], np.int16, scale=[1, 0.5], dimension=0),
        3,
    ),
    case_("int16_of_no_scale", tensor([-5, 0, 7], np.int16), tensor([0, 0, 0], np.int16, scale=0.5), 2),
    case_(
        "int8_to_uint8",
        tensor([-128, 0, 127], np.int8, scale=0.5),
        tensor([0, 128, 255], np.uint8, scale=0.5, zero_point=128),
    ),
    case_(
        "int8_to_int8",
        tensor([-128, -5, -4, -3, 0, 127], np.int8, scale=0.25, zero_point=-4),
        tensor([-52, 10, 10, 11, 12, 76], np.int8, scale=0.5, zero_point=10),
    ),
    case_(
        "uint8_to_int16",
        tensor([0, 7, 255], np.uint8, scale=0.5, zero_point=7),
        tensor([-7, 0, 248], np.int16, scale=0.5),
    ),
    case_(
        "int16_to_int8", tensor([-32768, 3, 600], np.int16, scale=0.25), tensor([-128, 2, 127], np.int8, scale=0.5), 2
    ),
    case_(
        "int16_to_int16",
        tensor([-32768, 3, 600], np.int16, scale=0.25),
        tensor([-16384, 2, 300], np.int16, scale=0.5),
        2,
    ),
    case_(
        "int16_shifted_by_more_than_its_bits",
        tensor([-32768, -1, 0, 1, 1000], np.int16, scale=1e5),
        tensor([-32768, -2, 0, 2, 2328], np.int16, scale=1e-5),
        2,
    ),
    case_("int16_to_int32", tensor([-32768, 3], np.int16, scale=0.5), tensor([-65536, 6], np.int32, scale=0.25), 2),
    case_(
        "int32_to_int8", tensor([-70000, 3, 70], np.int32, scale=0.5), tensor([-128, 6, 127], np.int8, scale=0.25), 3
    ),
    case_(
        "int32_to_int16",
        tensor([-70000, 3, 70], np.int32, scale=0.5),
        tensor([-32768, 6, 140], np.int16, scale=0.25),
        3,
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


def test_beyond_all_integers() -> None:
    # LiteRT's reference kernel converts these to the least int32.
    x = tensor([np.inf, 1e30, -1e30, np.nan])
    got = output_of(op, case_("", x, tensor([0, 0, 0, 0], np.int8, scale=0.5)))
    np.testing.assert_array_equal(got, np.int8([127, 127, -128, -128]))


ONE = [1]


@pytest.mark.parametrize(
    ("message", "case_"),
    [
        ("output needs quantization", case_("", tensor(ONE), tensor(ONE, np.int8))),
        (
            "float32 can become uint8, int8, int16, int4, uint4; the output is int32",
            case_("", tensor(ONE), tensor(ONE, np.int32, scale=1)),
        ),
        (
            "int16 can become int8, int16, int32; the output is uint8",
            case_("", tensor(ONE, np.int16, scale=1), tensor(ONE, np.uint8, scale=1)),
        ),
        (
            "int16 needs zero points of 0",
            case_("", tensor(ONE, np.int16, scale=1, zero_point=1), tensor(ONE, np.int16, scale=1)),
        ),
        (
            "int4 must have one scale, got 2",
            case_("", tensor([1, 1]), tensor([1, 1], np.int8, type=TensorType.INT4, scale=[1, 1])),
        ),
        ("input of type int8 needs one finite scale", case_("", tensor(ONE, np.int8), tensor(ONE, np.int8, scale=1))),
    ],
)
def test_refuses(message: str, case_: Case) -> None:
    assert_refused(op, case_, message)
