"""The whole library in a few seconds: a model is made, written, read, verified, run, resized, planned and refused."""

from __future__ import annotations

import numpy as np
import pytest

import gossamer
from gossamer.model import read_model, verify_model
from gossamer.model.writer import write_model
from tests.runtime.graphs import adder


def test_write_read_verify() -> None:
    content = adder()
    model = read_model(content)
    assert verify_model(model) == ()
    assert [model.operator_name(op) for op in model.subgraphs[0].operators] == ["ADD", "ADD"]
    assert write_model(model) == content


def test_run_resize_and_plan() -> None:
    interpreter = gossamer.Interpreter(model_content=adder())
    runner = interpreter.get_signature_runner("add")
    for rows in (2, 5):
        x = np.arange(3 * rows, dtype=np.float32).reshape(rows, 3)
        np.testing.assert_array_equal(runner(x=x)["sum"], x + 2)
    plan = interpreter.memory_plan()
    plan.check()
    assert plan.lower_bound() <= plan.size


def test_refuse() -> None:
    with pytest.raises(gossamer.ModelError, match="not a valid Flatbuffer"):
        gossamer.Interpreter(model_content=adder()[:-40])


def test_every_operator_can_be_found() -> None:
    from gossamer.ops import all_ops, find_op

    operators = list(all_ops())
    assert len(operators) > 100
    assert all(find_op(op.name, custom=op.custom) is op for op in operators)
