"""CALL_ONCE: once for an interpreter, and only what it may call."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer import Interpreter
from gossamer.schema import CallOnceOptions
from tests.ops.variables import accumulator
from tests.runtime.graphs import ModelMaker


def test_runs_once_even_when_tensors_are_allocated_again() -> None:
    interpreter = Interpreter(model_content=accumulator())
    for expected in (11, 12):
        interpreter.resize_tensor_input(0, [1])
        interpreter.allocate_tensors()
        interpreter.set_tensor(0, np.array([1], np.float32))
        interpreter.invoke()
        np.testing.assert_array_equal(interpreter.get_tensor(4), [expected])


@pytest.mark.parametrize(
    ("target", "message"),
    [(0, "must have no inputs and outputs, it has 1 and 1"), (7, "subgraph 7 does not exist: the model has 1")],
)
def test_refuses(target: int, message: str) -> None:
    make = ModelMaker()
    x, y = make.tensor((1,)), make.tensor((1,))
    make.op("CALL_ONCE", [], [], CallOnceOptions(init_subgraph_index=target))
    make.op("ADD", [x, x], [y])
    make.io([x], [y])
    with pytest.raises((RuntimeError, ValueError), match=message):
        Interpreter(model_content=make.model()).allocate_tensors()
