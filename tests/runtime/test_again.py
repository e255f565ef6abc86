"""Calls that take the short way: the same as those before them, until something changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer import Interpreter
from tests.runtime.graphs import adder

X = np.arange(6, dtype=np.float32).reshape(2, 3)


class Counting:
    """Stands for what a kernel does again, and counts."""

    def __init__(self, again: Any) -> None:
        self.again, self.calls = again, 0

    def __call__(self) -> Any:
        self.calls += 1
        return self.again()


@pytest.fixture
def interpreter() -> Interpreter:
    made = Interpreter(model_content=adder())
    made.resize_tensor_input(made.get_input_details()[0]["index"], X.shape)
    made.allocate_tensors()
    return made


def run(interpreter: Interpreter, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


def counting(interpreter: Interpreter) -> Counting:
    """For calls after the second, which is the first to find every tensor where it was."""
    run(interpreter, X)
    (kernel,) = interpreter.delegate_kernels()
    if kernel.again is None:
        pytest.skip("no machine code for this CPU")
    kernel.again = counter = Counting(kernel.again)
    return counter


def test_later_calls_are_short_and_right(interpreter: Interpreter) -> None:
    assert np.array_equal(run(interpreter, X), X + 2)
    counter = counting(interpreter)
    for number in range(3):
        assert np.array_equal(run(interpreter, X * number), X * number + 2)
    assert counter.calls == 3


def test_what_is_given_out_is_a_copy(interpreter: Interpreter) -> None:
    results = [run(interpreter, X * number) for number in range(4)]
    for number, result in enumerate(results):
        assert np.array_equal(result, X * number + 2)


def test_other_shapes_take_the_long_way(interpreter: Interpreter) -> None:
    run(interpreter, X)
    counter = counting(interpreter)
    interpreter.resize_tensor_input(interpreter.get_input_details()[0]["index"], (5, 3))
    with pytest.raises(RuntimeError, match="not ready"):
        interpreter.invoke()
    interpreter.allocate_tensors()
    x = np.arange(15, dtype=np.float32).reshape(5, 3)
    assert np.array_equal(run(interpreter, x), x + 2)
    assert np.array_equal(run(interpreter, 2 * x), 2 * x + 2)
    assert counter.calls == 0


def test_a_view_that_is_held_refuses_the_short_way_too(interpreter: Interpreter) -> None:
    run(interpreter, X)
    counter = counting(interpreter)
    view = interpreter.tensor(interpreter.get_output_details()[0]["index"])()
    with pytest.raises(RuntimeError, match="reference to internal data"):
        interpreter.invoke()
    del view
    interpreter.invoke()
    assert counter.calls == 1


def test_a_call_inside_a_call_is_refused(interpreter: Interpreter) -> None:
    run(interpreter, X)
    run(interpreter, X)
    (kernel,) = interpreter.delegate_kernels()
    if kernel.again is None:
        pytest.skip("no machine code for this CPU")
    kernel.again = interpreter.invoke
    with pytest.raises(RuntimeError, match="already running"):
        interpreter.invoke()
    kernel.again = None
    assert np.array_equal(run(interpreter, X), X + 2)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (X.astype(np.float64), "Got value of type FLOAT64 but expected type FLOAT32"),
        (X.reshape(3, 2), "Got 3 but expected 2 for dimension 0"),
        (X.reshape(-1), "Got 1 but expected 2"),
    ],
)
def test_what_does_not_fit_is_refused_after_what_did(
    interpreter: Interpreter, value: np.ndarray[Any, Any], message: str
) -> None:
    run(interpreter, X)
    with pytest.raises(ValueError, match=message):
        run(interpreter, value)
    assert np.array_equal(run(interpreter, X), X + 2)


def test_values_of_any_layout_are_set(interpreter: Interpreter) -> None:
    run(interpreter, X)
    assert np.array_equal(run(interpreter, np.asfortranarray(X)), X + 2)
    assert np.array_equal(run(interpreter, X[::-1, ::-1]), X[::-1, ::-1] + 2)
    assert np.array_equal(run(interpreter, X.astype(">f4")), X + 2)


def test_a_profile_of_a_model_that_has_run(interpreter: Interpreter) -> None:
    run(interpreter, X)
    kernel: Any = interpreter.delegate_kernels()[0]
    counting(interpreter)
    seen: list[Any] = []
    kernel.observe(seen.append)
    assert np.array_equal(run(interpreter, X), X + 2)
    assert len(seen) == 1
    kernel.observe(None)
    assert np.array_equal(run(interpreter, X), X + 2)
    assert len(seen) == 1


def test_indices_are_numbers(interpreter: Interpreter) -> None:
    run(interpreter, X)
    (output,) = (detail["index"] for detail in interpreter.get_output_details())
    assert np.array_equal(interpreter.get_tensor(np.int64(output)), X + 2)
    with pytest.raises(TypeError):
        interpreter.get_tensor(float(output))


def test_an_index_out_of_range_is_told_and_the_next_call_is_short() -> None:
    from gossamer.ops.gather import op
    from tests.ops.cases import Case, model_of, tensor

    x = tensor(np.arange(12).reshape(3, 4))
    interpreter = Interpreter(
        model_content=model_of(op, Case("", [x, tensor([2, 0], np.int32)], [tensor(x.value[:2])]))
    )
    interpreter.allocate_tensors()
    table, positions = (details["index"] for details in interpreter.get_input_details())
    interpreter.set_tensor(table, x.value)
    (y,) = interpreter.get_output_details()

    def rows(*numbers: int) -> np.ndarray[Any, Any]:
        interpreter.set_tensor(positions, np.array(numbers, np.int32))
        interpreter.invoke()
        return interpreter.get_tensor(y["index"])

    for numbers in ((2, 0), (1, 1), (0, 2)):
        assert np.array_equal(rows(*numbers), x.value[list(numbers)])
    (kernel,) = interpreter.delegate_kernels()
    if kernel.again is None:
        pytest.skip("no machine code for this CPU")
    kernel.again = counter = Counting(kernel.again)
    with pytest.raises(RuntimeError, match=r"position 3 is out of range \[0, 3\)"):
        rows(0, 3)
    assert counter.calls == 1
    for numbers in ((2, 0), (1, 1), (0, 2)):
        assert np.array_equal(rows(*numbers), x.value[list(numbers)])
    assert kernel.again is not None
