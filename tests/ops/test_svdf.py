"""SVDF: memories of filters, ranks, float, hybrid and integer, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.svdf import op
from gossamer.schema import ActivationFunctionType, SVDFOptions
from tests.ops.cases import Case, Operand, const, run_case, tensor
from tests.ops.reference import assert_refused

RELU = ActivationFunctionType.RELU

FEATURE, TIME = [[1, 2], [3, 4]], [[1, 10], [2, 1]]


def state(values: Any, dtype: Any = np.float32, **how: Any) -> Operand:
    return tensor(values, dtype, variable=True, **how)


def options(rank: int, activation: int = 0, asymmetric: bool = False) -> SVDFOptions:
    return SVDFOptions(rank=rank, fused_activation_function=activation, asymmetric_quantize_inputs=asymmetric)


def f(values: Any) -> Operand:
    return const(values, np.float32)


CASES = [
    # Features of [1, 1] are 3 and 7. The memories are [0, 3] and [0, 7]; then [3, 3] and [7, 7].
    Case(
        "a_step", [tensor([[1, 1]]), f(FEATURE), f(TIME), None, state([[0, 3, 0, 7]])], [tensor([[30, 7]])], options(1)
    ),
    Case(
        "another_step",
        [tensor([[1, 1]]), f(FEATURE), f(TIME), None, state([[3, 3, 7, 7]])],
        [tensor([[33, 21]])],
        options(1),
        calls=2,
    ),
    Case(
        "rank_2_with_bias",
        [tensor([[1, 1]]), f(FEATURE), f(TIME), f([-100]), state([[3, 3, 7, 7]])],
        [tensor([[-46]])],
        options(2),
        calls=2,
    ),
    Case(
        "batches_and_relu",
        [tensor([[1, 1], [-1, 0]]), f(FEATURE), f(TIME), None, state([[0, 3, 0, 7], [0, -1, 0, -3]])],
        [tensor([[30, 7], [0, 0]])],
        options(1, RELU),
    ),
    Case(
        "hybrid",
        [
            tensor([[127, 0]]),
            const([[32, 64], [96, 127]], np.int8, scale=1 / 32),
            const([[4, 40], [8, 4]], np.int8, scale=0.25),
            None,
            state([[127, 127, 381, 381]]),
        ],
        [tensor([[1397, 1143]])],
        options(1),
        version=2,
        calls=2,
    ),
    Case(
        "hybrid_asymmetric_uint8",
        [
            tensor([[255, 0]]),
            const([[32, 64], [224, 127]], np.uint8, scale=1 / 32),
            const([[4, 40], [8, 252]], np.uint8, scale=0.25),
            None,
            state([[0, 255, 0, -255]]),
        ],
        [tensor([[2550, 255]])],
        options(1, asymmetric=True),
        version=3,
    ),
    # (2-1)*1 + (3-1)*2 = 5 and 11, at twice the state's scale 10 and 22; 10*10 = 100 and 22, at 0.1 of that.
    Case(
        "integer",
        [
            tensor([[2, 3]], np.int8, scale=0.5, zero_point=1),
            const(FEATURE, np.int8, scale=1),
            const(TIME, np.int16, scale=1),
            const([6, 0], np.int32, scale=0.25),
            state([[0, 10, 0, 22]], np.int16, scale=0.25),
        ],
        [tensor([[16, 7]], np.int8, scale=2.5, zero_point=5)],
        options(1, RELU),
        version=3,
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


X, OUT, S = tensor([[1, 1]]), tensor([[0, 0]]), state([[0, 0, 0, 0]])
INTEGER = [
    tensor([[2, 3]], np.int8, scale=0.5),
    const(FEATURE, np.int8, scale=1),
    const(TIME, np.int16, scale=1),
    None,
    state([[0, 0, 0, 0]], np.int16, scale=0.25),
]


@pytest.mark.parametrize(
    ("message", "case_"),
    [
        (
            "rank must divide the number of filters, 2, got 3",
            Case("", [X, f(FEATURE), f(TIME), None, S], [OUT], options(3)),
        ),
        (
            "rank must divide the number of filters, 2, got 0",
            Case("", [X, f(FEATURE), f(TIME), None, S], [OUT], options(0)),
        ),
        (
            "weights_feature must have shape [2, 2], got [3, 2]",
            Case("", [X, f([[1, 2]] * 3), f(TIME), None, S], [OUT], options(1)),
        ),
        ("bias must have shape [2], got [1]", Case("", [X, f(FEATURE), f(TIME), f([1]), S], [OUT], options(1))),
        (
            "state must have shape [1, 4], got [1, 2]",
            Case("", [X, f(FEATURE), f(TIME), None, state([[0, 0]])], [OUT], options(1)),
        ),
        (
            "state must be a variable tensor",
            Case("", [X, f(FEATURE), f(TIME), None, tensor([[0, 0, 0, 0]])], [OUT], options(1)),
        ),
        (
            "weights_time must be float32 with float32 input, got int8",
            Case("", [X, f(FEATURE), const(TIME, np.int8, scale=1), None, S], [OUT], options(1)),
        ),
        (
            "no kernel for int8 input and float32 weights_feature",
            Case("", [INTEGER[0], f(FEATURE), f(TIME), None, S], [OUT], options(1)),
        ),
        (
            "fused_activation_function must be 1 (RELU) for int8, got 0",
            Case("", INTEGER, [tensor([[0, 0]], np.int8, scale=1)], options(1)),
        ),
        (
            "output of type int8 needs one positive scale",
            Case("", INTEGER, [tensor([[0, 0]], np.int8)], options(1, RELU)),
        ),
    ],
)
def test_refuses(message: str, case_: Case) -> None:
    assert_refused(op, case_, message)
