"""Recurrent operators of integers on the default path: random cells over several invocations, against the reference
kernels and LiteRT's default path, states included."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gossamer
from gossamer.codegen.kernels.elementwise import Map
from gossamer.model import read_model
from gossamer.ops import lstm, svdf, unidirectional_sequence_lstm
from gossamer.schema import (
    ActivationFunctionType,
    LSTMKernelType,
    LSTMOptions,
    SVDFOptions,
    UnidirectionalSequenceLSTMOptions,
)
from tests.conftest import seeds
from tests.delegates.jit.running import TARGETS, machine_code
from tests.delegates.jit.test_int16 import I8, I16, I32, Draw
from tests.ops.cases import Case, const, model_of, tensor
from tests.ops.lstm_cells import Cell, inputs, state, with_intermediates
from tests.ops.reference import REFERENCE

pytestmark = pytest.mark.skipif(not TARGETS, reason="no machine code for this CPU")

SEEDS = 12
CALLS = 4
TANH = ActivationFunctionType.TANH


def svdf_model(seed: int, state_type: Any = I16) -> bytes:
    draw = Draw(seed)
    batch, depth, rank = draw.size(1, 3), draw.size(1, 8, 33), draw.size(1, 1, 2)
    units, memory = draw.size(1, 8, 17), draw.size(1, 2, 8, 37)
    filters = units * rank
    scale, feature, time = draw.scale(-8, -5), draw.scale(-8, -5), draw.scale(-12, -8)
    held = float(np.float32(scale * feature * 2.0 ** draw.rng.uniform(-6, 2)))
    output = float(np.float32(held * time * 2.0 ** draw.rng.uniform(4, 12)))
    operands = [
        draw.operand((batch, depth), scale, I8, draw.size(-128, 3, 100)),
        const(draw.integers((filters, depth), I8, 127), I8, scale=feature),
        const(draw.integers((filters, memory), state_type), state_type, scale=time),
        const(draw.integers((units,), I32, 1 << 16), I32, scale=held * time) if draw.size(0, 1) else None,
        tensor(np.zeros((batch, filters * memory)), state_type, scale=held, variable=True),
    ]
    options = SVDFOptions(rank=rank, fused_activation_function=ActivationFunctionType.RELU)
    return model_of(svdf.op, Case("", operands, [draw.result((batch, units), output, I8, 7)], options, version=3))


def lstm_model(seed: int) -> bytes:
    """One step, or a sequence in one of both layouts; with and without input gate, projection, peepholes and clips. Of
    both, peepholes may see fewer cells than there are."""
    draw = Draw(seed)
    batch, depth, cells = draw.size(1, 3), draw.size(1, 8, 20), draw.size(1, 4, 17, 32)
    is_sequence, time_major, kind = draw.size(0, 1, 1), bool(draw.size(0, 1)), draw.size(0, 0, 1, 2, 3)
    projects, peeps = kind in (1, 3), kind in (2, 3)
    outputs = draw.size(1, 9) if projects else cells
    if peeps:
        outputs = min(outputs, cells)
    hidden, hidden_zero = draw.scale(-9, -6), draw.size(-20, 0, 5)
    scale, zero = (draw.scale(-8, -5), 30) if projects else (hidden, hidden_zero)
    operands: Cell = {}
    for gate in ("input", "forget", "cell", "output")[draw.size(0, 0, 1) :]:
        operands[f"input_to_{gate}_weights"] = weights(draw, (cells, depth))
        operands[f"recurrent_to_{gate}_weights"] = weights(draw, (cells, outputs))
        operands[f"{gate}_gate_bias"] = const(draw.integers((cells,), I32, 4000), I32, scale=1e-4)
        if peeps and gate != "cell":
            peephole = const(draw.integers((cells,), I16), I16, scale=draw.scale(-16, -13))
            operands[f"cell_to_{gate}_weights"] = peephole
    if projects:
        operands["projection_weights"] = weights(draw, (outputs, cells))
        operands["projection_bias"] = const(draw.integers((outputs,), I32, 2000), I32, scale=1e-4)
    operands["output_state"] = state(np.zeros((batch, outputs)), I8, scale=scale, zero_point=zero)
    operands["cell_state"] = state(np.zeros((batch, cells)), I16, scale=2.0 ** draw.size(-15, -12, -9))
    clips = {"cell_clip": float(draw.size(0, 1, 3)), "proj_clip": 0.5 * draw.size(0, 1) if projects else 0.0}
    options: Any
    if is_sequence:
        op, steps = unidirectional_sequence_lstm.op, draw.size(1, 4)
        options = UnidirectionalSequenceLSTMOptions(fused_activation_function=TANH, time_major=time_major, **clips)
        places = (steps, batch) if time_major else (batch, steps)
    else:
        op, places, options = lstm.op, (batch,), LSTMOptions(fused_activation_function=TANH, **clips)
    x = draw.operand((*places, depth), draw.scale(-7, -3), I8, draw.size(-128, 0, 90))
    case = Case("", [x, *inputs(op, operands, 20)[1:]], [draw.result((*places, outputs), scale, I8, zero)], options)
    case.version = 3 if is_sequence else 4
    gates = [tensor(0, I16, scale=2.0**-12)] * 4
    made: list[bytes] = []
    with_intermediates(
        lambda model_content: made.append(model_content), [*gates, tensor(0, I8, scale=hidden, zero_point=hidden_zero)]
    )(model_content=model_of(op, case))
    return made[0]


def basic_model(seed: int) -> bytes:
    """One step of the basic kernel of uint8."""
    draw = Draw(seed)
    batch, depth, cells = draw.size(1, 3), draw.size(1, 8, 20), draw.size(1, 4, 17)
    level: dict[str, Any] = {"scale": 1 / 128, "zero_point": 128}
    matrix = draw.integers((4 * cells, depth + cells), np.uint8)
    operands = [
        tensor(draw.integers((batch, depth), np.uint8), np.uint8, **level),
        tensor(np.full((batch, cells), 128), np.uint8, variable=True, **level),
        const(matrix, np.uint8, scale=0.01, zero_point=draw.size(100, 128, 150)),
        const(draw.integers((4 * cells,), I32, 5000), I32, scale=draw.scale(-16, -13)),
        tensor(np.zeros((batch, cells)), I16, scale=2.0**-11, variable=True),
    ]
    results = [
        tensor(np.zeros((batch, cells)), np.uint8, **level),
        tensor(np.zeros((batch, cells)), I16, scale=2.0**-11),
        tensor(np.zeros((batch, depth + cells)), np.uint8, **level),
        tensor(np.zeros((batch, 4 * cells)), I16, scale=2.0**-12),
    ]
    options = LSTMOptions(kernel_type=LSTMKernelType.BASIC)
    return model_of(lstm.op, Case("", operands, results, options, version=2))


def weights(draw: Draw, shape: tuple[int, int]) -> Any:
    return const(draw.integers(shape, I8, 127), I8, scale=draw.scale(-9, -6))


def run(make: Any, model: bytes, *, states: bool = True) -> list[np.ndarray]:
    """Outputs of each call, and the states after the last."""
    interpreter = make(model_content=model)
    interpreter.allocate_tensors()
    if make is gossamer.Interpreter:
        (claims,) = interpreter.delegate_claims()
        assert not claims.refusals, dict(claims.refusals)
    (x,) = interpreter.get_input_details()
    found = []
    for call in range(CALLS):
        values = np.random.default_rng(call).integers(0, 256, x["shape"]).astype(np.uint8).view(x["dtype"])
        interpreter.set_tensor(x["index"], values)
        interpreter.invoke()
        found.extend(interpreter.get_tensor(y["index"]) for y in interpreter.get_output_details())
    if states:
        variables = [index for index, each in enumerate(read_model(model).subgraphs[0].tensors) if each.is_variable]
        found.extend(interpreter.get_tensor(index) for index in variables)
    return found


def same(first: list[np.ndarray], second: list[np.ndarray]) -> None:
    assert len(first) == len(second)
    for got, wanted in zip(first, second, strict=True):
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_svdf(seed: int) -> None:
    model = svdf_model(seed)
    same(run(gossamer.Interpreter, model), run(REFERENCE, model))


@pytest.mark.parametrize("seed", range(SEEDS))
def test_svdf_with_states_of_8_bits(seed: int) -> None:
    model = svdf_model(seed, I8)
    same(run(gossamer.Interpreter, model), run(REFERENCE, model))


@pytest.mark.parametrize("seed", seeds(SEEDS, 3 * SEEDS))
def test_lstm(seed: int) -> None:
    model = lstm_model(seed)
    same(run(gossamer.Interpreter, model), run(REFERENCE, model))


def test_maps_of_cells_ship() -> None:
    shipped = {spec.name for spec in Map.ships(TARGETS[-1].plain)}
    _, kernel = machine_code(lstm_model(6))
    assert kernel.built is not None
    maps = {name for name in kernel.built.specs if "_map_" in name}
    assert len(maps) == 5
    assert maps <= shipped


@pytest.mark.parametrize("seed", range(SEEDS))
def test_basic_lstm(seed: int) -> None:
    model = basic_model(seed)
    same(run(gossamer.Interpreter, model), run(REFERENCE, model))


@pytest.mark.peer
@pytest.mark.parametrize("make", [svdf_model, lstm_model, basic_model])
def test_as_litert(make: Any) -> None:
    from ai_edge_litert.interpreter import Interpreter

    for seed in range(5 * SEEDS):
        model = make(seed)
        same(run(gossamer.Interpreter, model, states=False), run(Interpreter, model, states=False))
