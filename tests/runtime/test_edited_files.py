"""A file that is edited in place, without a change of times: what is kept of it is not believed any more.

A mapped file in memory does that, a page that is not written back yet, a file system with coarse times.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gossamer import Interpreter
from gossamer.delegates.jit import JitDelegate, default_delegate
from gossamer.delegates.jit import delegate as jit
from gossamer.delegates.jit.compiling import compiled_of
from gossamer.model import ModelFile, read_model
from gossamer.model import reader as model_reader
from gossamer.model import structure as structures
from gossamer.runtime import interpreter as runtime
from gossamer.schema import (
    ActivationFunctionType,
    AddOptions,
    FullyConnectedOptions,
    GatherOptions,
    ReshapeOptions,
    TensorType,
)
from tests.conftest import thinned
from tests.ops.cases import Case, Operand, model_of
from tests.runtime.graphs import ModelMaker

pytestmark = pytest.mark.skipif(default_delegate() is None, reason="no machine code for this CPU")

FLOAT, INT32 = TensorType.FLOAT32, TensorType.INT32
X = np.linspace(-20, 20, 64 * 8, dtype=np.float32).reshape(8, 64)


@pytest.fixture(autouse=True)
def cold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is known but kernels, and every file looks like every other."""
    mapped = model_reader.map_model

    def map_model(path: str) -> ModelFile:
        return mapped(path)._replace(identity="the same")

    monkeypatch.setattr(runtime, "map_model", map_model)
    monkeypatch.setattr(jit, "user_directory", lambda: tmp_path / "plans")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.tflite"


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A number for each partition that is planned anew."""
    made: list[int] = []

    def counted(*arguments: Any) -> Any:
        made.append(len(made))
        return compiled_of(*arguments)

    monkeypatch.setattr("gossamer.delegates.jit.compiling.compiled_of", counted)
    return made


def edit(path: Path, content: bytes) -> None:
    """Write into the file that there is, as it is mapped by whoever maps it."""
    with path.open("r+b") as stream:
        stream.write(content)


def outcome(make: Callable[[], Interpreter], inputs: list[np.ndarray] | None = None) -> Any:
    """The outputs for some inputs, or what is raised."""
    try:
        interpreter = make()
        interpreter.allocate_tensors()
        for details, value in zip(interpreter.get_input_details(), inputs or [X], strict=True):
            interpreter.set_tensor(details["index"], value)
        interpreter.invoke()
        return [interpreter.get_tensor(details["index"]) for details in interpreter.get_output_details()]
    except (ValueError, RuntimeError) as error:
        return f"{type(error).__name__}: {error}"


def of_file(path: Path, inputs: list[np.ndarray] | None = None, **settings: Any) -> Any:
    return outcome(lambda: Interpreter(str(path), **settings), inputs)


def of_bytes(content: bytes, inputs: list[np.ndarray] | None = None) -> Any:
    return outcome(lambda: Interpreter(model_content=content), inputs)


def equal(found: Any, wanted: Any) -> None:
    np.testing.assert_equal(found, wanted)


def layers(known: bool, activation: ActivationFunctionType = ActivationFunctionType.RELU, seed: int = 0) -> bytes:
    """Two layers of large weights and biases. Unless it is to be ``known`` without being read, the input goes out."""
    make, rng = ModelMaker(), np.random.default_rng(seed)
    x, hidden, y = make.tensor((8, 64), name="x"), make.tensor((8, 1100), name="hidden"), make.tensor((8, 1100))
    weights = make.constant(rng.standard_normal((1100, 64)), np.float32, FLOAT)
    bias = make.constant(rng.standard_normal(1100), np.float32, FLOAT)
    make.op(
        "FULLY_CONNECTED", [x, weights, bias], [hidden], FullyConnectedOptions(fused_activation_function=activation)
    )
    make.op("ADD", [hidden, bias], [y], AddOptions())
    make.io([x], [y] if known else [y, x])
    return make.model()


@pytest.mark.parametrize("known", [True, False])
def test_a_plan_is_for_the_structure_that_it_was_made_of(path: Path, known: bool, planned: list[int]) -> None:
    first, second = layers(known), layers(known, ActivationFunctionType.RELU6)
    assert len(first) == len(second)
    path.write_bytes(first)
    for _ in range(2):
        equal(of_file(path), of_bytes(first))
    before = len(planned)
    edit(path, second)
    wanted = of_bytes(second)
    assert wanted[0].max() < of_bytes(first)[0].max()
    del planned[before:]
    for _ in range(2):
        equal(of_file(path), wanted)
    assert len(planned) == before + 1
    edit(path, first)
    equal(of_file(path), of_bytes(first))


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("place", range(0, 2400, 61))
def test_any_byte_of_the_structure(path: Path, known: bool, place: int, lenient: None) -> None:
    content = layers(known)
    path.write_bytes(content)
    of_file(path)
    edited = bytearray(content)
    places = [at for start, end in structures.structure(read_model(content)) for at in range(start, end)]
    edited[places[place % len(places)]] ^= 1 << place % 8
    edit(path, bytes(edited))
    equal(of_file(path), of_bytes(bytes(edited)))


@pytest.mark.parametrize("known", [True, False])
def test_large_weights_are_read_each_time(path: Path, known: bool, planned: list[int]) -> None:
    path.write_bytes(layers(known))
    of_file(path)
    edited = layers(known, seed=1)
    edit(path, edited)
    wanted = of_bytes(edited)
    del planned[1:]
    for _ in range(2):
        equal(of_file(path), wanted)
    assert len(planned) == 1, "the plan does not depend on weights"


@pytest.mark.parametrize("known", [True, False])
def test_interpreters_that_live_at_the_same_time(path: Path, known: bool) -> None:
    path.write_bytes(layers(known))
    first = Interpreter(str(path))
    first.allocate_tensors()
    edited = layers(known, seed=1)
    edit(path, edited)
    equal(of_file(path), of_bytes(edited))


@pytest.mark.usefixtures("lenient")
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("changes", [{"activation": ActivationFunctionType.RELU6}, {"seed": 1}])
def test_an_edit_before_the_plan_is_made(path: Path, known: bool, changes: Any) -> None:
    path.write_bytes(layers(known))
    interpreter = Interpreter(str(path))
    edited = layers(known, **changes)
    edit(path, edited)
    interpreter.allocate_tensors()
    equal(of_file(path), of_bytes(edited))


def test_a_delegate_that_lives_longer_than_its_models(path: Path) -> None:
    delegate = JitDelegate()
    first, second = scattered([3, 1]), scattered([0, 2])
    values = [np.ones((2000,), np.float32)]
    path.write_bytes(first)
    equal(of_file(path, values, experimental_delegates=[delegate]), of_bytes(first, values))
    edit(path, second)
    equal(of_file(path, values, experimental_delegates=[delegate]), of_bytes(second, values))


def scattered(pattern: list[int]) -> bytes:
    """SCATTER_ND with 8000 bytes of constant indices."""
    make = ModelMaker()
    x, y = make.tensor((2000,), name="x"), make.tensor((4,), name="y")
    indices = make.constant(np.resize(pattern, (2000, 1)), np.int32, INT32)
    make.op("SCATTER_ND", [indices, x, make.constant([4], np.int32, INT32)], [y])
    make.io([x], [y])
    return make.model()


def gathered(pattern: list[int]) -> bytes:
    """GATHER with 8000 bytes of constant indices: evenly apart, they are a view."""
    make = ModelMaker()
    x, y = make.tensor((2048,), name="x"), make.tensor((2000,), name="y")
    indices = make.constant(np.resize(pattern, 2000) + np.arange(2000), np.int32, INT32)
    make.op("GATHER", [x, indices], [y], GatherOptions())
    make.io([x], [y])
    return make.model()


def added(value: float, width: int = 1100) -> bytes:
    """ADD of a constant that RESHAPE folds."""
    make = ModelMaker()
    x, y, flat = make.tensor((1, width), name="x"), make.tensor((1, width), name="y"), make.tensor((1, width))
    constant = make.constant(np.full(width, value), np.float32, FLOAT)
    make.op("RESHAPE", [constant, make.constant([1, width], np.int32, INT32)], [flat], ReshapeOptions())
    make.op("ADD", [x, flat], [y], AddOptions())
    make.io([x], [y])
    return make.model()


@pytest.mark.parametrize(
    ("model", "values", "inputs"),
    [
        (scattered, ([3, 1], [0, 2]), np.arange(2000, dtype=np.float32)),
        (gathered, ([0], [7]), np.arange(2048, dtype=np.float32)),
        (gathered, ([0], [0, 1]), np.arange(2048, dtype=np.float32)),
        (added, (1.0, 2.0), np.zeros((1, 1100), np.float32)),
    ],
)
def test_large_constants_that_a_plan_was_folded_from(path: Path, model: Any, values: Any, inputs: Any) -> None:
    first, second = map(model, values)
    path.write_bytes(first)
    for _ in range(2):
        equal(of_file(path, [inputs]), of_bytes(first, [inputs]))
    edit(path, second)
    for _ in range(2):
        equal(of_file(path, [inputs]), of_bytes(second, [inputs]))
    edit(path, first)
    equal(of_file(path, [inputs]), of_bytes(first, [inputs]))


# Every constant of every operator


def _cases() -> list[tuple[Any, Case, int]]:
    """Operators that are lowered, their cases, and the positions of constants."""
    here = Path(__file__).parent.parent / "ops"
    modules = [import_module(f"tests.ops.{file.stem}") for file in sorted(here.glob("test_*.py"))]
    return [
        (module.op, case, position)
        for module in modules
        if hasattr(module, "CASES") and hasattr(module, "op") and module.op.lower_function is not None
        for case in module.CASES
        for position, operand in enumerate(case.inputs)
        if operand is not None and operand.constant and operand.value.size
    ]


EDITS = _cases()
FEW = {(op.name, position): number for number, (op, _, position) in reversed(list(enumerate(EDITS)))}.values()
"""The first case of each constant."""


@pytest.mark.usefixtures("lenient")
@pytest.mark.parametrize("number", thinned(range(len(EDITS)), FEW), ids=lambda n: f"{EDITS[n][0].name}-{n}")
def test_every_constant_of_every_operator(path: Path, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if all constants were weights, of which the structure has nothing."""
    monkeypatch.setattr(structures, "LARGE", 1)
    op, case, position = EDITS[number]
    fed = [one.value for one in case.inputs if one is not None and not one.constant and not one.variable]
    first = model_of(op, case)
    path.write_bytes(first)
    equal(of_file(path, fed), of_bytes(first, fed))
    equal(of_file(path, fed), of_bytes(first, fed))
    for value in _others(case.inputs[position]):
        second = model_of(op, _with(case, position, value))
        if len(second) == len(first):
            edit(path, second)
            equal(of_file(path, fed), of_bytes(second, fed))


def _others(operand: Operand | None) -> list[np.ndarray]:
    assert operand is not None
    value = operand.value
    if value.dtype == object:
        return []
    last = value.copy()
    last.reshape(-1)[-1:] = last.reshape(-1)[:1]
    return [
        value[::-1] if value.ndim else value,
        last,
        value ^ True if value.dtype == bool else value + value.dtype.type(1),
    ]


def _with(case: Case, position: int, value: np.ndarray) -> Case:
    inputs = list(case.inputs)
    operand = inputs[position]
    assert operand is not None
    inputs[position] = replace(operand, value=np.ascontiguousarray(value).reshape(operand.value.shape))
    return replace(case, inputs=inputs)
