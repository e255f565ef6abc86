"""Operands of LSTM cells whose outputs can be told by hand, for the tests of the three LSTM operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gossamer.model.reader import read_model
from gossamer.model.writer import write_model
from gossamer.ops.op_def import OpDef
from gossamer.schema import Tensor
from tests.ops.cases import Operand, const, tensor

Cell = dict[str, Operand | None]

# Biases that let a gate pass everything or nothing.
OPEN, SHUT = 20.0, -20.0

# What adding_cell puts out for three steps of two batches, if its activation is RELU.
X = [[1, 2, -1], [0, -1, 4]]
H = [[1, 3.5, 4.25], [0, 0, 4]]


def state(values: Any, dtype: Any = np.float32, **how: Any) -> Operand:
    """A state, with the values that it must end up with."""
    return tensor(values, dtype, variable=True, **how)


def adding_cell(output_state: Any, cell_state: Any = None, **changes: Operand | None) -> Cell:
    """c' = c + activation(x + h / 2), h' = activation(c'): one input, one cell, and all gates open."""
    return {
        **{f"input_to_{gate}_weights": const([[0]], np.float32) for gate in ("input", "forget", "output")},
        "input_to_cell_weights": const([[1]], np.float32),
        **{f"recurrent_to_{gate}_weights": const([[0]], np.float32) for gate in ("input", "forget", "output")},
        "recurrent_to_cell_weights": const([[0.5]], np.float32),
        **{f"{gate}_gate_bias": const([OPEN], np.float32) for gate in ("input", "forget", "output")},
        "cell_gate_bias": const([0], np.float32),
        "output_state": state(output_state),
        "cell_state": state(output_state if cell_state is None else cell_state),
        **changes,
    }


def without_input_gate(cell: Cell, forget_bias: float) -> Cell:
    """CIFG."""
    left_out = ("input_to_input_weights", "recurrent_to_input_weights", "input_gate_bias")
    return {**cell, **dict.fromkeys(left_out), "forget_gate_bias": const([forget_bias], np.float32)}


def quantized(cell: Cell, scale: float = 1 / 64, dtype: Any = np.int8) -> Cell:
    """The cell with 8-bit weights, uint8 ones being int8 in disguise. Its weights must be multiples of the scale."""

    def rounded(name: str, operand: Operand | None) -> Operand | None:
        if operand is None or not name.endswith("weights"):
            return operand
        return const(np.rint(operand.value / scale).astype(np.int8).view(dtype), dtype, scale=scale)

    return {name: rounded(name, operand) for name, operand in cell.items()}


def projected(cell: Cell) -> Cell:
    """The cell with a projection of its one cell to two outputs, (2 h + 1/2, -h), of which the first returns."""
    gates = ("input", "forget", "output")
    return {
        **cell,
        **{f"recurrent_to_{gate}_weights": const([[0, 0]], np.float32) for gate in gates},
        "recurrent_to_cell_weights": const([[0.5, 0]], np.float32),
        "projection_weights": const([[2], [-1]], np.float32),
        "projection_bias": const([0.5, 0], np.float32),
    }


def normalized(output_state: Any) -> Cell:
    """A cell of two with layer normalization: c' = c + (4, 0) for an input above 0, h' = c', by RELU."""
    gates = ("input", "forget", "output")
    return {
        **{f"input_to_{gate}_weights": const([[0], [0]], np.float32) for gate in gates},
        "input_to_cell_weights": const([[1], [-1]], np.float32),
        **{f"recurrent_to_{gate}_weights": const(np.zeros((2, 2)), np.float32) for gate in (*gates, "cell")},
        **{f"{gate}_gate_bias": const([OPEN, OPEN], np.float32) for gate in gates},
        "cell_gate_bias": const([1, 1], np.float32),
        "output_state": state(output_state),
        "cell_state": state(output_state),
        **{f"{gate}_layer_norm_coefficients": const([1, 1], np.float32) for gate in gates},
        "cell_layer_norm_coefficients": const([3, 3], np.float32),
    }


def integer_cell(output_state: Any, cell_state: Any, zero_point: int = 0, **changes: Operand | None) -> Cell:
    """c' = c + tanh(x + h / 2), h' = tanh(c'), in int8: scales 1/64, of the outputs 1/128, of the cells 2**-11."""
    zero, bias = const([[0]], np.int8, scale=1 / 64), const([32767], np.int32, scale=2**-12)
    gates = ("input", "forget", "output")
    return {
        **{f"input_to_{gate}_weights": zero for gate in gates},
        "input_to_cell_weights": const([[64]], np.int8, scale=1 / 64),
        **{f"recurrent_to_{gate}_weights": zero for gate in gates},
        "recurrent_to_cell_weights": const([[32]], np.int8, scale=1 / 64),
        **{f"{gate}_gate_bias": bias for gate in gates},
        "cell_gate_bias": const([0], np.int32, scale=2**-12),
        "output_state": state(output_state, np.int8, scale=1 / 128, zero_point=zero_point),
        "cell_state": state(cell_state, np.int16, scale=2**-11),
        **changes,
    }


def integer_normalized(output_state: Any, cell_state: Any) -> Cell:
    """An int8 cell of two with layer normalization: c' = c + tanh(+-1), h' = tanh(c'), for an input above 0."""
    zero, one = const([[0], [0]], np.int8, scale=1 / 64), const([1024, 1024], np.int16, scale=2**-10)
    gates = ("input", "forget", "output")
    return {
        **integer_cell(output_state, cell_state),
        **{f"input_to_{gate}_weights": zero for gate in gates},
        "input_to_cell_weights": const([[64], [-64]], np.int8, scale=1 / 64),
        **{f"recurrent_to_{gate}_weights": const(np.zeros((2, 2)), np.int8, scale=1 / 64) for gate in (*gates, "cell")},
        **{f"{gate}_gate_bias": const([2**23, 2**23], np.int32, scale=2**-20) for gate in gates},
        "cell_gate_bias": const([0, 0], np.int32, scale=2**-20),
        **{f"{gate}_layer_norm_coefficients": one for gate in (*gates, "cell")},
    }


def inputs(op: OpDef, operands: Mapping[str, Operand | None], count: int | None = None) -> list[Operand | None]:
    """The first ``count`` inputs of the operator, by name."""
    return [operands.get(name.rstrip("?")) for name in op.inputs[:count]]


def with_intermediates(make_interpreter: Any, tensors: Sequence[Operand]) -> Any:
    """A function that makes interpreters of models whose one operator is given such intermediate tensors."""

    def make(model_content: bytes) -> Any:
        model = read_model(model_content)
        graph = model.subgraphs[0]
        places = range(len(graph.tensors), len(graph.tensors) + len(tensors))
        added = tuple(
            Tensor(shape=(), type=each.type, name=f"intermediate_{i}", quantization=each.quantization)
            for i, each in enumerate(tensors)
        )
        operator = graph.operators[0].replace(intermediates=tuple(places))
        changed = graph.replace(tensors=(*graph.tensors, *added), operators=(operator,))
        return make_interpreter(model_content=write_model(model.replace(subgraphs=(changed,))))

    return make
