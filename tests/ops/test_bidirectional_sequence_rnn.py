"""BIDIRECTIONAL_SEQUENCE_RNN: both directions, merged or not, second inputs, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.bidirectional_sequence_rnn import op
from gossamer.schema import ActivationFunctionType, BidirectionalSequenceRNNOptions
from tests.ops.cases import Case, Operand, const, run_case, tensor
from tests.ops.reference import assert_refused

RELU = ActivationFunctionType.RELU

# Forwards h' = relu(x + h); backwards h' = relu(x - h).
X, AUX = [1, 2, 3], [10, 20, 30]
FORWARD, BACKWARD = [1, 3, 6], [2, 0, 3]  # backwards, from the last: 3, 2 - 3, 1 - 0
BACKWARD[0] = 1


def state(value: float) -> Operand:
    return tensor([[value]], variable=True)


def cells(forward: float, backward: float, dtype: Any = np.float32) -> list[Operand]:
    how = {} if dtype == np.float32 else {"scale": 1}
    bias = const([0], np.float32)
    return [
        *(const([[1]], dtype, **how), const([[1]], dtype, **how), bias, state(forward)),
        *(const([[1]], dtype, **how), const([[-1]], dtype, **how), bias, state(backward)),
    ]


def options(**fields: Any) -> BidirectionalSequenceRNNOptions:
    return BidirectionalSequenceRNNOptions(fused_activation_function=RELU, **fields)


def sequence(values: Any, time_major: bool = False) -> Operand:
    return tensor(values, shape=(3, 1, 1) if time_major else (1, 3, 1))


NONE = [None, None, None]
SECOND = [const([[0.5]], np.float32), const([[1]], np.float32)]

CASES = [
    Case("two_outputs", [sequence(X), *cells(6, 1), *NONE], [sequence(FORWARD), sequence(BACKWARD)], options()),
    Case(
        "time_major",
        [sequence(X, True), *cells(6, 1), *NONE],
        [sequence(FORWARD, True), sequence(BACKWARD, True)],
        options(time_major=True),
    ),
    Case(
        "merged",
        [sequence(X), *cells(6, 1), *NONE],
        [tensor([[[1, 1], [3, 0], [6, 3]]])],
        options(merge_outputs=True),
    ),
    # x + aux / 2 = 6, 12, 18 forwards; x + aux = 11, 22, 33 backwards: 33, 22 - 33, 11 - 0.
    Case(
        "aux_input_with_weights",
        [sequence(X), *cells(36, 11), sequence(AUX), *SECOND],
        [sequence([6, 18, 36]), sequence([11, 0, 33])],
        options(),
    ),
    # Backwards over aux: 30, 20 - 30, 10 - 0.
    Case(
        "aux_input_of_the_backward_cell",
        [sequence(X, True), *cells(6, 10), sequence(AUX, True), None, None],
        [sequence(FORWARD, True), sequence([10, 0, 30], True)],
        options(time_major=True),
    ),
    Case(
        "aux_input_is_not_read_in_batch_major_form",
        [sequence(X), *cells(6, 1), sequence(AUX), None, None],
        [sequence(FORWARD), sequence(BACKWARD)],
        options(),
    ),
    Case(
        "hybrid",
        [sequence(X), *cells(6, 1, np.int8), *NONE],
        [tensor([[[1, 1], [3, 0], [6, 3]]])],
        options(merge_outputs=True),
        version=2,
        atol=1e-5,
    ),
    # Three steps, so three runs: the second begins with 6 and ends with 12, the third with 18.
    Case(
        "hybrid_time_major_runs_again_for_every_step",
        [sequence(X, True), *cells(18, 1, np.int8), *NONE],
        [sequence([13, 15, 18], True), sequence([1, 0, 2], True)],
        options(time_major=True),
        version=2,
        atol=1e-5,
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


@pytest.mark.parametrize(
    ("message", "case_"),
    [
        (
            "needs 12 inputs, -1 for those left out, got 9",
            Case("", [sequence(X), *cells(0, 0)], [sequence(X), sequence(X)], options()),
        ),
        (
            "needs 1 outputs with merge_outputs True, got 2",
            Case("", [sequence(X), *cells(0, 0), *NONE], [sequence(X), sequence(X)], options(merge_outputs=True)),
        ),
        (
            "aux_input, fw_aux_weights and bw_aux_weights must be given together",
            Case(
                "", [sequence(X), *cells(0, 0), sequence(AUX), SECOND[0], None], [sequence(X), sequence(X)], options()
            ),
        ),
        (
            "aux_input without weights of its own must have shape [1, 3, 1], got [3, 1, 1]",
            Case(
                "", [sequence(X), *cells(0, 0), sequence(AUX, True), None, None], [sequence(X), sequence(X)], options()
            ),
        ),
        (
            "bw_aux_weights must be float32, got int8",
            Case(
                "",
                [sequence(X), *cells(0, 0), sequence(AUX), SECOND[0], const([[1]], np.int8, scale=1)],
                [sequence(X), sequence(X)],
                options(),
            ),
        ),
    ],
)
def test_refuses(message: str, case_: Case) -> None:
    assert_refused(op, case_, message)
