"""EQUAL: rescaling of quantised operands, NaN, types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.equal import op
from gossamer.schema import EqualOptions
from tests.ops.cases import Case, run_case, tensor
from tests.ops.reference import assert_refused, output_of

CASES = [
    Case(
        "broadcast",
        [tensor([[1], [2]]), tensor([1, 2, 3])],
        [tensor([[True, False, False], [False, True, False]], np.bool_)],
        EqualOptions(),
    ),
    Case("nan", [tensor([np.nan, 1]), tensor([np.nan, np.nan])], [tensor([False, False], np.bool_)], EqualOptions()),
    Case(
        "float16",
        [tensor([1, 2], np.float16), tensor([2], np.float16)],
        [tensor([False, True], np.bool_)],
        EqualOptions(),
    ),
    Case(
        "int32",
        [tensor([1, 2, 3], np.int32), tensor(2, np.int32)],
        [tensor([False, True, False], np.bool_)],
        EqualOptions(),
    ),
    Case(
        "int64",
        [tensor([2**40, 1], np.int64), tensor(2**40, np.int64)],
        [tensor([True, False], np.bool_)],
        EqualOptions(),
    ),
    Case(
        "int8",
        [tensor([6, 7, 8], np.int8, scale=0.5, zero_point=3), tensor([7], np.int8, scale=0.25, zero_point=-1)],
        [tensor([False, True, False], np.bool_)],
        EqualOptions(),
    ),
    Case(
        "uint8_too_fine_to_tell_apart",
        [tensor([1, 2, 9], np.uint8, scale=0.001), tensor([0], np.uint8, scale=0.001)],
        [tensor([True, False, False], np.bool_)],
        EqualOptions(),
    ),
    Case(
        "int8_of_a_scale_like_that_of_infinity",
        [
            tensor([-81, -80, -79], np.int8, scale=2**-6, zero_point=-128),
            tensor([64], np.int8, scale=2.0**120, zero_point=-128),
        ],
        [tensor([False, True, False], np.bool_)],
        EqualOptions(),
    ),
    Case(
        "int16_plain",
        [tensor([1, 2, 3], np.int16), tensor([2], np.int16)],
        [tensor([False, True, False], np.bool_)],
        EqualOptions(),
    ),
    Case(
        "int16_quantized",
        [tensor([1, 2, 3], np.int16, scale=0.5), tensor([4], np.int16, scale=0.25)],
        [tensor([False, True, False], np.bool_)],
        EqualOptions(),
    ),
    Case(
        "bool",
        [tensor([True, False], np.bool_), tensor([True], np.bool_)],
        [tensor([True, False], np.bool_)],
        EqualOptions(),
    ),
    Case(
        "string",
        [tensor([b"ab", b"", b"ac"], object), tensor([b"ab"], object)],
        [tensor([True, False, False], np.bool_)],
        EqualOptions(),
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


@pytest.mark.parametrize(
    ("message", "case_"),
    [
        ("same type, got float32 and int32", Case("", [tensor(1), tensor(1, np.int32)], [tensor(1, np.bool_)])),
        ("got complex64", Case("", [tensor(1, np.complex64), tensor(1, np.complex64)], [tensor(1, np.bool_)])),
        (
            "y of type int8 needs one finite scale above 0, got none",
            Case("", [tensor(1, np.int8, scale=1), tensor(1, np.int8)], [tensor(1, np.bool_)]),
        ),
    ],
)
def test_refuses(message: str, case_: Case) -> None:
    assert_refused(op, case_, message)


@pytest.mark.parametrize("scale", [None, 1.0])
def test_scales_at_which_litert_aborts(scale: float | None) -> None:
    x, y = (tensor(values, np.int8, scale=scale) for values in ([1, 2, 3], [2]))
    assert output_of(op, Case("", [x, y], [tensor([0, 0, 0], np.bool_)])).tolist() == [False, True, False]
