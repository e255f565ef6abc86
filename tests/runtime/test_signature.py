"""Signature runners: inputs and outputs by name."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer import Interpreter, SignatureRunner
from tests.runtime.graphs import adder


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
