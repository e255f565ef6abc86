"""SOFTMAX: rows, beta, fixed point, the outputs that quantized ones allow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.softmax import op
from gossamer.schema import SoftmaxOptions
from tests.ops.cases import Case, run_case, tensor
from tests.ops.reference import assert_refused, output_of

ONCE = SoftmaxOptions(beta=1)

CASES = [
    Case(
        "float", [tensor([[0, 0, 0, 0], [0, np.log(3), -500, -500]])], [tensor([[0.25] * 4, [0.25, 0.75, 0, 0]])], ONCE
    ),
    Case("beta", [tensor([0, np.log(3)])], [tensor([0.1, 0.9])], SoftmaxOptions(beta=2)),
    Case("large", [tensor([1e30, 1e30])], [tensor([0.5, 0.5])], ONCE),
    Case("nan", [tensor([0, np.nan])], [tensor([np.nan, np.nan])], ONCE),
    Case("no_rows", [tensor(np.zeros((0, 3)))], [tensor(np.zeros((0, 3)))], ONCE),
    Case("no_columns", [tensor(np.zeros((3, 0)))], [tensor(np.zeros((3, 0)))], ONCE),
    Case(
        "int8",
        [tensor([[-128, -100, -60, -20, -5], [-20, -5, 0, 3, 12]], np.int8, scale=0.1, zero_point=3)],
        [tensor([[-128, -128, -127, -81, 81], [-123, -104, -88, -74, 5]], np.int8, scale=1 / 256, zero_point=-128)],
        ONCE,
        version=2,
    ),
    Case(
        "uint8",
        [tensor([[0, 1, 2, 3], [10, 10, 10, 10], [0, 255, 0, 0]], np.uint8, scale=0.5)],
        [tensor([[26, 43, 71, 116], [64, 64, 64, 64], [0, 255, 0, 0]], np.uint8, scale=1 / 256)],
        ONCE,
    ),
    Case(
        "uint8_to_int16",
        [tensor([[0, 1, 2, 3], [0, 255, 0, 0]], np.uint8, scale=0.5)],
        [
            tensor(
                [[-21935, -18858, -14908, -9835], [-32768, 32767, -32768, -32768]],
                np.int16,
                scale=2**-16,
                zero_point=-32768,
            )
        ],
        SoftmaxOptions(beta=0.5),
    ),
    Case(
        "int16",
        [tensor([[0, 1000, -1000, 30000], [5, 5, 5, 5]], np.int16, scale=0.001)],
        [tensor([[2, 2, 2, 32761], [8192, 8192, 8192, 8192]], np.int16, scale=2**-15)],
        ONCE,
        version=3,
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


def test_float16_divides_rounded_exps() -> None:
    case = Case("", [tensor([0, 1, 2], np.float16)], [tensor([0, 0, 0], np.float16)], ONCE, version=4)
    exps = np.exp(np.float32([-2, -1, 0]))
    expected = (exps.astype(np.float16).astype(np.float32) / exps.sum()).astype(np.float16)
    np.testing.assert_array_equal(output_of(op, case), expected)


def test_beta_of_0_weighs_all_alike() -> None:
    # LiteRT's reference kernel aborts.
    byte = Case("", [tensor([1, 2], np.int8, scale=1)], [tensor([0, 0], np.int8, scale=1 / 256, zero_point=-128)])
    np.testing.assert_array_equal(output_of(op, byte), np.int8([0, 0]))


@pytest.mark.parametrize(
    ("message", "case_"),
    [
        ("at least 1 dimension", Case("", [tensor(1)], [tensor(1)], ONCE)),
        (
            "output must be int8 or int16, got uint8",
            Case("", [tensor([1], np.int8, scale=1)], [tensor([1], np.uint8, scale=1)], ONCE),
        ),
        ("output must be float32, got float16", Case("", [tensor([1])], [tensor([1], np.float16)], ONCE)),
        (
            "needs a zero point of -128, got 0",
            Case("", [tensor([1], np.int8, scale=1)], [tensor([1], np.int8, scale=1 / 256)], ONCE),
        ),
        (
            "needs a scale of 3.0517578125e-05, got 0.5",
            Case("", [tensor([1], np.int16, scale=1)], [tensor([1], np.int16, scale=0.5)], ONCE),
        ),
        (
            "beta must not be negative, got -1.0",
            Case("", [tensor([1], np.uint8, scale=1)], [tensor([1], np.uint8, scale=1)], SoftmaxOptions(beta=-1)),
        ),
    ],
)
def test_refuses(message: str, case_: Case) -> None:
    assert_refused(op, case_, message)
