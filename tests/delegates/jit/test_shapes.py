"""Inputs that change their shapes: programs for the last shapes are kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gossamer import Interpreter, PrepareError
from gossamer.delegates.jit import delegate
from gossamer.delegates.jit.delegate import JitDelegate, JitKernel, kept_bytes
from gossamer.programs.program import ARENA
from gossamer.schema import FullyConnectedOptions, ShapeOptions, TensorType
from tests.delegates.jit.running import outputs
from tests.runtime.graphs import ModelMaker

WEIGHTS = (np.arange(48 * 48).reshape(48, 48) % 5 - 2).astype(np.float32)


def dense() -> bytes:
    make = ModelMaker()
    x, y = make.tensor((1, 48), shape_signature=(-1, 48)), make.tensor((1, 48))
    weights = make.constant(WEIGHTS, np.float32, TensorType.FLOAT32)
    make.op("FULLY_CONNECTED", [x, weights, -1], [y], FullyConnectedOptions())
    make.io([x], [y])
    return make.model()


class Counting(delegate.Program):
    """A program; counts how many are made, and how often one packs."""

    made = packed = 0

    def __init__(self, *arguments: Any) -> None:
        Counting.made += 1
        super().__init__(*arguments)

    def pack(self, *arguments: Any, **settings: Any) -> None:
        Counting.packed += 1
        super().pack(*arguments, **settings)


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> type[Counting]:
    monkeypatch.setattr(delegate, "Program", Counting)
    Counting.made = Counting.packed = 0
    return Counting


def run(interpreter: Interpreter, rows: int) -> None:
    x = np.arange(rows * 48, dtype=np.float32).reshape(rows, 48) % 11
    interpreter.resize_tensor_input(0, x.shape)
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, x)
    for _ in range(2):
        interpreter.invoke()
        assert np.array_equal(interpreter.get_tensor(1), x @ WEIGHTS.T)


@pytest.mark.parametrize("stored", [True, False], ids=["file", "bytes"])
def test_two_shapes_in_turn_make_and_pack_nothing_again(stored: bool, counting: type[Counting], tmp_path: Path) -> None:
    path = tmp_path / "dense.tflite"
    path.write_bytes(dense())
    interpreter = Interpreter(str(path)) if stored else Interpreter(model_content=dense())
    for rows in (2, 5):
        run(interpreter, rows)
    before = counting.made, counting.packed
    assert before[0] >= 2
    for rows in (2, 5, 2, 5):
        run(interpreter, rows)
    assert (counting.made, counting.packed) == before


def test_only_the_last_shapes_are_kept(counting: type[Counting], monkeypatch: pytest.MonkeyPatch) -> None:
    interpreter = Interpreter(model_content=dense())
    run(interpreter, 8)
    (kernel,) = interpreter.delegate_kernels()
    monkeypatch.setattr(delegate, "MOST_KEPT", 3 * kept_bytes([kernel.program]))
    for rows in range(1, 41):
        run(interpreter, rows)
    kept = len(kernel._prepared)
    assert 2 <= kept < 40
    before = counting.made
    run(interpreter, 40 - kept + 1)
    assert counting.made == before
    run(interpreter, 1)
    assert counting.made == before + 1


def test_fifty_shapes_are_kept_and_share_their_memory(counting: type[Counting]) -> None:
    interpreter = Interpreter(model_content=dense())
    for rows in range(1, 51):
        run(interpreter, rows)
    before = counting.made
    for rows in range(1, 51):
        run(interpreter, rows)
    assert counting.made == before
    (kernel,) = interpreter.delegate_kernels()
    arenas = {id(one.program.memory[ARENA]) for one in kernel._prepared.values()}
    assert arenas == {id(kernel._arena.of(kernel.program.plan)[ARENA])}


def test_a_value_that_comes_of_a_shape_makes_another_program() -> None:
    """The second partition's inputs have one shape only, but one of them is a value that a shape decides."""
    make = ModelMaker()
    x, b, y = make.tensor((2,), shape_signature=(-1,)), make.tensor((1,)), make.tensor((1,))
    shape, number = make.tensor((1,), TensorType.INT32), make.tensor((1,))
    make.op("SHAPE", [x], [shape], ShapeOptions(out_type=TensorType.INT32))
    make.op("CAST", [shape], [number])
    make.op("ADD", [number, b], [y])
    make.io([x, b], [y])
    interpreter = Interpreter(model_content=make.model())
    for size in (2, 7, 2, 7):
        interpreter.resize_tensor_input(0, [size])
        interpreter.allocate_tensors()
        interpreter.set_tensor(1, np.float32([10]))
        interpreter.invoke()
        assert interpreter.get_tensor(2) == [10 + size]


@pytest.mark.parametrize("others", [False, True], ids=["alone", "another_delegate"])
def test_shapes_that_were_wrong_at_first_leave_nothing_to_the_reference_kernels(others: bool) -> None:
    make = ModelMaker()
    x, shape = make.tensor((2, 3)), make.constant([6], np.int32, TensorType.INT32)
    flat, y = make.tensor((6,)), make.tensor((6,))
    make.op("RESHAPE", [x, shape], [flat])
    make.op("NEG", [flat], [y])
    make.io([x], [y])
    interpreter = Interpreter(model_content=make.model())
    if others:
        interpreter.modify_graph_with_delegate(JitDelegate())
    for wrong in ((2, 4), (5, 3)):
        interpreter.resize_tensor_input(0, wrong)
        with pytest.raises(PrepareError, match="RESHAPE"):
            interpreter.allocate_tensors()
    interpreter.resize_tensor_input(0, (3, 2))
    interpreter.allocate_tensors()
    (kernel,) = interpreter.delegate_kernels()
    assert isinstance(kernel, JitKernel)
    assert kernel.program is not None
    np.testing.assert_array_equal(outputs(interpreter, {0: np.ones((3, 2), np.float32)})[0], -np.ones(6))
    interpreter.resize_tensor_input(0, (5, 3))
    with pytest.raises(PrepareError, match="RESHAPE"):
        interpreter.allocate_tensors()
    assert interpreter.delegate_kernels() == [kernel]
