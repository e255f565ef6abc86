"""Shapes in turn: what a graph was for one that it has had comes back, and is what a new interpreter would be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gossamer import Interpreter
from gossamer.runtime.subgraph import Subgraph
from gossamer.schema import (
    CallOnceOptions,
    GatherOptions,
    IfOptions,
    QuantizationParameters,
    ReducerOptions,
    SVDFOptions,
    TensorType,
    VarHandleOptions,
    WhileOptions,
)
from tests.runtime.graphs import ModelMaker, adder

ROWS = (2, 5, 2, 40, 5, 2, 0, 40, 1, 2, 0, 5, 300, 2, 40, 300, 1)
"""New ones and known ones; some need a larger arena than those before."""


def quantized() -> bytes:
    make = ModelMaker()
    scales = {
        "quantization": QuantizationParameters(scale=np.float32([0.5]), zero_point=np.int64([3])),
        "shape_signature": (-1, 3),
    }
    x, y, z = (make.tensor((1, 3), TensorType.INT8, **scales) for _ in range(3))
    make.op("ADD", [x, x], [y])
    make.op("MUL", [y, x], [z])
    make.io([x], [z, y])
    return make.model()


def remembering() -> bytes:
    """Variable tensors, which are as new whenever tensors are allocated."""
    make = ModelMaker()
    x, y, z = make.tensor((1, 3), shape_signature=(-1, 3)), make.tensor((1, 3)), make.tensor((1, 2))
    row = make.tensor((1, 3))
    axis = make.constant([0], np.int32, TensorType.INT32)
    features = make.constant(np.ones((2, 3)), np.float32, TensorType.FLOAT32)
    times = make.constant(np.ones((2, 3)), np.float32, TensorType.FLOAT32)
    state = make.tensor((1, 6), is_variable=True)
    make.op("ADD", [x, x], [y])
    make.op("SUM", [x, axis], [row], ReducerOptions(keep_dims=True))
    make.op("SVDF", [row, features, times, -1, state], [z], SVDFOptions(rank=1))
    make.io([x], [z, y])
    return make.model()


def counting() -> bytes:
    """A resource variable, to which each run adds; it goes on whatever shapes are."""
    make = ModelMaker()
    x, row = make.tensor((1, 3), shape_signature=(-1, 3)), make.tensor((1, 3))
    axis = make.constant([0], np.int32, TensorType.INT32)
    handle = make.tensor((1,), TensorType.RESOURCE)
    before, after = make.tensor((1, 3)), make.tensor((1, 3))
    make.op("CALL_ONCE", [], [], CallOnceOptions(init_subgraph_index=1))
    make.op("VAR_HANDLE", [], [handle], VarHandleOptions(shared_name="total"))
    make.op("READ_VARIABLE", [handle], [before])
    make.op("SUM", [x, axis], [row], ReducerOptions(keep_dims=True))
    make.op("ADD", [before, row], [after])
    make.op("ASSIGN_VARIABLE", [handle, after], [])
    make.io([x], [after])
    make.subgraph("init")
    start = make.constant([[1, 2, 3]], np.float32, TensorType.FLOAT32)
    handle = make.tensor((1,), TensorType.RESOURCE)
    make.op("VAR_HANDLE", [], [handle], VarHandleOptions(shared_name="total"))
    make.op("ASSIGN_VARIABLE", [handle, start], [])
    make.io([], [])
    return make.model()


def found() -> bytes:
    """As many rows as the data have it."""
    make = ModelMaker()
    x, flags = make.tensor((1, 3), shape_signature=(-1, 3)), make.tensor((1, 3), TensorType.BOOL)
    places, y = make.tensor((1, 2), TensorType.INT64), make.tensor((1, 3))
    zero = make.constant(4, np.float32, TensorType.FLOAT32)
    make.op("GREATER", [x, zero], [flags])
    make.op("WHERE", [flags], [places])
    make.op("ADD", [x, x], [y])
    make.io([x], [places, y])
    return make.model()


def branching() -> bytes:
    make = ModelMaker()
    x, y = make.tensor((1, 3), shape_signature=(-1, 3)), make.tensor((1, 3))
    most, flag = make.tensor(()), make.tensor((), TensorType.BOOL)
    axes = make.constant([0, 1], np.int32, TensorType.INT32)
    limit = make.constant(7, np.float32, TensorType.FLOAT32)
    make.op("REDUCE_MAX", [x, axes], [most], ReducerOptions())
    make.op("GREATER", [most, limit], [flag])
    make.op("IF", [flag, x], [y], IfOptions(then_subgraph_index=1, else_subgraph_index=2))
    make.io([x], [y])
    for name in ("EXP", "NEG"):
        make.subgraph(name)
        x, y = make.tensor((1, 3)), make.tensor((1, 3))
        make.op(name, [x], [y])
        make.io([x], [y])
    return make.model()


def looping() -> bytes:
    make = ModelMaker()
    x, y = make.tensor((1, 3), shape_signature=(-1, 3)), make.tensor((1, 3))
    zero, turns = make.constant(0, np.int32, TensorType.INT32), make.tensor((), TensorType.INT32)
    make.op("WHILE", [zero, x], [turns, y], WhileOptions(cond_subgraph_index=1, body_subgraph_index=2))
    make.io([x], [y])
    make.subgraph("cond")
    turn, x, goes_on = make.tensor((), TensorType.INT32), make.tensor((1, 3)), make.tensor((), TensorType.BOOL)
    make.op("LESS", [turn, make.constant(3, np.int32, TensorType.INT32)], [goes_on])
    make.io([turn, x], [goes_on])
    make.subgraph("body")
    turn, x = make.tensor((), TensorType.INT32), make.tensor((1, 3))
    following, y = make.tensor((), TensorType.INT32), make.tensor((1, 3))
    make.op("ADD", [turn, make.constant(1, np.int32, TensorType.INT32)], [following])
    make.op("ADD", [x, x], [y])
    make.io([turn, x], [following, y])
    return make.model()


def guarded() -> bytes:
    """An index that may be out of range, which the reference kernels say."""
    make = ModelMaker()
    x, y = make.tensor((1, 3), TensorType.INT32, shape_signature=(-1, 3)), make.tensor((1, 3))
    table = make.constant(np.arange(400), np.float32, TensorType.FLOAT32)
    make.op("GATHER", [table, x], [y], GatherOptions())
    make.io([x], [y])
    return make.model()


MODELS: dict[Callable[[], bytes], bool] = {
    adder: True,
    quantized: True,
    remembering: True,
    branching: True,
    looping: True,
    guarded: True,
    found: False,
}
"""Models whose first input has any number of rows of three, and whether what they were allocated as is kept."""


def allocate(interpreter: Interpreter, rows: int) -> None:
    interpreter.resize_tensor_input(interpreter.get_input_details()[0]["index"], [rows, 3])
    interpreter.allocate_tensors()


def run(interpreter: Interpreter, seed: int) -> list[Any]:
    (x,) = interpreter.get_input_details()
    interpreter.set_tensor(
        x["index"], ((np.arange(np.prod(x["shape"])) * 7 + seed) % 11).reshape(x["shape"]).astype(x["dtype"])
    )
    interpreter.invoke()
    return [interpreter.get_tensor(y["index"]) for y in interpreter.get_output_details()]


def bits(results: list[Any]) -> list[Any]:
    return [(result.dtype, result.shape, result.tobytes()) for result in results]


def told(interpreter: Interpreter) -> tuple[Any, ...]:
    """All that users are told of it."""
    details = [{**one, "dtype": str(one["dtype"])} for one in interpreter.get_tensor_details()]
    return (
        interpreter.memory_plan(),
        interpreter.memory_plan(persistent=True),
        repr(details),
        interpreter.memory_report(),
    )


@pytest.fixture
def restored(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether what a graph was came back, each time that tensors were allocated."""
    answers: list[bool] = []
    restore = Subgraph._restore

    def noted(graph: Subgraph) -> bool:
        answers.append(restore(graph))
        return answers[-1]

    monkeypatch.setattr(Subgraph, "_restore", noted)
    return answers


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_shapes_in_turn_are_those_of_a_new_interpreter(model: Callable[[], bytes], restored: list[bool]) -> None:
    """And what else is told is what it is where nothing is kept."""
    content = model()
    interpreter, forgetful, fresh = (Interpreter(model_content=content) for _ in range(3))
    for turn, rows in enumerate(ROWS):
        new = fresh.clone()
        for graph in forgetful._subgraphs:
            graph._allocations.forget()
        for one in (interpreter, forgetful, new):
            allocate(one, rows)
        assert told(interpreter) == told(forgetful)
        for seed in (turn, turn + 1, turn + 2):
            ours, others, theirs = (bits(run(one, seed)) for one in (interpreter, forgetful, new))
            assert ours == others == theirs
        assert told(interpreter) == told(forgetful)
    assert any(restored) == (MODELS[model] and interpreter.delegate_kernels() != [])


def test_a_resource_goes_on_from_shape_to_shape(restored: list[bool]) -> None:
    interpreter = Interpreter(model_content=counting())
    total = np.float32([[1, 2, 3]])
    for turn, rows in enumerate(ROWS):
        allocate(interpreter, rows)
        for _ in range(3):
            x = np.full((rows, 3), turn, np.float32)
            interpreter.set_tensor(0, x)
            interpreter.invoke()
            total = total + x.sum(0)
            assert np.array_equal(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]), total)
    assert any(restored) == (interpreter.delegate_kernels() != [])


@pytest.fixture
def alternating() -> Interpreter:
    """Allocated for two rows, and has run for two and for three."""
    interpreter = Interpreter(model_content=adder())
    for rows in (2, 3, 2):
        allocate(interpreter, rows)
        for seed in range(3):
            run(interpreter, seed)
    return interpreter


def expected(rows: int, seed: int) -> np.ndarray[Any, Any]:
    return ((np.arange(rows * 3) * 7 + seed) % 11).reshape(rows, 3).astype(np.float32) + 2


def test_what_runs_a_shape_again_comes_back_with_it(alternating: Interpreter) -> None:
    kernels = alternating.delegate_kernels()
    if not kernels or kernels[0].again is None:
        pytest.skip("no machine code for this CPU")
    again = kernels[0].again
    allocate(alternating, 3)
    assert kernels[0].again not in (None, again)
    assert alternating._engine.executor.sole is kernels[0]
    assert np.array_equal(run(alternating, 5)[0], expected(3, 5))
    allocate(alternating, 2)
    assert kernels[0].again is again
    assert np.array_equal(run(alternating, 6)[0], expected(2, 6))


def test_who_looks_on_sees_a_shape_that_comes_back(alternating: Interpreter) -> None:
    seen: list[tuple[int, ...]] = []
    with alternating.tap(lambda tensor, value: seen.append(value.shape)):
        for rows in (3, 2, 3, 2):
            allocate(alternating, rows)
            assert np.array_equal(run(alternating, rows)[0], expected(rows, rows))
    assert set(seen[: len(seen) // 2]) == set(seen[len(seen) // 2 :]) == {(3, 3), (2, 3)}
    allocate(alternating, 3)
    before = len(seen)
    assert np.array_equal(run(alternating, 1)[0], expected(3, 1))
    assert len(seen) == before


def test_a_cancellation_function_is_asked_for_a_shape_that_comes_back(alternating: Interpreter) -> None:
    asked: list[None] = []
    alternating.set_cancellation_function(lambda: bool(asked.append(None)))
    for rows in (3, 2):
        allocate(alternating, rows)
        before = len(asked)
        assert np.array_equal(run(alternating, rows)[0], expected(rows, rows))
        assert len(asked) > before


def test_an_observer_is_told_of_a_shape_that_comes_back(alternating: Interpreter) -> None:
    if not alternating.delegate_kernels():
        pytest.skip("no machine code for this CPU")
    (kernel,) = alternating.delegate_kernels()
    told: list[Any] = []
    kernel.observe(told.append)
    for rows in (3, 2):
        allocate(alternating, rows)
        assert np.array_equal(run(alternating, rows)[0], expected(rows, rows))
    assert len(told) == 2


def test_a_view_that_is_held_keeps_shapes_as_they_are(alternating: Interpreter) -> None:
    view = alternating.tensor(0)()
    with pytest.raises(RuntimeError, match="reference to internal data"):
        alternating.resize_tensor_input(0, [3, 3])
    view[...] = 4
    del view
    allocate(alternating, 3)
    allocate(alternating, 2)
    alternating.invoke()
    assert alternating.tensor(0)().shape == (2, 3)
    assert np.array_equal(alternating.get_tensor(alternating.get_output_details()[0]["index"]), np.full((2, 3), 6))


def test_another_delegate_ends_what_was_kept(alternating: Interpreter) -> None:
    subgraph = alternating._subgraphs[0]
    subgraph.delegation.remove()
    for rows in (3, 2):
        allocate(alternating, rows)
        assert np.array_equal(run(alternating, rows)[0], expected(rows, rows))


def test_a_shape_that_fails_spoils_no_other(alternating: Interpreter) -> None:
    for wrong in ([3, 4, 5, 2, 2, 2, 2, 2], [2, 5]):
        alternating.resize_tensor_input(0, wrong)
        try:
            alternating.allocate_tensors()
        except RuntimeError:
            with pytest.raises(RuntimeError, match="not ready"):
                alternating.invoke()
        for rows in (3, 2):
            allocate(alternating, rows)
            assert np.array_equal(run(alternating, rows)[0], expected(rows, rows))


def test_programs_that_are_dropped_are_made_again(restored: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gossamer.delegates.jit.delegate.MOST_KEPT", 0)
    interpreter = Interpreter(model_content=adder())
    for rows in (2, 3, 2, 3):
        allocate(interpreter, rows)
        assert np.array_equal(run(interpreter, rows)[0], expected(rows, rows))
    assert not any(restored)


def test_as_many_are_kept_as_may_be(alternating: Interpreter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gossamer.runtime.allocations.MOST_ALLOCATIONS", 2)
    for rows in (1, 2, 3, 1, 2, 3, 4, 1):
        allocate(alternating, rows)
        assert np.array_equal(run(alternating, rows)[0], expected(rows, rows))
    assert len(alternating._subgraphs[0]._allocations._kept) <= 2
