"""UNIDIRECTIONAL_SEQUENCE_LSTM: cells of every kind, float, hybrid and integer, in both layouts; refusals."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from gossamer.errors import PrepareError
from gossamer.ops.unidirectional_sequence_lstm import op
from gossamer.schema import ActivationFunctionType, UnidirectionalSequenceLSTMOptions
from tests.ops.cases import Case, Operand, const, model_of, run_case, tensor
from tests.ops.lstm_cells import (
    SHUT,
    Cell,
    H,
    X,
    adding_cell,
    inputs,
    integer_cell,
    integer_normalized,
    normalized,
    projected,
    quantized,
    state,
    with_intermediates,
    without_input_gate,
)
from tests.ops.reference import REFERENCE, assert_refused

NONE, RELU, TANH = ActivationFunctionType.NONE, ActivationFunctionType.RELU, ActivationFunctionType.TANH


def options(activation: int = RELU, **fields: Any) -> UnidirectionalSequenceLSTMOptions:
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
        options(TANH),
    ),
    case(
        "no_activation_puts_out_the_gate",
        batch_major([[1, 2, -1]]),
        adding_cell([[0.25]], [[3.75]]),
        batch_major([[1, 2.5, 0.25]]),
        options(NONE),
    ),
    case(
        "cifg",
        batch_major(X),
        without_input_gate(adding_cell([[0.25], [4]]), SHUT),
        batch_major([[1, 2.5, 0.25], [0, 0, 4]]),
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
        tensor([[[2.5, -1], [4.0, -4.0]]]),
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
    case(
        "hybrid_layer_norm",
        batch_major([[2, 5]]),
        quantized(normalized([[8, 0]])),
        tensor([[[4, 0], [8, 0]]]),
        version=2,
    ),
    case("hybrid_diagonal", batch_major(X), {**quantized(adding_cell(LAST)), **diagonal()}, batch_major(H), version=4),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


GATE = tensor(0, np.int16, scale=2**-12)


def int8(values: Any, scale: float = 1 / 128, zero_point: int = 0) -> Operand:
    return tensor(values, np.int8, scale=scale, zero_point=zero_point)


def integer_projected(output_state: Any, cell_state: Any) -> Cell:
    """Puts out h + 0.1 and -h / 2, and takes the first back in."""
    zero = const([[0, 0]], np.int8, scale=1 / 64)
    return {
        **integer_cell(output_state, cell_state),
        **{f"recurrent_to_{gate}_weights": zero for gate in ("input", "forget", "output")},
        "recurrent_to_cell_weights": const([[32, 0]], np.int8, scale=1 / 64),
        "projection_weights": const([[64], [-32]], np.int8, scale=1 / 64),
        "projection_bias": const([819, 0], np.int32, scale=2**-13),
    }


def integer_peephole() -> dict[str, Any]:
    weights = dict.fromkeys(("cell_to_input_weights", "cell_to_output_weights"), const([0], np.int16, scale=2**-10))
    return {**weights, "cell_to_forget_weights": const([-32768], np.int16, scale=2**-10)}


# 1, -1/2 and 127/64. Outputs of the formulas are 82.2, 67.3, 117.2; with CIFG at one half 46.5, 4.7, 59.2; with the
# cells clipped 59.2, 29.8, 59.2; with the peephole 82.2, -22.4, 83.5; projected 95.0, 84.5, 127 and their halves.
INTEGER_X = int8([[[64], [-32], [127]]], 1 / 64)
NO_INPUT_GATE: dict[str, Any] = dict.fromkeys(
    ("input_to_input_weights", "recurrent_to_input_weights", "input_gate_bias")
)

INTEGER_CASES = [
    case("int8", INTEGER_X, integer_cell([[117]], [[3197]]), int8([[[82], [67], [117]]])),
    case(
        "int8_time_major",
        int8([[[64], [0]], [[-32], [127]]], 1 / 64),
        integer_cell([[67], [95]], [[1195], [1971]]),
        int8([[[82], [0]], [[67], [95]]]),
        options(time_major=True),
    ),
    case(
        "int8_zero_points",
        int8([[[74], [-22]]], 1 / 64, 10),
        integer_cell([[47]], [[1195]], -20),
        int8([[[62], [47]]], zero_point=-20),
    ),
    case(
        "int8_cifg",
        INTEGER_X,
        integer_cell([[59]], [[1024]], **NO_INPUT_GATE, forget_gate_bias=const([0], np.int32, scale=2**-12)),
        int8([[[46], [5], [59]]]),
    ),
    case(
        "int8_cell_clip",
        INTEGER_X,
        integer_cell([[59]], [[1024]]),
        int8([[[59], [30], [59]]]),
        options(cell_clip=0.5),
    ),
    case(
        "int8_peephole",
        INTEGER_X,
        integer_cell([[83]], [[1594]], **integer_peephole()),
        int8([[[82], [-22], [83]]]),
    ),
    case(
        "int8_projection",
        INTEGER_X,
        integer_projected([[127, -59]], [[3305]]),
        int8([[[95, -41], [85, -36], [127, -59]]]),
    ),
    case(
        "int8_proj_clip",
        INTEGER_X,
        integer_projected([[64, -58]], [[3058]]),
        int8([[[64, -41], [64, -31], [64, -58]]]),
        options(proj_clip=0.5),
    ),
    case(
        "int8_layer_norm",
        int8([[[64], [32]]], 1 / 64),
        integer_normalized([[116, -116]], [[3119, -3119]]),
        int8([[[82, -82], [116, -116]]]),
    ),
]


def intermediates_of(integer: Case) -> list[Operand]:
    """The gates', which layer normalization looks at, and that of the cell's output before the projection."""
    return [GATE, GATE, GATE, GATE, integer.outputs[0]]


@pytest.mark.parametrize("integer", INTEGER_CASES, ids=lambda each: each.id)
def test_integer(integer: Case, backend: Any) -> None:
    run_case(with_intermediates(backend, intermediates_of(integer)), op, integer)


ONE = batch_major([[1]])
FLOAT_CELL = adding_cell([[0]])


@pytest.mark.parametrize(
    ("message", "case_"),
    [
        (
            "needs 20 or 24 inputs, -1 for those left out, got 19",
            Case("", inputs(op, {"input": ONE, **FLOAT_CELL}, 19), [ONE], options()),
        ),
        ("input must have 3 dimensions, got 2 [1, 1]", case("", tensor([[1]]), FLOAT_CELL, ONE)),
        (
            "input_to_cell_weights must have shape [1, 1], got [1, 2]",
            case("", ONE, {**FLOAT_CELL, "input_to_cell_weights": const([[1, 2]], np.float32)}, ONE),
        ),
        (
            "recurrent_to_input_weights must be left out where input_to_input_weights are (CIFG)",
            case("", ONE, {**FLOAT_CELL, "input_to_input_weights": None}, ONE),
        ),
        (
            "cell_to_forget_weights must be left out where cell_to_output_weights are",
            case("", ONE, {**FLOAT_CELL, "cell_to_forget_weights": const([0], np.float32)}, ONE),
        ),
        (
            "projection_bias must be left out without projection_weights",
            case("", ONE, {**FLOAT_CELL, "projection_bias": const([0], np.float32)}, ONE),
        ),
        (
            "without a projection there must be as many outputs as cells, got 2, 1",
            case("", ONE, {**projected(FLOAT_CELL), "projection_weights": None, "projection_bias": None}, ONE),
        ),
        (
            "input_layer_norm_coefficients must be left out where forget_layer_norm_coefficients are",
            Case(
                "",
                inputs(op, {"input": ONE, **FLOAT_CELL, "input_layer_norm_coefficients": const([0], np.float32)}),
                [ONE],
                options(),
            ),
        ),
        (
            "cell_state must be a variable tensor",
            case("", ONE, {**FLOAT_CELL, "cell_state": tensor([[0]])}, ONE),
        ),
        (
            "output_state must have 1 x 1 elements, got [2, 1]",
            case("", ONE, {**FLOAT_CELL, "output_state": state([[0], [0]])}, ONE),
        ),
        (
            "input_to_forget_weights must be float32 here, got int8",
            case("", ONE, {**FLOAT_CELL, "input_to_forget_weights": const([[1]], np.int8, scale=1)}, ONE),
        ),
        (
            "recurrent_to_cell_weights must have one positive scale, got 0 scales",
            case("", ONE, {**quantized(FLOAT_CELL), "recurrent_to_cell_weights": const([[1]], np.int8)}, ONE),
        ),
        ("cell_clip must not be negative, got -1", case("", ONE, FLOAT_CELL, ONE, options(cell_clip=-1))),
        ("fused_activation_function must be 0 to 5, got 9", case("", ONE, FLOAT_CELL, ONE, options(9))),
        ("needs 5 intermediate tensors for int8, got 0", INTEGER_CASES[0]),
    ],
)
def test_refuses(message: str, case_: Case) -> None:
    assert_refused(op, case_, message)


@pytest.mark.parametrize(
    ("message", "changes"),
    [
        (
            "cell_state must have a scale of 2**-15 to 2**-9, got 0.0001",
            {"cell_state": state([[0]], np.int16, scale=1e-4)},
        ),
        (
            "recurrent_to_cell_weights must have one positive scale, got 0 scales",
            {"recurrent_to_cell_weights": const([[0]], np.int8)},
        ),
        ("cell_gate_bias must be int32 here, got float32", {"cell_gate_bias": const([0], np.float32)}),
        ("recurrent_to_output_weights must have 2 dimensions", {"recurrent_to_output_weights": const([0], np.int8)}),
    ],
)
def test_refuses_integer_cells(message: str, changes: Cell) -> None:
    refused = case("", INTEGER_X, {**integer_cell([[0]], [[0]]), **changes}, INTEGER_CASES[0].outputs[0])
    make = with_intermediates(REFERENCE, intermediates_of(refused))
    interpreter = make(model_content=model_of(op, refused))
    with pytest.raises(PrepareError, match=re.escape(message)):
        interpreter.allocate_tensors()
