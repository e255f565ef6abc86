"""LSTM: one step of the full kernel, float, hybrid and in both integer forms; the basic kernel; refusals."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from gossamer.errors import PrepareError
from gossamer.ops.lstm import op
from gossamer.schema import ActivationFunctionType, LSTMKernelType, LSTMOptions
from tests.ops.cases import Case, Operand, const, model_of, run_case, tensor
from tests.ops.lstm_cells import (
    SHUT,
    Cell,
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

RELU, TANH = ActivationFunctionType.RELU, ActivationFunctionType.TANH
BASIC = LSTMKernelType.BASIC


def options(activation: int = RELU, **fields: Any) -> LSTMOptions:
    return LSTMOptions(fused_activation_function=activation, **fields)


def case(name: str, x: Operand, cell: Cell, output: Operand, given: Any = None, **how: Any) -> Case:
    count = 24 if "forget_layer_norm_coefficients" in cell else 20
    return Case(name, inputs(op, {"input": x, **cell}, count), [output], given or options(), **how)


def basic(name: str, operands: list[Operand], outputs: list[Operand], **how: Any) -> Case:
    return Case(name, operands, outputs, options(TANH, kernel_type=BASIC), version=2, **how)


def basic_weights(values: Any = ((0, 0), (1, 0.5), (0, 0), (0, 0))) -> Operand:
    return const(values, np.float32)


def joined_state(x: float, h: float, c: float) -> tuple[float, float]:
    """Output and state of the basic cell with the weights above and open gates."""
    renewed = np.tanh(x + h / 2) + c
    return np.tanh(renewed), renewed


OPEN_GATES = const([20, 0, 20, 20], np.float32)
FIRST = joined_state(1, 2, 0.25)
SECOND = joined_state(1, *joined_state(1, 0, 0))

# In uint8 64 over the zero point is 1/2, and the bias' scale makes of that 1/4 by the first weight and -1/8 by the
# second, each with 12 fraction bits. The formulas give a state of 0.495 and an output of 0.458.
BYTES = const([[100, 100], [132, 116], [100, 100], [100, 100]], np.uint8, scale=1 / 32, zero_point=100)
BYTES_BIAS = const([32767, 0, 32767, 32767], np.int32, scale=1 / 4096)

CASES = [
    case("two_steps", tensor([[2], [-1]]), adding_cell([[5], [0]]), tensor([[5], [0]]), calls=2),
    case("layer_norm_left_out", tensor([[2]]), adding_cell([[2]], forget_layer_norm_coefficients=None), tensor([[2]])),
    case("no_rows", tensor(np.zeros((0, 1))), adding_cell(np.zeros((0, 1))), tensor(np.zeros((0, 1)))),
    case(
        "tanh",
        tensor([[1]]),
        adding_cell([[np.tanh(np.tanh(1))]], [[np.tanh(1)]]),
        tensor([[np.tanh(np.tanh(1))]]),
        options(TANH),
    ),
    case("cifg", tensor([[2]]), without_input_gate(adding_cell([[3]]), SHUT), tensor([[3]]), calls=2),
    case("cell_clip", tensor([[2]]), adding_cell([[1.5]]), tensor([[1.5]]), options(cell_clip=1.5)),
    case("projection", tensor([[1]]), projected(adding_cell([[7, -3.25]], [[3.25]])), tensor([[7, -3.25]]), calls=2),
    case("layer_norm", tensor([[3]]), normalized([[8, 0]]), tensor([[8, 0]]), calls=2),
    case("hybrid", tensor([[2], [-1]]), quantized(adding_cell([[5], [0]])), tensor([[5], [0]]), calls=2, version=3),
    case(
        "hybrid_asymmetric",
        tensor([[2]]),
        quantized(adding_cell([[5]]), dtype=np.uint8),
        tensor([[5]]),
        options(asymmetric_quantize_inputs=True),
        calls=2,
        version=4,
    ),
    case("hybrid_layer_norm", tensor([[3]]), quantized(normalized([[8, 0]])), tensor([[8, 0]]), calls=2, version=3),
    basic(
        "basic",
        [tensor([[1]]), tensor([[2]]), basic_weights(), OPEN_GATES, tensor([[0.25]])],
        [tensor([[FIRST[0]]]), tensor([[FIRST[1]]]), tensor([[1, 2]]), tensor([[20, 2, 20, 20]])],
    ),
    basic(
        "basic_with_variables",
        [tensor([[1]]), state([[SECOND[0]]]), basic_weights(), OPEN_GATES, state([[SECOND[1]]])],
        [
            tensor([[SECOND[0]]]),
            tensor([[SECOND[1]]]),
            tensor([[1, joined_state(1, 0, 0)[0]]]),
            tensor([[20, 1 + joined_state(1, 0, 0)[0] / 2, 20, 20]]),
        ],
        calls=2,
    ),
    basic(
        "basic_uint8",
        [
            tensor([[192]], np.uint8, scale=1 / 128, zero_point=128),
            tensor([[64]], np.uint8, scale=1 / 128, zero_point=128),
            BYTES,
            BYTES_BIAS,
            tensor([[512]], np.int16, scale=2**-11),
        ],
        [
            tensor([[187]], np.uint8, scale=1 / 128, zero_point=128),
            tensor([[1014]], np.int16, scale=2**-11),
            tensor([[192, 64]], np.uint8, scale=1 / 128, zero_point=128),
            tensor([[32767, 1024, 32767, 32767]], np.int16, scale=2**-12),
        ],
    ),
    # Half the update.
    basic(
        "basic_uint8_with_a_smaller_scale",
        [
            tensor([[192]], np.uint8, scale=1 / 128, zero_point=128),
            tensor([[64]], np.uint8, scale=1 / 128, zero_point=128),
            const([[100, 100], [132, 116], [100, 100], [100, 100]], np.uint8, scale=1 / 64, zero_point=100),
            const([65534, 0, 65534, 65534], np.int32, scale=1 / 8192),
            tensor([[512]], np.int16, scale=2**-11),
        ],
        [
            tensor([[174]], np.uint8, scale=1 / 128, zero_point=128),
            tensor([[767]], np.int16, scale=2**-11),
            tensor([[192, 64]], np.uint8, scale=1 / 128, zero_point=128),
            tensor([[32767, 512, 32767, 32767]], np.int16, scale=2**-12),
        ],
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


GATE = tensor(0, np.int16, scale=2**-12)
PRODUCT = tensor(0, np.int8, scale=1 / 64, zero_point=-3)
INT8_STATE = tensor([[82]], np.int8, scale=1 / 128)


def byte_cell(output_state: Any, cell_state: Any) -> Cell:
    """c' = (c + tanh(+-1)) / 2 of two cells, and as output the difference of their tanh(c'), plus 0.1."""
    gates = ("forget", "cell", "output")
    recurrent = const([[0], [0]], np.int8, scale=1 / 64)
    return {
        **integer_normalized(output_state, cell_state),
        **dict.fromkeys(("input_to_input_weights", "recurrent_to_input_weights", "input_gate_bias")),
        "input_layer_norm_coefficients": None,
        **{f"recurrent_to_{gate}_weights": recurrent for gate in gates},
        "forget_gate_bias": const([0, 0], np.int32, scale=2**-20),
        "projection_weights": const([[64, -64]], np.int8, scale=1 / 64),
        "projection_bias": const([209715], np.int32, scale=2**-21),
        "output_state": state(output_state, np.int8, scale=1 / 64, zero_point=-20),
        "cell_state": state(cell_state, np.int16, scale=2**-15),
    }


# The fifth of five is the cell's output before a projection. The formulas give outputs of 82.2, of 116.3 (after two
# steps), and of 72.5 - 20.
FIVE = [GATE, GATE, GATE, GATE, INT8_STATE]
TWELVE = [GATE, PRODUCT, PRODUCT] * 4
INTEGER_CASES = [
    (FIVE, case("int8", tensor([[64]], np.int8, scale=1 / 64), integer_cell([[82]], [[1560]]), INT8_STATE, version=4)),
    (
        FIVE,
        case(
            "int8_layer_norm",
            tensor([[10], [42]], np.int8, scale=1 / 64, zero_point=-20),
            integer_normalized([[116, -116]] * 2, [[3119, -3119]] * 2),
            tensor([[116, -116]] * 2, np.int8, scale=1 / 128),
            calls=2,
        ),
    ),
    (
        TWELVE,
        case(
            "int8_gates",
            tensor([[74]], np.int8, scale=1 / 64, zero_point=10),
            byte_cell([[52]], [[18716, -18716]]),
            tensor([[52]], np.int8, scale=1 / 64, zero_point=-20),
            calls=2,
        ),
    ),
]


@pytest.mark.parametrize(("intermediates", "integer"), INTEGER_CASES, ids=[each.id for _, each in INTEGER_CASES])
def test_integer(intermediates: list[Operand], integer: Case, backend: Any) -> None:
    run_case(with_intermediates(backend, intermediates), op, integer)


ONE, CELL = tensor([[1]]), adding_cell([[0]])
INTEGER_ONE = tensor([[64]], np.int8, scale=1 / 64)
BASIC_INPUTS = [ONE, ONE, basic_weights(), OPEN_GATES, ONE]
BASIC_OUTPUTS = [ONE, ONE, tensor([[1, 2]]), tensor([[1, 2, 3, 4]])]


@pytest.mark.parametrize(
    ("message", "case_"),
    [
        ("kernel_type must be 0 (FULL) or 1 (BASIC), got 2", case("", ONE, CELL, ONE, options(kernel_type=2))),
        (
            "needs 20 or 24 inputs, -1 for those left out, got 21",
            Case("", inputs(op, {"input": ONE, **CELL}, 21), [ONE], options()),
        ),
        (
            "needs 1 output, got 2",
            Case("", inputs(op, {"input": ONE, **CELL}, 20), [ONE, ONE], options()),
        ),
        ("input must have 2 dimensions, got 3 [1, 1, 1]", case("", tensor([[[1]]]), CELL, ONE)),
        ("input must be float32 here, got uint8", case("", tensor([[1]], np.uint8, scale=1), CELL, ONE)),
        (
            "recurrent_to_cell_weights must have shape [1, 1], got [1]",
            case("", ONE, {**CELL, "recurrent_to_cell_weights": const([1], np.float32)}, ONE),
        ),
        ("output_state is missing", case("", ONE, {**CELL, "output_state": None}, ONE)),
        ("output_state must be a variable tensor", case("", ONE, {**CELL, "output_state": tensor([[0]])}, ONE)),
        ("needs 5 intermediate tensors for int8, got 0", case("", INTEGER_ONE, integer_cell([[0]], [[0]]), INT8_STATE)),
        ("the basic kernel needs 5 inputs and 4 outputs, got 5 and 1", basic("", BASIC_INPUTS, [ONE])),
        (
            "the basic kernel takes float32 throughout, or uint8 with int32 bias and int16 states; got input float32",
            basic("", [*BASIC_INPUTS[:4], tensor([[0]], np.int16)], BASIC_OUTPUTS),
        ),
        (
            "weights must have shape [4, 2], got [4, 1]",
            basic("", [ONE, ONE, basic_weights([[0]] * 4), OPEN_GATES, ONE], BASIC_OUTPUTS),
        ),
    ],
)
def test_refuses(message: str, case_: Case) -> None:
    assert_refused(op, case_, message)


@pytest.mark.parametrize(
    ("message", "changes"),
    [
        (
            "with 12 intermediate tensors an int8 cell must have layer normalization and a projection with bias",
            {"projection_bias": None},
        ),
        (
            "cell_state must have the scale 2**-15, got 0.000488281",
            {"cell_state": state([[0, 0]], np.int16, scale=2**-11)},
        ),
    ],
)
def test_refuses_integer_gates(message: str, changes: Cell) -> None:
    output = tensor([[0]], np.int8, scale=1 / 64, zero_point=-20)
    refused = case("", INTEGER_ONE, {**byte_cell([[0]], [[0, 0]]), **changes}, output)
    interpreter = with_intermediates(REFERENCE, TWELVE)(model_content=model_of(op, refused))
    with pytest.raises(PrepareError, match=re.escape(message)):
        interpreter.allocate_tensors()
