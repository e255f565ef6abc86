"""RNN: one step, float and hybrid, the state that stays, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.rnn import op
from gossamer.schema import ActivationFunctionType, RNNOptions
from tests.ops.cases import Case, Operand, const, run_case, tensor
from tests.ops.reference import assert_refused

RELU, TANH = ActivationFunctionType.RELU, ActivationFunctionType.TANH

WEIGHTS = const([[1, 2], [0, -1]], np.float32)
RECURRENT = const([[0.5, 0], [0, 1]], np.float32)
BIAS = const([0.5, 10], np.float32)


def state(values: Any, **how: Any) -> Operand:
    return tensor(values, variable=True, **how)


def options(activation: int = RELU, asymmetric: bool = False) -> RNNOptions:
    return RNNOptions(fused_activation_function=activation, asymmetric_quantize_inputs=asymmetric)


CASES = [
    # 0.5 + 1 + 2*3 = 7.5 and 10 - 3 = 7; then 7.5 + 7.5 / 2 and 7 + 7.
    Case(
        "a_step",
        [tensor([[1, 3]]), WEIGHTS, RECURRENT, BIAS, state([[7.5, 7]])],
        [tensor([[7.5, 7]])],
        options(),
    ),
    Case(
        "another_step",
        [tensor([[1, 3]]), WEIGHTS, RECURRENT, BIAS, state([[11.25, 14]])],
        [tensor([[11.25, 14]])],
        options(),
        calls=2,
    ),
    Case(
        "batches_have_their_states",
        [tensor([[1, 3], [0, 20]]), WEIGHTS, RECURRENT, BIAS, state([[11.25, 14], [60.75, 0]])],
        [tensor([[11.25, 14], [60.75, 0]])],
        options(),
        calls=2,
    ),
    Case(
        "tanh",
        [
            tensor([[0.25]]),
            const([[2]], np.float32),
            const([[1]], np.float32),
            const([-0.25], np.float32),
            state([[np.tanh(0.25)]]),
        ],
        [tensor([[np.tanh(0.25)]])],
        options(TANH),
    ),
    # The input is 127 times its scale; the state of 0 is left out of the first step and is 127 steps in the second.
    Case(
        "hybrid",
        [
            tensor([[4]]),
            const([[64]], np.int8, scale=1 / 64),
            const([[32]], np.int8, scale=1 / 64),
            const([1], np.float32),
            state([[7.5]]),
        ],
        [tensor([[7.5]])],
        options(),
        version=2,
        calls=2,
    ),
    Case(
        "hybrid_asymmetric_uint8",
        [
            tensor([[4]]),
            const([[64]], np.uint8, scale=1 / 64),
            const([[224]], np.uint8, scale=1 / 64),
            const([1], np.float32),
            state([[2.5]]),
        ],
        [tensor([[2.5]])],
        options(asymmetric=True),
        version=3,
        calls=2,
        notes="224 is -32: 1 + 4 - 5 / 2",
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


X, OUT = tensor([[1, 3]]), tensor([[0, 0]])
S = state([[0, 0]])


@pytest.mark.parametrize(
    ("message", "case_"),
    [
        (
            "input must have 2 dimensions, got 3 [1, 1, 2]",
            Case("", [tensor([[[1, 3]]]), WEIGHTS, RECURRENT, BIAS, S], [OUT], options()),
        ),
        (
            "weights must have shape [2, 2], got [2, 3]",
            Case("", [X, const(np.zeros((2, 3)), np.float32), RECURRENT, BIAS, S], [OUT], options()),
        ),
        (
            "recurrent_weights must have shape [2, 2], got [1, 2]",
            Case("", [X, WEIGHTS, const([[1, 2]], np.float32), BIAS, S], [OUT], options()),
        ),
        (
            "bias must have shape [2], got [1]",
            Case("", [X, WEIGHTS, RECURRENT, const([1], np.float32), S], [OUT], options()),
        ),
        (
            "hidden_state must have shape [1, 2], got [2, 1]",
            Case("", [X, WEIGHTS, RECURRENT, BIAS, state([[0], [0]])], [OUT], options()),
        ),
        (
            "hidden_state must be a variable tensor",
            Case("", [X, WEIGHTS, RECURRENT, BIAS, tensor([[0, 0]])], [OUT], options()),
        ),
        (
            "recurrent_weights must have the type of weights, float32, got int8",
            Case("", [X, WEIGHTS, const([[1, 2], [3, 4]], np.int8, scale=1), BIAS, S], [OUT], options()),
        ),
        (
            "weights must have one positive scale, got 0",
            Case(
                "",
                [X, const([[1, 2], [3, 4]], np.int8), const([[1, 2], [3, 4]], np.int8, scale=1), BIAS, S],
                [OUT],
                options(),
            ),
        ),
        (
            "fused_activation_function must be 0 to 5, got 77",
            Case("", [X, WEIGHTS, RECURRENT, BIAS, S], [OUT], options(77)),
        ),
    ],
)
def test_refuses(message: str, case_: Case) -> None:
    assert_refused(op, case_, message)
