"""UNIDIRECTIONAL_SEQUENCE_LSTM: cells of every kind, float, hybrid and integer, in both layouts; refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.unidirectional_sequence_lstm import op
from gossamer.schema import ActivationFunctionType, TensorType, UnidirectionalSequenceLSTMOptions
from tests.ops.cases import Case, Operand, const, model_of, run_case, tensor
from tests.ops.lstm_cells import (
    SHUT,
    Cell,
    H,
    X,
    adding_cell,
    inputs,
    integer_cell,
    normalized,
    projected,
    quantized,
    state,
    with_intermediates,
    without_input_gate,
)
from tests.ops.reference import REFERENCE, assert_refused

ACTIVATIONS = ActivationFunctionType


def options(activation: ActivationFunctionType = ACTIVATIONS.RELU, **fields: Any) -> UnidirectionalSequenceLSTMOptions:
    return UnidirectionalSequenceLSTMOptions(fused_activation_function=activation, **fields)


def batch_major(values: Any) -> Operand:
    return tensor(np.array(values)[..., None])


def time_major(values: Any) -> Operand:
    return tensor(np.array(values).T[..., None])


def case(name: str, x: Operand, cell: Cell, output: Operand, given: Any = None, **how: Any) -> Case:
    count = 24 if "forget_layer_norm_coefficients" in cell else 20
    return Case(name, inputs(op, {"input": x, **cell}, count), [output], given or options(), **how)


def peephole(forget: float = 0, output: float = 0, admit: float = 0) -> Cell:
    """Weights from the cell's state to the gates, in a cell whose outputs do not return."""
    return {
        "recurrent_to_cell_weights": const([[0]], np.float32),
        "cell_to_input_weights": const([admit], np.float32),
        "cell_to_forget_weights": const([forget], np.float32),
        "cell_to_output_weights": const([output], np.float32),
    }


def diagonal() -> Cell:
    names = [f"recurrent_to_{gate}_weights" for gate in ("input", "forget", "output")]
    return {
        **{name: const([0], np.float32) for name in names},
        "recurrent_to_cell_weights": const([0.5], np.float32),
    }


LAST = [[4.25], [4]]
COUNT = batch_major([[1, 2, 3]])
PROJECTED = tensor([[[2.5, -1], [9, -4.25]]])
TANH_H = np.tanh(np.tanh(0.5))

CASES = [
    case("batch_major", batch_major(X), adding_cell(LAST), batch_major(H)),
    case("time_major", time_major(X), adding_cell(LAST), time_major(H), options(time_major=True)),
    case("the_states_stay", batch_major([[2]]), adding_cell([[5]]), batch_major([[5]]), calls=2),
    case("states_of_any_shape", batch_major(X), adding_cell([4.25, 4]), batch_major(H)),
    case("no_steps", tensor(np.zeros((1, 0, 1))), adding_cell([[0]]), tensor(np.zeros((1, 0, 1)))),
    case(
        "tanh",
        batch_major([[0.5]]),
        adding_cell([[TANH_H]], [[np.tanh(0.5)]]),
        batch_major([[TANH_H]]),
        options(ACTIVATIONS.TANH),
    ),
    case(
        "no_activation_puts_out_the_gate",
        batch_major([[1, 2, -1]]),
        adding_cell([[0.25]], [[3.75]]),
        batch_major([[1, 2.5, 0.25]]),
        options(ACTIVATIONS.NONE),
    ),
    case(
        "cifg", batch_major(X), without_input_gate(adding_cell([[0.25], [4]]), SHUT), batch_major([[1, 2.5, 0.25], [0, 0, 4]])
    ),
    case("cell_clip", batch_major([[1, 2, -1]]), adding_cell([[3]]), batch_major([[1, 3, 3]]), options(cell_clip=3)),
    case("peephole_forget", COUNT, {**adding_cell([[3]]), **peephole(forget=-40)}, batch_major([[1, 2, 3]])),
    case("peephole_input", COUNT, {**adding_cell([[1]]), **peephole(admit=-40)}, batch_major([[1, 1, 1]])),
    case(
        "peephole_output_sees_the_new_state",
        COUNT,
        {**adding_cell([[0]], [[6]]), **peephole(output=-40)},
        batch_major([[0, 0, 0]]),
    ),
    case("projection", batch_major([[1, 2]]), projected(adding_cell([[9, -4.25]], [[4.25]])), PROJECTED),
    case(
        "proj_clip",
        batch_major([[1, 2]]),
        projected(adding_cell([[4, -4]], [[4.25]])),
        tensor([[[2.5, -1], [4, -4]]]),
        options(proj_clip=4),
    ),
    case("layer_norm", batch_major([[2, 5]]), normalized([[8, 0]]), tensor([[[4, 0], [8, 0]]])),
    case("diagonal", batch_major(X), {**adding_cell(LAST), **diagonal()}, batch_major(H)),
    case("hybrid", batch_major(X), quantized(adding_cell(LAST)), batch_major(H), version=2),
    case("hybrid_uint8", batch_major(X), quantized(adding_cell(LAST), dtype=np.uint8), batch_major(H), version=2),
    case(
        "hybrid_asymmetric",
        time_major(X),
        quantized(adding_cell(LAST)),
        time_major(H),
        options(time_major=True, asymmetric_quantize_inputs=True),
        version=3,
    ),
    case(
        "hybrid_peephole",
        COUNT,
        quantized({**adding_cell([[3]]), **peephole(forget=-40)}, 0.5),
        batch_major([[1, 2, 3]]),
        version=2,
    ),
    case(
        "hybrid_projection",
        batch_major([[1, 2]]),
        quantized(projected(adding_cell([[9, -4.25]], [[4.25]])), 1 / 32),
        PROJECTED,
        version=2,
    ),
    case("hybrid_layer_norm", batch_major([[2, 5]]), quantized(normalized([[8, 0]])), tensor([[[4, 0], [8, 0]]]), version=2),
    case("hybrid_diagonal", batch_major(X), {**quantized(adding_cell(LAST)), **diagonal()}, batch_major(H), version=4),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


GATE = tensor(0, np.int16, scale=2**-12)
INTERMEDIATES = [GATE, GATE, GATE, GATE, tensor(0, np.int8, scale=1 / 128)]
INTEGER_X = tensor([[[64], [-32], [127]]], np.int8, scale=1 / 64)


def integer_output(values: Any) -> Operand:
    return tensor(values, np.int8, scale=1 / 128)


INTEGER_CASES = [
    case("tanh", INTEGER_X, integer_cell([[0]], [[0]]), integer_output([[[0], [0], [0]]])),
]


@pytest.mark.parametrize("integer", INTEGER_CASES, ids=lambda each: each.id)
def test_integer(integer: Case, backend: Any) -> None:
    run_case(with_intermediates(backend, INTERMEDIATES), op, integer)
