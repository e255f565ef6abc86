"""UNIDIRECTIONAL_SEQUENCE_RNN: sequences, both layouts, float and hybrid, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.unidirectional_sequence_rnn import op
from gossamer.schema import ActivationFunctionType, SequenceRNNOptions
from tests.ops.cases import Case, Operand, const, run_case, tensor
from tests.ops.reference import assert_refused

RELU = ActivationFunctionType.RELU

# h' = relu(0.5 + 2 x + h / 2)
CELL = [const([[2]], np.float32), const([[0.5]], np.float32), const([0.5], np.float32)]
HYBRID_CELL = [const([[127]], np.int8, scale=2 / 127), const([[64]], np.int8, scale=1 / 128), const([0.5], np.float32)]
X = [[1, -3, 2], [0, 0, 1]]
H = [[2.5, 0, 4.5], [0.5, 0.75, 2.875]]


def state(values: Any) -> Operand:
    return tensor(values, variable=True)


def options(**fields: Any) -> SequenceRNNOptions:
    return SequenceRNNOptions(fused_activation_function=RELU, **fields)


def batch_major(values: Any) -> Operand:
    return tensor(np.array(values)[..., None])


def time_major(values: Any) -> Operand:
    return tensor(np.array(values).T[..., None])


CASES = [
    Case("batch_major", [batch_major(X), *CELL, state([[4.5], [2.875]])], [batch_major(H)], options()),
    Case("time_major", [time_major(X), *CELL, state([[4.5], [2.875]])], [time_major(H)], options(time_major=True)),
    Case(
        "the_state_stays",
        [batch_major([[1]]), *CELL, state([[3.75]])],
        [batch_major([[3.75]])],
        options(),
        calls=2,
    ),
    Case("no_steps", [tensor(np.zeros((1, 0, 1))), *CELL, state([[0]])], [tensor(np.zeros((1, 0, 1)))], options()),
    Case("hybrid", [batch_major(X), *HYBRID_CELL, state([[4.5], [2.875]])], [batch_major(H)], options(), version=2),
    Case(
        "hybrid_time_major_asymmetric",
        [time_major(X), *HYBRID_CELL, state([[4.5], [2.875]])],
        [time_major(H)],
        options(time_major=True, asymmetric_quantize_inputs=True),
        version=3,
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


@pytest.mark.parametrize(
    ("message", "case_"),
    [
        (
            "input must have 3 dimensions, got 2 [1, 1]",
            Case("", [tensor([[1]]), *CELL, state([[0]])], [tensor([[0]])], options()),
        ),
        (
            "hidden_state must have shape [3, 1], got [2, 1]",
            Case("", [batch_major(X), *CELL, state([[0], [0]])], [batch_major(H)], options(time_major=True)),
        ),
        (
            "hidden_state must be a variable tensor",
            Case("", [batch_major([[1]]), *CELL, tensor([[0]])], [batch_major([[0]])], options()),
        ),
    ],
)
def test_refuses(message: str, case_: Case) -> None:
    assert_refused(op, case_, message)
