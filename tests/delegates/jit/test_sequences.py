"""Recurrent operators in every form, call after call, against the reference kernels."""

from __future__ import annotations

import random

import numpy as np
import pytest

from gossamer.ops import _lstm, _recurrent
from gossamer.schema import (
    ActivationFunctionType,
    BidirectionalSequenceLSTMOptions,
    BidirectionalSequenceRNNOptions,
    LSTMOptions,
    QuantizationParameters,
    SequenceRNNOptions,
    SVDFOptions,
    TensorType,
    UnidirectionalSequenceLSTMOptions,
)
from tests.conftest import seeds
from tests.delegates.jit.running import TARGETS, machine_code, outputs, reference
from tests.runtime.graphs import ModelMaker

pytestmark = pytest.mark.skipif(not TARGETS, reason="no machine code for this CPU")

FLOAT = TensorType.FLOAT32
CIFG = (
    *("input_to_input_weights", "recurrent_to_input_weights", "cell_to_input_weights"),
    *("input_gate_bias", "input_layer_norm_coefficients"),
)

ACTIVATIONS = (ActivationFunctionType.TANH, ActivationFunctionType.RELU, ActivationFunctionType.NONE)


class Sequence:
    """A model of one recurrent operator of random sizes and features."""

    def __init__(self, seed: int, hybrid: bool = False) -> None:
        choose = self.choose = random.Random(seed)
        self.hybrid = random.Random(seed).choice([TensorType.INT8, TensorType.UINT8]) if hybrid else None
        self.asymmetric = seed % 4 < 2
        self.make = ModelMaker()
        self.variables: list[int] = []
        self.fed: dict[int, tuple[int, ...]] = {}
        self.batch, self.time, self.inputs = (
            choose.choice([1, 2, 5]),
            choose.choice([1, 2, 7]),
            choose.choice([1, 4, 20]),
        )
        self.cells = choose.choice([1, 3, 16, 33, 200])
        self.time_major = choose.random() < 0.5
        self.activation = choose.choice(ACTIVATIONS)

    def flip(self, chance: float = 0.5) -> bool:
        return self.choose.random() < chance

    def constant(self, *shape: int) -> int:
        value = np.random.default_rng(self.choose.getrandbits(32)).normal(size=shape) * 0.4
        return self.make.constant(value, np.float32, FLOAT)

    def weights(self, *shape: int) -> int:
        """A constant, of bytes if the operator is hybrid."""
        if self.hybrid is None:
            return self.constant(*shape)
        value = np.random.default_rng(self.choose.getrandbits(32)).integers(-127, 128, shape).astype(np.int8)
        scale = QuantizationParameters(scale=np.array([0.01], np.float32), zero_point=np.zeros(1, np.int64))
        dtype = np.dtype(self.hybrid.name.lower())
        return self.make.constant(value.view(dtype), dtype, self.hybrid, quantization=scale)

    def variable(self, *shape: int) -> int:
        self.variables.append(self.make.tensor(shape, is_variable=True))
        return self.variables[-1]

    def input(self, *shape: int) -> int:
        index = self.make.tensor(shape)
        self.fed[index] = shape
        return index

    def order(self, size: int) -> tuple[int, int, int]:
        return (self.time, self.batch, size) if self.time_major else (self.batch, self.time, size)

    def check(self, *results: int) -> None:
        """Where states are quantized, a difference in the last bit may become one of a level; where none limits them,
        it grows with every turn."""
        self.make.io(tuple(self.fed), results)
        within = 3e-5 if self.hybrid is None else 0.02
        model = self.make.model()
        wanted = reference(model)
        wanted.allocate_tensors()
        interpreters = [machine_code(model, count, self.choose.choice(TARGETS))[0] for count in (1, 2)]
        rng = np.random.default_rng(0)
        for _ in range(3):
            inputs = {index: rng.normal(size=shape).astype(np.float32) for index, shape in self.fed.items()}
            expected = outputs(wanted, inputs) + [wanted.get_tensor(index) for index in self.variables]
            for interpreter in interpreters:
                got = outputs(interpreter, inputs) + [interpreter.get_tensor(index) for index in self.variables]
                for value, want in zip(got, expected, strict=True):
                    np.testing.assert_allclose(value, want, rtol=0, atol=within * max(1, np.abs(want).max()))


class Lstm(Sequence):
    """The operands of LSTM cells."""

    def __init__(self, seed: int, *, layer_norm: bool = True, diagonal: bool = True, hybrid: bool = False) -> None:
        super().__init__(seed, hybrid)
        self.cifg, self.peephole, self.projects = self.flip(), self.flip(), self.flip()
        self.norm = layer_norm and self.flip()
        self.is_diagonal = diagonal and not self.projects and self.flip(0.2)
        self.outputs = self.choose.choice([2, 19]) if self.projects else self.cells
        self.clips = {name: self.choose.choice([0.0, 0.0, 0.3]) for name in ("cell_clip", "proj_clip")}

    def shape(self, name: str) -> tuple[int, ...] | None:
        """That of an operand, ``None`` if it is left out."""
        if self.cifg and name in CIFG:
            return None
        if name.startswith("input_to"):
            return self.cells, self.inputs
        if name.startswith("recurrent_to"):
            return (self.cells,) if self.is_diagonal else (self.cells, self.outputs)
        if name.startswith("cell_to"):
            return (self.cells,) if self.peephole else None
        if name.endswith("gate_bias"):
            return (self.cells,)
        if name.endswith("coefficients"):
            return (self.cells,) if self.norm else None
        if name == "projection_weights":
            return (self.outputs, self.cells) if self.projects else None
        return (self.outputs,) if self.projects and self.flip() else None

    def operands(self, names: tuple[str, ...]) -> list[int]:
        return [self.operand(name.rstrip("?")) for name in names]

    def operand(self, name: str) -> int:
        """A constant, or -1."""
        shape = self.shape(name)
        if shape is None:
            return -1
        is_matrix = name.endswith("weights") and not (self.is_diagonal and name.startswith("recurrent"))
        return self.weights(*shape) if is_matrix else self.constant(*shape)

    def states(self) -> list[int]:
        return [self.variable(self.batch, self.outputs), self.variable(self.batch, self.cells)]


@pytest.mark.parametrize("hybrid", [False, True])
@pytest.mark.parametrize("seed", seeds(9, 24))
def test_lstm(seed: int, hybrid: bool) -> None:
    net = Lstm(seed, hybrid=hybrid)
    x = net.input(*net.order(net.inputs))
    operands = [x, *net.operands(_lstm.WEIGHT_NAMES), *net.states()]
    if net.norm:
        operands += net.operands(_lstm.NORM_NAMES)
    y = net.make.tensor(net.order(net.outputs))
    options = UnidirectionalSequenceLSTMOptions(
        time_major=net.time_major,
        fused_activation_function=net.activation,
        diagonal_recurrent_tensors=net.is_diagonal,
        asymmetric_quantize_inputs=net.asymmetric,
        **net.clips,
    )
    net.make.op("UNIDIRECTIONAL_SEQUENCE_LSTM", operands, [y], options, version=4)
    net.check(y)


@pytest.mark.parametrize("seed", range(6))
def test_lstm_step(seed: int) -> None:
    net = Lstm(seed, diagonal=False)
    operands = [net.input(net.batch, net.inputs), *net.operands(_lstm.WEIGHT_NAMES), *net.states()]
    if net.norm:
        operands += net.operands(_lstm.NORM_NAMES)
    y = net.make.tensor((net.batch, net.outputs))
    net.make.op("LSTM", operands, [y], LSTMOptions(fused_activation_function=net.activation, **net.clips))
    net.check(y)


@pytest.mark.parametrize("merge", [False, True])
@pytest.mark.parametrize("aux", ["none", "crossed", "stacked"])
@pytest.mark.parametrize("seed", range(3))
def test_bidirectional_lstm(seed: int, aux: str, merge: bool) -> None:
    net = Lstm(seed, layer_norm=False, diagonal=False)
    x = net.input(*net.order(net.inputs))
    weights = [net.operands(_lstm.WEIGHT_NAMES) for _ in range(2)]
    operands = [x, *weights[0], *weights[1], *net.states(), *net.states(), -1, *[-1] * 8]
    if aux == "stacked":
        operands[39] = net.input(*net.order(net.inputs))
    elif aux == "crossed":
        operands[39] = net.input(*net.order(6))
        for first in (40, 44):
            operands[first : first + 4] = [net.constant(net.cells, 6) for _ in range(4)]
            if net.cifg:
                operands[first] = -1
    results = [net.make.tensor(net.order(size)) for size in ([2 * net.outputs] if merge else [net.outputs] * 2)]
    options = BidirectionalSequenceLSTMOptions(
        time_major=net.time_major, merge_outputs=merge, fused_activation_function=net.activation, **net.clips
    )
    net.make.op("BIDIRECTIONAL_SEQUENCE_LSTM", operands, results, options)
    net.check(*results)


@pytest.mark.parametrize("hybrid", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_rnn(seed: int, hybrid: bool) -> None:
    net = Sequence(seed, hybrid)
    x = net.input(*net.order(net.inputs))
    cell = [net.weights(net.cells, net.inputs), net.weights(net.cells, net.cells), net.constant(net.cells)]
    y = net.make.tensor(net.order(net.cells))
    options = SequenceRNNOptions(
        time_major=net.time_major,
        fused_activation_function=net.activation,
        asymmetric_quantize_inputs=net.asymmetric,
    )
    net.make.op("UNIDIRECTIONAL_SEQUENCE_RNN", [x, *cell, net.variable(net.batch, net.cells)], [y], options)
    net.check(y)


@pytest.mark.parametrize("merge", [False, True])
@pytest.mark.parametrize("aux", ["none", "crossed", "stacked"])
@pytest.mark.parametrize("seed", range(2))
def test_bidirectional_rnn(seed: int, aux: str, merge: bool) -> None:
    net = Sequence(seed)
    x, sizes = net.input(*net.order(net.inputs)), [net.cells, net.cells + 2]
    operands = [x]
    for size in sizes:
        operands += [net.constant(size, net.inputs), net.constant(size, size), net.constant(size)]
        operands.append(net.variable(net.batch, size))
    operands += [-1, -1, -1]
    if aux == "stacked":
        operands[9] = net.input(*net.order(net.inputs))
    elif aux == "crossed":
        operands[9:] = [net.input(*net.order(3)), *(net.constant(size, 3) for size in sizes)]
    results = [net.make.tensor(net.order(size)) for size in ([sum(sizes)] if merge else sizes)]
    options = BidirectionalSequenceRNNOptions(
        time_major=net.time_major, merge_outputs=merge, fused_activation_function=net.activation
    )
    net.make.op("BIDIRECTIONAL_SEQUENCE_RNN", operands, results, options)
    net.check(*results)


@pytest.mark.parametrize("hybrid", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_svdf(seed: int, hybrid: bool) -> None:
    net = Sequence(seed, hybrid)
    rank, memory, units = net.choose.choice([1, 2, 3]), net.choose.choice([1, 2, 10]), net.cells
    filters = rank * units
    operands = [net.input(net.batch, net.inputs), net.weights(filters, net.inputs), net.weights(filters, memory)]
    operands.append(net.constant(units) if net.flip() else -1)
    operands.append(net.variable(net.batch, filters * memory))
    y = net.make.tensor((net.batch, units))
    net.make.op(
        "SVDF",
        operands,
        [y],
        SVDFOptions(rank=rank, fused_activation_function=net.activation, asymmetric_quantize_inputs=net.asymmetric),
    )
    net.check(y)


def test_long_sequences_are_loops() -> None:
    net = Sequence(0)
    net.batch, net.time, net.inputs, net.cells, net.time_major = 1, 513, 1, 1, True
    cell = [net.constant(1, 1), net.constant(1, 1), net.constant(1)]
    y = net.make.tensor((513, 1, 1))
    operands = [net.input(513, 1, 1), *cell, net.variable(1, 1)]
    net.make.op("UNIDIRECTIONAL_SEQUENCE_RNN", operands, [y], SequenceRNNOptions(time_major=True))
    net.check(y)
    _, kernel = machine_code(net.make.model())
    assert kernel.built is not None
    assert "loop" in [one.kind for one in kernel.built.graph]


@pytest.mark.parametrize("seed", range(4))
def test_what_is_no_longer_written_out_computes_the_same(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_recurrent, "MOST_STEPS", 1)
    test_lstm(seed, hybrid=seed % 2 == 1)
    test_bidirectional_lstm(seed, ["none", "crossed", "stacked"][seed % 3], merge=seed < 2)
    test_bidirectional_rnn(seed, ["stacked", "none", "crossed"][seed % 3], merge=seed >= 2)
