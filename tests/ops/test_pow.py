"""POW: integer exponents, overflow, refused exponents."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gossamer
from gossamer.ops.pow import op
from gossamer.schema import PowOptions
from tests.ops.cases import Case, run_case, tensor
from tests.ops.invoking import assert_refused_by_invoke
from tests.ops.reference import assert_refused
from tests.runtime.graphs import ModelMaker

GREATEST = np.finfo(np.float32).max

CASES = [
    Case(
        "broadcast", [tensor([[2], [9]]), tensor([3, 0.5])], [tensor([[8, 2**0.5], [729, 3]])], PowOptions(), rtol=1e-5
    ),
    Case(
        "one_whole_exponent",
        [tensor([1e30, -1e30, -2, 0.5]), tensor([3.000002])],
        [tensor([GREATEST, -GREATEST, -8, 0.125])],
        PowOptions(),
    ),
    Case(
        "one_exponent_of_another_rank",
        [tensor([4, np.inf, 0.5]), tensor([[0.5]])],
        [tensor([[2, np.inf, 0.5**0.5]])],
        PowOptions(),
    ),
    Case("one_exponent_1", [tensor([3, np.inf, -2]), tensor([1])], [tensor([3, np.inf, -2])], PowOptions()),
    Case(
        "same_shape",
        [tensor([1e30, -2, 0.5]), tensor([3, 3.000002, 3])],
        [tensor([np.inf, np.nan, 0.125])],
        PowOptions(),
    ),
    Case(
        "int32",
        [tensor([3, -3, 10, 0], np.int32), tensor([7, 3, 9, 0], np.int32)],
        [tensor([2187, -27, 10**9, 1], np.int32)],
        PowOptions(),
    ),
    Case(
        "int32_overflow",
        [tensor([3, 46341], np.int32), tensor([30, 2], np.int32)],
        [tensor([-(2**31), -(2**31)], np.int32)],
        PowOptions(),
    ),
    Case(
        "int32_one_exponent_wraps",
        [tensor([3, 46341], np.int32), tensor([7], np.int32)],
        [tensor([2187, -2103067603], np.int32)],
        PowOptions(),
    ),
    Case(
        "exponent_0", [tensor([3, -3, 0], np.int32), tensor([0], np.int32)], [tensor([1, 1, 1], np.int32)], PowOptions()
    ),
    Case(
        "exponent_of_many_bits",
        [tensor([3, -1, 2], np.int32), tensor([33], np.int32)],
        [tensor([-1504003197, -1, 0], np.int32)],
        PowOptions(),
        faults=True,
    ),
    Case(
        "exponent_1",
        [tensor([3, -3, 0], np.int32), tensor([[1]], np.int32)],
        [tensor([[3, -3, 0]], np.int32)],
        PowOptions(),
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


@pytest.mark.parametrize(
    ("message", "case_"),
    [
        ("got int8", Case("", [tensor(1, np.int8), tensor(1, np.int8)], [tensor(1, np.int8)])),
    ],
)
def test_refuses(message: str, case_: Case) -> None:
    assert_refused(op, case_, message)


@pytest.mark.parametrize(
    ("message", "case_"),
    [
        (
            "exponents of int32 must not be negative, got -2",
            Case("", [tensor([1, 2], np.int32), tensor([1, -2], np.int32)], [tensor([0, 0], np.int32)]),
        ),
    ],
)
def test_refuses_values(message: str, case_: Case) -> None:
    assert_refused_by_invoke(op, case_, message)


def test_a_computed_exponent_is_one_program() -> None:
    """Which does not depend on its value, whole or not."""
    make = ModelMaker()
    x, y, power = make.tensor((2, 3)), make.tensor((1,)), make.tensor((2, 3))
    make.op("POW", [x, y], [power], PowOptions())
    make.io([x, y], [power])
    interpreter = gossamer.Interpreter(model_content=make.model())
    interpreter.allocate_tensors()
    base = np.array([[1e15, 2, 0.5], [3, 4, 1e-3]], np.float32)
    for exponent, expected in ((3.000002, base.astype(float) ** 3), (-1.5, base.astype(float) ** -1.5)):
        interpreter.set_tensor(x, base)
        interpreter.set_tensor(y, np.array([exponent], np.float32))
        interpreter.invoke()
        finite = np.clip(expected, -GREATEST, GREATEST)
        np.testing.assert_allclose(interpreter.get_tensor(power), finite, rtol=1e-6)
    (claims,) = interpreter.delegate_claims()
    assert claims.delegate == "jit"
    assert not claims.refusals
