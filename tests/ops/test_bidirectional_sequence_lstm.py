"""BIDIRECTIONAL_SEQUENCE_LSTM: two cells, merged and apart, both uses of aux_input, float and hybrid; refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.bidirectional_sequence_lstm import op
from gossamer.schema import ActivationFunctionType, BidirectionalSequenceLSTMOptions
from tests.ops.cases import Case, Operand, const, run_case, tensor
from tests.ops.lstm_cells import SHUT, Cell, H, X, adding_cell, inputs, projected, quantized, without_input_gate
from tests.ops.reference import assert_refused, output_of

RELU = ActivationFunctionType.RELU

# What adding_cell makes of X backwards.
BACK = [[4, 2, 0], [7.5, 5, 4]]
FORWARD, BACKWARD = adding_cell([[4.25], [4]]), adding_cell([[4], [7.5]])


def options(*, time_major: bool = False, **fields: Any) -> BidirectionalSequenceLSTMOptions:
    return BidirectionalSequenceLSTMOptions(fused_activation_function=RELU, time_major=time_major, **fields)


def batch_major(*values: Any) -> Operand:
    return tensor(np.stack(values, axis=-1))


def time_major(*values: Any) -> Operand:
    return tensor(np.stack([np.transpose(each) for each in values], axis=-1))


def operands(x: Operand, forward: Cell = FORWARD, backward: Cell = BACKWARD, **others: Operand) -> list[Operand | None]:
    cells = {
        direction + name: operand
        for direction, cell in (("fw_", forward), ("bw_", backward))
        for name, operand in cell.items()
    }
    return inputs(op, {"input": x, **cells, **others})


def aux_weights(forward: float, backward: float, dtype: Any = np.float32, **how: Any) -> dict[str, Any]:
    """Weights of a second input that goes to the update of the cells only."""
    return {
        f"{direction}aux_input_to_{gate}_weights": const([[value if gate == "cell" else 0]], dtype, **how)
        for direction, value in (("fw_", forward), ("bw_", backward))
        for gate in ("input", "forget", "cell", "output")
    }


CASES = [
    Case("batch_major", operands(batch_major(X)), [batch_major(H), batch_major(BACK)], options()),
    Case("time_major", operands(time_major(X)), [time_major(H), time_major(BACK)], options(time_major=True)),
    Case(
        "merged_time_major",
        operands(time_major(X)),
        [time_major(H, BACK)],
        options(time_major=True, merge_outputs=True),
    ),
    Case(
        "merged_batch_major",
        operands(batch_major(X[:1]), adding_cell([[4.25]]), adding_cell([[4]])),
        [batch_major(H[:1], BACK[:1])],
        options(merge_outputs=True),
    ),
    Case(
        "the_states_stay",
        operands(batch_major([[2]]), adding_cell([[5]]), adding_cell([[5]])),
        [batch_major([[5]]), batch_major([[5]])],
        options(),
        calls=2,
    ),
    Case(
        "cifg_and_cell_clip",
        operands(
            batch_major([[1, 2, -1]]),
            without_input_gate(adding_cell([[0]]), SHUT),
            without_input_gate(adding_cell([[2]]), SHUT),
        ),
        [batch_major([[1, 2, 0]]), batch_major([[2, 2, 0]])],
        options(cell_clip=2),
    ),
    Case(
        "projection",
        operands(
            batch_major([[1, 2]]),
            projected(adding_cell([[9, -4.25]], [[4.25]])),
            projected(adding_cell([[11, -5.25]], [[5.25]])),
        ),
        [tensor([[[2.5, -1], [9, -4.25]]]), tensor([[[11, -5.25], [4.5, -2]]])],
        options(),
    ),
    Case(
        "aux_is_the_backward_input",
        operands(
            batch_major([[1, 2, -1]]), adding_cell([[4.25]]), adding_cell([[7.5]]), aux_input=batch_major([[0, -1, 4]])
        ),
        [batch_major(H[:1]), batch_major(BACK[1:])],
        options(),
    ),
    Case(
        "aux_with_weights",
        operands(
            batch_major([[1, 2]]),
            adding_cell([[5]]),
            adding_cell([[6]]),
            aux_input=batch_major([[1, 0]]),
            **aux_weights(1, 2),
        ),
        [batch_major([[2, 5]]), batch_major([[6, 2]])],
        options(),
    ),
    Case(
        "hybrid",
        operands(batch_major(X), quantized(FORWARD), quantized(BACKWARD)),
        [batch_major(H), batch_major(BACK)],
        options(),
        version=2,
    ),
    Case(
        "hybrid_asymmetric_aux",
        operands(
            batch_major([[1, 2]]),
            quantized(adding_cell([[5]])),
            quantized(adding_cell([[6]])),
            aux_input=batch_major([[1, 0]]),
            **aux_weights(32, 64, np.int8, scale=1 / 32),
        ),
        [batch_major([[2, 5]]), batch_major([[6, 2]])],
        options(asymmetric_quantize_inputs=True),
        version=3,
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


def test_merged_batches_stay_apart() -> None:
    # LiteRT mixes them up.
    expected = batch_major(H, BACK)
    np.testing.assert_allclose(
        output_of(op, Case("", operands(batch_major(X)), [expected], options(merge_outputs=True))), expected.value
    )


BOTH = [batch_major(H), batch_major(BACK)]


@pytest.mark.parametrize(
    ("message", "case_"),
    [
        ("needs 48 inputs, -1 for those left out, got 39", Case("", operands(batch_major(X))[:39], BOTH, options())),
        (
            "the number of outputs must be 1 with merge_outputs True, got 2",
            Case("", operands(batch_major(X)), BOTH, options(merge_outputs=True)),
        ),
        ("input must have 3 dimensions, got 2 [2, 3]", Case("", operands(tensor(X)), BOTH, options())),
        (
            "fw_output_state must have 3 x 1 elements, got [2, 1]",
            Case("", operands(batch_major(X)), BOTH, options(time_major=True)),
        ),
        (
            "both cells must have the same type of weights",
            Case("", operands(batch_major(X), quantized(FORWARD)), BOTH, options()),
        ),
        (
            "both cells must have the same number of outputs",
            Case(
                "",
                operands(batch_major([[1]]), projected(adding_cell([[0, 0]], [[0]])), adding_cell([[0]])),
                BOTH,
                options(),
            ),
        ),
        (
            "aux_input is missing, but has weights",
            Case("", operands(batch_major(X), **aux_weights(1, 1)), BOTH, options()),
        ),
        (
            "aux_input without weights of its own must have shape [2, 3, 1], got [2, 1, 1]",
            Case("", operands(batch_major(X), aux_input=batch_major([[1], [1]])), BOTH, options()),
        ),
    ],
)
def test_refuses(message: str, case_: Case) -> None:
    assert_refused(op, case_, message)
