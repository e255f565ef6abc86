"""IF: branches, shapes, refusals."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer import Interpreter
from gossamer.schema import IfOptions, TensorType
from tests.runtime.graphs import ModelMaker


def branching(then_shape=(2,), else_shape=(2,), condition=TensorType.BOOL, branch=1) -> bytes:
    """y = c ? x + 1 : x + [10, ...]; the constants' shapes decide the shapes of the outputs."""
    make = ModelMaker()
    c, x, y = make.tensor((1,), condition), make.tensor((1,)), make.tensor((2,))
    make.op("IF", [c, x], [y], IfOptions(then_subgraph_index=branch, else_subgraph_index=2))
    make.io([c, x], [y])
    for name, shape, value in (("then", then_shape, 1.0), ("else", else_shape, 10.0)):
        make.subgraph(name)
        a = make.tensor((1,))
        k = make.constant(np.full(shape, value), np.float32, TensorType.FLOAT32)
        b = make.tensor(shape)
        make.op("ADD", [a, k], [b])
        make.io([a], [b])
    return make.model()


@pytest.mark.parametrize(("condition", "expected"), [(True, [4, 4]), (False, [13, 13])])
def test_runs_the_branch_that_the_condition_says(condition: bool, expected: list[int]) -> None:
    interpreter = Interpreter(model_content=branching())
    interpreter.allocate_tensors()
    np.testing.assert_array_equal(interpreter.get_output_details()[0]["shape"], [2])
    interpreter.set_tensor(0, np.array([condition]))
    interpreter.set_tensor(1, np.array([3], np.float32))
    interpreter.invoke()
    np.testing.assert_array_equal(interpreter.get_tensor(2), expected)


@pytest.mark.parametrize(("condition", "expected"), [(True, [4, 4]), (False, [13, 13, 13])])
def test_takes_the_shape_of_the_branch_that_ran(condition: bool, expected: list[int]) -> None:
    interpreter = Interpreter(model_content=branching(else_shape=(3,)))
    interpreter.allocate_tensors()
    for _ in range(2):
        interpreter.set_tensor(0, np.array([condition]))
        interpreter.set_tensor(1, np.array([3], np.float32))
        interpreter.invoke()
        np.testing.assert_array_equal(interpreter.get_tensor(2), expected)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (branching(condition=TensorType.INT32), "condition must be bool, got int32"),
        (branching(branch=0), "then .subgraph 0. must have 1 inputs, it has 2"),
    ],
)
def test_refuses(model: bytes, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        Interpreter(model_content=model).allocate_tensors()
