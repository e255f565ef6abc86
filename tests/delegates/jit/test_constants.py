"""Operators whose results are known when the model is prepared: no kernel computes them, and they part no program."""

from __future__ import annotations

import numpy as np
import pytest

import gossamer
from gossamer.schema import AddOptions, ShapeOptions, TensorType
from tests.delegates.jit.running import TARGETS, machine_code, outputs
from tests.runtime.graphs import ModelMaker

pytestmark = pytest.mark.skipif(not TARGETS, reason="no machine code for this CPU")

INT32 = TensorType.INT32


def test_a_program_is_not_parted_by_them() -> None:
    """sum = x + x, y = the sum broadcast to its own shape; that shape and its rank come out too."""
    make = ModelMaker()
    x, total, shape, rank, y = (
        *(make.tensor((2, 3)), make.tensor((2, 3))),
        *(make.tensor((2,), INT32), make.tensor((), INT32), make.tensor((2, 3))),
    )
    make.op("ADD", [x, x], [total], AddOptions())
    make.op("SHAPE", [total], [shape], ShapeOptions(out_type=INT32))
    make.op("RANK", [shape], [rank])
    make.op("BROADCAST_TO", [total, shape], [y], version=2)
    make.io([x], [y, shape, rank])
    interpreter, kernel = machine_code(make.model())
    assert kernel.program is not None
    assert len(kernel.program.plan.commands) == 1
    for size in (3, 5):
        interpreter.resize_tensor_input(x, [2, size])
        interpreter.allocate_tensors()
        value = np.arange(2 * size, dtype=np.float32).reshape(2, size)
        broadcast, found, dimensions = outputs(interpreter, {x: value})
        np.testing.assert_array_equal(broadcast, 2 * value)
        assert found.tolist() == [2, size]
        assert dimensions == 1


def test_a_program_may_have_nothing_to_do() -> None:
    make = ModelMaker()
    x, shape = make.tensor((2, 3)), make.tensor((2,), INT32)
    make.op("SHAPE", [x], [shape], ShapeOptions(out_type=INT32))
    make.io([x], [shape])
    interpreter = gossamer.Interpreter(model_content=make.model())
    interpreter.allocate_tensors()
    assert not interpreter.delegate_claims()[0].refusals
    (found,) = outputs(interpreter, {x: np.zeros((2, 3), np.float32)})
    assert found.tolist() == [2, 3]
