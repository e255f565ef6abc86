"""Elementwise operators: random graphs of any types and ranks against the reference kernels; what is refused."""

from __future__ import annotations

import random
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

import gossamer
from gossamer.codegen.build import build
from gossamer.codegen.graph import KernelGraph
from gossamer.codegen.passes import repeats
from gossamer.delegates.jit.evaluation.functions import fma
from gossamer.dtypes import numpy_dtype
from gossamer.errors import InvokeError
from gossamer.schema import (
    AddOptions,
    CastOptions,
    ConcatenationOptions,
    DivOptions,
    MulOptions,
    QuantizationParameters,
    ReducerOptions,
    SplitVOptions,
    SubOptions,
    TensorType,
)
from gossamer.targets import Target
from gossamer.views import Buffer
from tests.conftest import seeds
from tests.delegates.jit.running import TARGETS, check, machine_code, outputs, reference
from tests.runtime.graphs import ModelMaker

pytestmark = pytest.mark.skipif(not TARGETS, reason="no machine code for this CPU")

BOOL, FLOAT, HALF, INT = TensorType.BOOL, TensorType.FLOAT32, TensorType.FLOAT16, TensorType.INT32
NUMBERS = (FLOAT, FLOAT, HALF, INT, TensorType.INT64, TensorType.INT16, TensorType.INT8, TensorType.UINT8)

ARITHMETIC = {"ADD": AddOptions, "SUB": SubOptions, "MUL": MulOptions}
UNARY = {"ABS": (FLOAT, HALF, INT), "NEG": (FLOAT, HALF, INT, TensorType.INT64), "RELU": (FLOAT, HALF)}
BINARY = {
    **dict.fromkeys(("ADD", "MUL"), (FLOAT, HALF, INT, TensorType.INT64, TensorType.INT16)),
    "SUB": (FLOAT, HALF, INT, TensorType.INT64),
    **dict.fromkeys(("MAXIMUM", "MINIMUM"), NUMBERS),
}
COMPARISONS = ("LESS", "GREATER_EQUAL", "EQUAL", "NOT_EQUAL")
LOGIC = ("LOGICAL_AND", "LOGICAL_OR")


class Elementwise(ModelMaker):
    """A model of operators whose results are exact, one after the other."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.choose = random.Random(seed)
        self.shape = [self.choose.choice([1, 2, 3, 4]) for _ in range(self.choose.randint(0, 8))]
        if self.shape:
            self.shape[-1] = self.choose.choice([1, 4, 17, 40])
        self.made: list[tuple[int, TensorType, list[int]]] = []
        self.inputs = [self.input(type) for type in (*self.choose.sample(NUMBERS, 3), FLOAT, BOOL)]

    def input(self, type: TensorType) -> int:
        shape = [size if self.choose.random() < 0.7 else 1 for size in self.shape]
        shape = shape[self.choose.randint(0, len(shape)) :] if self.choose.random() < 0.3 else shape
        return self.add(type, shape)

    def add(self, type: TensorType, shape: list[int]) -> int:
        self.made.append((self.tensor(shape, type), type, shape))
        return self.made[-1][0]

    def pick(self, *types: TensorType) -> list[tuple[int, TensorType, list[int]]]:
        """Two tensors of one of these types."""
        type = self.choose.choice([known[1] for known in self.made if known[1] in types] or [FLOAT])
        return self.choose.choices([known for known in self.made if known[1] == type], k=2)

    def step(self) -> None:
        kind = self.choose.choice(["unary", "binary", "binary", "compare", "logic", "select", "cast"])
        (x, type, shape), (y, _, other) = self.pick(*([BOOL] if kind == "logic" else NUMBERS))
        both = list(np.broadcast_shapes(tuple(shape), tuple(other)))
        if kind == "unary":
            names = [name for name, types in UNARY.items() if type in types]
            if names:
                self.op(self.choose.choice(names), [x], [self.add(type, shape)])
        elif kind == "binary":
            name = self.choose.choice([name for name, types in BINARY.items() if type in types])
            options = ARITHMETIC[name]() if name in ARITHMETIC else None
            self.op(name, [x, y], [self.add(type, both)], options)
        elif kind == "compare":
            self.op(self.choose.choice(COMPARISONS), [x, y], [self.add(BOOL, both)])
        elif kind == "logic":
            self.op(self.choose.choice(LOGIC), [x, y], [self.add(BOOL, both)])
        elif kind == "select":
            ((condition, _, of_condition), _) = self.pick(BOOL)
            whole = list(np.broadcast_shapes(tuple(both), tuple(of_condition)))
            self.op("SELECT_V2", [condition, x, y], [self.add(type, whole)])
        else:
            self.op("CAST", [x], [self.add(self.choose.choice(NUMBERS), shape)])


@pytest.mark.parametrize("seed", seeds(18, 60))
def test_random_graphs(seed: int) -> None:
    make = Elementwise(seed)
    for _ in range(12):
        make.step()
    outputs = [tensor for tensor, _, _ in make.made[len(make.inputs) :]]
    make.io(make.inputs, [outputs[-1], *make.choose.sample(outputs[:-1], min(2, len(outputs) - 1))])
    rng = np.random.default_rng(seed)
    values: dict[int, Any] = {}
    for tensor, type, shape in make.made[: len(make.inputs)]:
        numbers = rng.integers(0, 2 if type == BOOL else 7, shape) - (0 if type in (BOOL, TensorType.UINT8) else 3)
        values[tensor] = numbers.astype(numpy_dtype(type))
    check(make.model(), values, target=make.choose.choice(TARGETS))


@pytest.mark.parametrize("seed", seeds(6, 60))
def test_random_graphs_whose_rows_are_rearranged_however_small(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeats, "LEAST", 1)
    test_random_graphs(seed)


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_a_hard_swish_is_rounded_as_by_litert(target: Target) -> None:
    make = ModelMaker()
    x, y = make.tensor((1001,)), make.tensor((1001,))
    make.op("HARD_SWISH", [x], [y])
    make.io([x], [y])
    interpreter, _ = machine_code(make.model(), target=target)
    value = np.random.default_rng(0).normal(0, 2, 1001).astype(np.float32)
    factor = fma(value, np.full_like(value, 1 / 6), np.full_like(value, 0.5))
    (got,) = outputs(interpreter, {x: value})
    np.testing.assert_array_equal(got, value * np.clip(factor, 0, 1))


@pytest.mark.parametrize("seed", range(20))
def test_any_broadcast_is_one_map(seed: int) -> None:
    choose = random.Random(seed)
    shape = [choose.randint(2, 4) for _ in range(8)]
    graph = KernelGraph()
    views = []
    for tensor in range(2):
        buffer = Buffer(tuple(size if choose.random() < 0.5 else 1 for size in shape), FLOAT, tensor)
        graph.inputs[tensor] = buffer
        views.append(buffer.view().broadcast(shape))
    y = graph.add("map", views, shape, FLOAT, epilogue=("add", 0, 1), arity=1)
    y.buffer.tensor = 2
    graph.outputs[2] = y.buffer
    kinds = [step.node.kind for step in build(graph, TARGETS[0]).steps]
    assert kinds.count("map") == 1
    assert set(kinds) <= {"map", "copy"}  # of what makes short rows


@pytest.mark.parametrize(("name", "type"), [
    ("DIV", INT), ("FLOOR_DIV", INT), ("FLOOR_DIV", FLOAT), ("FLOOR_DIV", TensorType.INT8), ("FLOOR_MOD", INT),
])  # fmt: skip
def test_a_divisor_of_0_is_refused_in_the_same_words(name: str, type: TensorType) -> None:
    make = ModelMaker()
    x, y, quotient = make.tensor((3, 40), type), make.tensor((3, 40), type), make.tensor((3, 40), type)
    make.op(name, [x, y], [quotient], DivOptions() if name == "DIV" else None)
    make.io([x, y], [quotient])
    rng = np.random.default_rng(0)
    numbers = rng.integers(-50, 50, (3, 40)).astype(numpy_dtype(type))
    divisors = rng.integers(1, 5, (3, 40)).astype(numpy_dtype(type))
    check(make.model(), {x: numbers, y: divisors})
    expected, (interpreter, _) = reference(make.model()), machine_code(make.model())
    expected.allocate_tensors()
    for place in ((0, 0), (1, 39), (2, 33)):
        wrong = divisors.copy()
        wrong[place] = 0
        messages = []
        for made in (expected, interpreter):
            with pytest.raises(InvokeError) as failure:
                outputs(made, {x: numbers, y: wrong})
            messages.append(str(failure.value))
        assert messages[0] in messages[1]
        assert f"division by 0: input 1 is 0 at {list(place)}" in messages[0]
    check(make.model(), {x: numbers, y: divisors})


def refusal(name: str, types: list[TensorType], options: Any = None, constants: Any = (), **fields: Any) -> str:
    """Why the default delegate leaves an operator of vectors of two elements alone."""
    make = ModelMaker()
    *inputs, output = types
    tensors = []
    for position, type in enumerate(inputs):
        if position < len(constants) and constants[position] is not None:
            tensors.append(make.constant(constants[position], numpy_dtype(type), type))
        else:
            tensors.append(make.tensor([2], type, **fields))
    made = make.tensor([2], output, **fields)
    make.op(name, tensors, [made], options)
    make.io([tensor for at, tensor in enumerate(tensors) if at >= len(constants) or constants[at] is None], [made])
    interpreter = gossamer.Interpreter(model_content=make.model())
    interpreter.allocate_tensors()
    (claims,) = interpreter.delegate_claims()
    return claims.refusals.get(0, "")


SCALE = QuantizationParameters(scale=np.array([0.5], np.float32), zero_point=np.array([0]))


def test_what_stays_on_the_reference_kernels() -> None:
    int16, complex64 = TensorType.INT16, TensorType.COMPLEX64
    assert refusal("DIV", [int16] * 3, DivOptions(), quantization=SCALE) == ""
    assert refusal("DIV", [INT] * 3, DivOptions()) == ""
    assert refusal("DIV", [INT] * 3, DivOptions(), [None, [1, 0]]) == "y has zeros"
    assert refusal("DIV", [INT] * 3, DivOptions(), [None, [1, 2]]) == ""
    assert refusal("FLOOR_DIV", [FLOAT] * 3) == ""
    assert refusal("FLOOR_MOD", [FLOAT] * 3) == ""
    assert refusal("POW", [INT] * 3) == ""
    assert refusal("POW", [FLOAT] * 3) == ""
    assert refusal("SIGN", [TensorType.FLOAT64] * 2) == ""
    assert refusal("MUL", [complex64] * 3) == ""
    assert refusal("SELECT", [TensorType.BOOL, *[complex64] * 3]) == ""
    assert refusal("CAST", [TensorType.INT8, complex64], CastOptions()) == ""


@pytest.mark.parametrize("name", ["ADD", "FLOOR_DIV"])
def test_what_writes_no_elements_is_claimed_and_checked(name: str) -> None:
    make = ModelMaker()
    x, y, z = (make.tensor(shape, TensorType.INT32) for shape in ((0, 3), (1, 3), (0, 3)))
    make.op(name, [x, y], [z])
    make.io([x, y], [z])
    interpreter = gossamer.Interpreter(model_content=make.model())
    interpreter.allocate_tensors()
    interpreter.set_tensor(y, np.ones((1, 3), np.int32))
    for _ in range(3):
        interpreter.invoke()
        assert interpreter.get_tensor(z).shape == (0, 3)
    (claims,) = interpreter.delegate_claims()
    assert not claims.refusals
    interpreter.set_tensor(y, np.zeros((1, 3), np.int32))
    for _ in range(2):
        with nullcontext() if name == "ADD" else pytest.raises(InvokeError, match="0"):
            interpreter.invoke()


def test_what_has_no_elements_does_not_keep_the_rest_from_machine_code() -> None:
    make = ModelMaker()
    x, nothing = make.tensor((2, 3)), make.tensor((2, 0))
    first, none, last, joined = (make.tensor((2, size)) for size in (1, 0, 2, 3))
    sizes, axis = make.constant([1, 0, 2], np.int32, INT), make.constant(1, np.int32, INT)
    make.op("SPLIT_V", [x, sizes, axis], [first, none, last], SplitVOptions(num_splits=3))
    make.op("CONCATENATION", [last, none, nothing, first], [joined], ConcatenationOptions(axis=1))
    make.io([x, nothing], [none, joined])
    interpreter = gossamer.Interpreter(model_content=make.model())
    interpreter.allocate_tensors()
    interpreter.set_tensor(x, np.arange(6, dtype=np.float32).reshape(2, 3))
    interpreter.invoke()
    assert interpreter.get_tensor(none).shape == (2, 0)
    np.testing.assert_array_equal(interpreter.get_tensor(joined), [[1, 2, 0], [4, 5, 3]])
    (claims,) = interpreter.delegate_claims()
    assert not claims.refusals


def test_nodes_hand_on_elements_that_share_bytes() -> None:
    make, type = ModelMaker(), TensorType.INT4
    x, turned, joined = make.tensor((3, 5), type), make.tensor((5, 3), type), make.tensor((10, 3), type)
    floats = make.tensor((10, 3))
    make.op("TRANSPOSE", [x, make.constant([1, 0], np.int32, INT)], [turned])
    make.op("CONCATENATION", [turned, turned], [joined], ConcatenationOptions(axis=0))
    make.op("CAST", [joined], [floats], version=6)
    make.io([x], [turned, floats])
    interpreter = gossamer.Interpreter(model_content=make.model())
    interpreter.allocate_tensors()
    value = (np.arange(15) % 16 - 8).astype(np.int8).reshape(3, 5)
    interpreter.set_tensor(x, value)
    for _ in range(2):
        interpreter.invoke()
        np.testing.assert_array_equal(interpreter.get_tensor(turned), value.T)
        np.testing.assert_array_equal(interpreter.get_tensor(floats), np.concatenate([value.T, value.T]))
    (claims,) = interpreter.delegate_claims()
    assert not claims.refusals


@pytest.mark.parametrize(("name", "type", "value"), [("SUM", FLOAT, 0), ("REDUCE_ALL", TensorType.BOOL, True)])
def test_what_is_made_of_nothing_is_known_until_there_is_something(name: str, type: TensorType, value: object) -> None:
    make = ModelMaker()
    x, y = make.tensor((0, 3), type), make.tensor((3,), type)
    make.op(name, [x, make.constant([0], np.int32, INT)], [y], ReducerOptions())
    make.io([x], [y])
    interpreter = gossamer.Interpreter(model_content=make.model())
    interpreter.allocate_tensors()
    assert interpreter._subgraphs[0].tensors[y].is_constant
    interpreter.invoke()
    assert interpreter.get_tensor(y).tolist() == [value] * 3
    interpreter.resize_tensor_input(x, (2, 3))
    interpreter.allocate_tensors()
    interpreter.set_tensor(x, np.array([[2, 0, 1], [3, 1, 1]], interpreter.get_tensor(x).dtype))
    interpreter.invoke()
    assert interpreter.get_tensor(y).tolist() == ([5, 1, 2] if name == "SUM" else [True, False, True])


def test_nothing_is_made_of_nothing() -> None:
    make = ModelMaker()
    a, b, both = (make.tensor(shape, FLOAT) for shape in ((1, 0), (2, 0), (3, 0)))
    levels, means = (make.tensor(shape, TensorType.INT16, quantization=SCALE) for shape in ((3, 0), (0,)))
    nothing = make.tensor((0, 0), TensorType.INT16, quantization=SCALE)
    make.op("CONCATENATION", [a, b], [both], ConcatenationOptions(axis=0))
    make.op("QUANTIZE", [both], [levels], version=2)
    make.op("MEAN", [nothing, make.constant([1], np.int32, INT)], [means], ReducerOptions(), version=2)
    make.io([a, b, nothing], [both, levels, means])
    interpreter = gossamer.Interpreter(model_content=make.model())
    interpreter.allocate_tensors()
    interpreter.invoke()
    assert [interpreter.get_tensor(index).shape for index in (both, levels, means)] == [(3, 0), (3, 0), (0,)]
    (claims,) = interpreter.delegate_claims()
    assert not claims.refusals
