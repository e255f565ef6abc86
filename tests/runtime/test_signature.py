"""Signature runners: inputs and outputs by name."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer import Interpreter, SignatureRunner
from gossamer.schema import TensorType
from tests.runtime.graphs import ModelMaker, adder


def test_runs_resizes_and_copies() -> None:
    interpreter = Interpreter(model_content=adder())
    assert interpreter.get_signature_list() == {"add": {"inputs": ["x"], "outputs": ["sum"]}}
    runner = interpreter.get_signature_runner()
    small = runner(x=np.zeros((1, 3), np.float32))["sum"]
    large = runner(x=np.ones((4, 3), np.float32))["sum"]
    np.testing.assert_array_equal(small, np.full((1, 3), 2))
    np.testing.assert_array_equal(large, np.full((4, 3), 3))


def test_details() -> None:
    runner = Interpreter(model_content=adder()).get_signature_runner("add")
    assert list(runner.get_input_details()) == ["x"]
    assert runner.get_input_details()["x"]["name"] == "x"
    assert list(runner.get_output_details()) == ["sum"]


def test_errors() -> None:
    interpreter = Interpreter(model_content=adder())
    runner = interpreter.get_signature_runner("add")
    with pytest.raises(ValueError, match="expected 1 vs provided 0"):
        runner()
    with pytest.raises(ValueError, match=r"Invalid Input name \(z\) for SignatureDef"):
        runner(z=np.zeros((1, 3), np.float32))
    with pytest.raises(ValueError, match="Got value of type FLOAT64 but expected type FLOAT32"):
        runner(x=np.zeros((1, 3)))
    with pytest.raises(ValueError, match='Invalid signature_key provided: "nope"'):
        interpreter.get_signature_runner("nope")
    with pytest.raises(ValueError, match="None interpreter provided"):
        SignatureRunner()
    with pytest.raises(ValueError, match="None signature_key provided"):
        SignatureRunner(interpreter)


def test_an_input_that_is_called_self() -> None:
    make = ModelMaker()
    x, y = make.tensor((2,), name="self"), make.tensor((2,))
    make.op("ADD", [x, make.constant([1.0], np.float32, TensorType.FLOAT32)], [y])
    make.io([x], [y])
    make.signature("add", {"self": x}, {"sum": y})
    runner = Interpreter(model_content=make.model()).get_signature_runner("add")
    np.testing.assert_array_equal(runner(self=np.zeros(2, np.float32))["sum"], np.ones(2))


def test_a_result_that_is_no_output_of_the_graph() -> None:
    make = ModelMaker()
    x, middle, y = make.tensor((2, 3), name="x"), make.tensor((2, 3)), make.tensor((2, 3))
    one = make.constant([1.0], np.float32, TensorType.FLOAT32)
    make.op("ADD", [x, one], [middle])
    make.op("ADD", [middle, one], [y])
    make.io([x], [y])
    make.signature("add", {"x": x}, {"middle": middle})
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    results = Interpreter(model_content=make.model()).get_signature_runner("add")(x=values)
    np.testing.assert_array_equal(results["middle"], values + 1)
