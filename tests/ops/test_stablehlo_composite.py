"""STABLEHLO_COMPOSITE: runs its decomposition."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer import Interpreter
from gossamer.schema import StableHLOCompositeOptions
from tests.runtime.graphs import ModelMaker


def composite(inputs: int = 1) -> bytes:
    make = ModelMaker()
    x, y = make.tensor((2,)), make.tensor((2,))
    options = StableHLOCompositeOptions(
        name="test.twice", decomposition_subgraph_index=1, composite_attributes=np.zeros(1, np.uint8)
    )
    make.op("STABLEHLO_COMPOSITE", [x] * inputs, [y], options)
    make.io([x], [y])
    make.subgraph("twice")
    a, b = make.tensor((2,)), make.tensor((2,))
    make.op("ADD", [a, a], [b])
    make.io([a], [b])
    return make.model()


def test_runs_its_decomposition() -> None:
    interpreter = Interpreter(model_content=composite())
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, np.array([1, 2], np.float32))
    interpreter.invoke()
    np.testing.assert_array_equal(interpreter.get_tensor(1), [2, 4])


def test_refuses_a_decomposition_with_other_inputs() -> None:
    with pytest.raises(RuntimeError, match="must have 2 inputs, it has 1"):
        Interpreter(model_content=composite(inputs=2)).allocate_tensors()
