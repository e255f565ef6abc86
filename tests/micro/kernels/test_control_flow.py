"""WHILE on a device: condition and body run in the arena of their caller."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer.errors import ModelError
from gossamer.micro import MicroInterpreter
from gossamer.schema import TensorType, WhileOptions
from tests.runtime.graphs import ModelMaker


def loop(body: int = 2) -> bytes:
    """x + x + ... while x < 100."""
    make = ModelMaker()
    x, y = make.tensor((1,), name="x"), make.tensor((1,), name="y")
    make.op("WHILE", [x], [y], WhileOptions(cond_subgraph_index=1, body_subgraph_index=body))
    make.io([x], [y])
    make.subgraph("condition")
    x, c = make.tensor((1,)), make.tensor((1,), TensorType.BOOL)
    make.op("LESS", [x, make.constant([100.0], np.float32, TensorType.FLOAT32)], [c])
    make.io([x], [c])
    make.subgraph("body")
    x, y = make.tensor((1,)), make.tensor((1,))
    make.op("ADD", [x, x], [y])
    make.io([x], [y])
    return make.model()


@pytest.mark.parametrize(("start", "result"), [(1.0, 128.0), (7.0, 112.0), (250.0, 250.0)])
def test_runs_until_the_condition_fails(start: float, result: float) -> None:
    interpreter = MicroInterpreter(loop(), arena=8192)
    interpreter.allocate_tensors()
    interpreter.input(0).store(np.array([start], np.float32))
    assert interpreter.invoke()
    assert interpreter.output(0).array()[0] == result


def test_a_subgraph_that_is_not_there() -> None:
    with pytest.raises(ModelError, match="subgraph 9 does not exist"):
        MicroInterpreter(loop(body=9), arena=8192).allocate_tensors()
