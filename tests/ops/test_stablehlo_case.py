"""STABLEHLO_CASE: branches, shapes, refusals."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer import Interpreter
from gossamer.schema import StablehloCaseOptions, TensorType
from tests.runtime.graphs import ModelMaker


def branching(
    shapes: tuple[tuple[int, ...], ...] = ((2,), (2,), (2,)),
    branches: tuple[int, ...] = (1, 2, 3),
    index: TensorType = TensorType.INT32,
    size: int = 1,
) -> bytes:
    """y = x + 1, x + 10 or x + 100; the constants' shapes decide the shapes of the outputs."""
    make = ModelMaker()
    i, x, y = make.tensor((size,), index), make.tensor((1,)), make.tensor((2,))
    make.op("STABLEHLO_CASE", [i, x], [y], StablehloCaseOptions(branch_subgraph_indices=branches))
    make.io([i, x], [y])
    for number, shape in enumerate(shapes):
        make.subgraph(f"branch {number}")
        a, b = make.tensor((1,)), make.tensor(shape)
        k = make.constant(np.full(shape, 10**number), np.float32, TensorType.FLOAT32)
        make.op("ADD", [a, k], [b])
        make.io([a], [b])
    return make.model()


@pytest.mark.parametrize(
    ("index", "expected"), [(0, [4, 4]), (1, [13, 13]), (2, [103, 103]), (3, [103, 103]), (-1, [103, 103])]
)
def test_runs_the_branch_of_that_number_or_the_last(index: int, expected: list[int]) -> None:
    interpreter = Interpreter(model_content=branching())
    interpreter.allocate_tensors()
    np.testing.assert_array_equal(interpreter.get_output_details()[0]["shape"], [2])
    interpreter.set_tensor(0, np.array([index], np.int32))
    interpreter.set_tensor(1, np.array([3], np.float32))
    interpreter.invoke()
    np.testing.assert_array_equal(interpreter.get_tensor(2), expected)


def test_takes_the_shape_of_the_branch_that_ran() -> None:
    interpreter = Interpreter(model_content=branching(((2,), (3,)), (1, 2)))
    interpreter.allocate_tensors()
    for index, expected in ((1, [13, 13, 13]), (0, [4, 4])):
        interpreter.set_tensor(0, np.array([index], np.int32))
        interpreter.set_tensor(1, np.array([3], np.float32))
        interpreter.invoke()
        np.testing.assert_array_equal(interpreter.get_tensor(2), expected)


def test_a_subgraph_may_be_several_branches() -> None:
    interpreter = Interpreter(model_content=branching(branches=(3, 1, 3, 1)))
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, np.array([2], np.int32))
    interpreter.set_tensor(1, np.array([3], np.float32))
    interpreter.invoke()
    np.testing.assert_array_equal(interpreter.get_tensor(2), [103, 103])


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (branching(index=TensorType.INT64), "branch must be int32, got int64"),
        (branching(size=2), r"branch must have one element, got shape \[2\]"),
        (branching(branches=()), "needs at least one branch"),
        (branching(branches=(1, 0)), "branch 1 .subgraph 0. must have 1 inputs, it has 2"),
        (branching(branches=(1, 9)), "subgraph 9 does not exist: the model has 4"),
    ],
)
def test_refuses(model: bytes, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        Interpreter(model_content=model).allocate_tensors()
