"""WHILE: iterations, shapes that grow, refusals."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer import Interpreter
from gossamer.schema import ConcatenationOptions, TensorType, WhileOptions
from tests.runtime.graphs import ModelMaker


def counting(limit: int = 5, grow: bool = False, cond: int = 1, body: int = 2) -> bytes:
    """i, x -> while i < limit: i + 1, x + x (or, growing, x ++ x)."""
    make = ModelMaker()
    inputs = [make.tensor((1,), TensorType.INT32), make.tensor((1,))]
    outputs = [make.tensor((1,), TensorType.INT32), make.tensor((1,))]
    make.op("WHILE", inputs, outputs, WhileOptions(cond_subgraph_index=cond, body_subgraph_index=body))
    make.io(inputs, outputs)
    make.subgraph("cond")
    i, x = make.tensor((1,), TensorType.INT32), make.tensor((1,))
    n = make.constant([limit], np.int32, TensorType.INT32)
    less = make.tensor((1,), TensorType.BOOL)
    make.op("LESS", [i, n], [less])
    make.io([i, x], [less])
    make.subgraph("body")
    i, x = make.tensor((1,), TensorType.INT32), make.tensor((1,))
    one = make.constant([1], np.int32, TensorType.INT32)
    i2, x2 = make.tensor((1,), TensorType.INT32), make.tensor((2,) if grow else (1,))
    make.op("ADD", [i, one], [i2])
    if grow:
        make.op("CONCATENATION", [x, x], [x2], ConcatenationOptions(axis=0))
    else:
        make.op("ADD", [x, x], [x2])
    make.io([i, x], [i2, x2])
    return make.model()


def run(model: bytes, start: int) -> list[np.ndarray]:
    interpreter = Interpreter(model_content=model)
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, np.array([start], np.int32))
    interpreter.set_tensor(1, np.array([3], np.float32))
    interpreter.invoke()
    return [interpreter.get_tensor(details["index"]) for details in interpreter.get_output_details()]


@pytest.mark.parametrize(("start", "count", "value"), [(0, 5, 96), (4, 5, 6), (5, 5, 3), (9, 9, 3)])
def test_loop_variables_after_the_last_iteration(start: int, count: int, value: float) -> None:
    i, x = run(counting(), start)
    np.testing.assert_array_equal(i, [count])
    np.testing.assert_array_equal(x, [value])


@pytest.mark.parametrize(("start", "length"), [(5, 1), (4, 2), (2, 8)])
def test_a_body_that_changes_a_shape_gives_that_of_the_last_iteration(start: int, length: int) -> None:
    _, x = run(counting(grow=True), start)
    np.testing.assert_array_equal(x, np.full(length, 3))


def test_refuses_one_subgraph_for_condition_and_body() -> None:
    with pytest.raises(RuntimeError, match="condition and body must be different subgraphs, both are 2"):
        Interpreter(model_content=counting(cond=2)).allocate_tensors()


def test_refuses_recursion() -> None:
    with pytest.raises(RuntimeError, match="calls itself"):
        Interpreter(model_content=counting(body=0)).allocate_tensors()
