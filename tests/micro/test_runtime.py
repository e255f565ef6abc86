"""The API of ``tflite_micro.runtime``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gossamer.errors import ArenaError
from gossamer.micro import MicroKernel
from gossamer.micro.runtime import Interpreter, InterpreterConfig
from gossamer.ops.op_def import OpDef, versions
from tests.micro.test_interpreter import counter, custom_model
from tests.runtime.graphs import adder


def test_five_lines(tmp_path: Path) -> None:
    path = tmp_path / "adder.tflite"
    path.write_bytes(adder())
    interpreter = Interpreter.from_file(path)
    interpreter.set_input(np.ones((2, 3), np.float32), 0)
    assert interpreter.invoke() == 0
    assert np.array_equal(interpreter.get_output(0), np.full((2, 3), 3, np.float32))


def test_an_output_is_a_copy() -> None:
    interpreter = Interpreter.from_bytes(adder())
    interpreter.invoke()
    before = interpreter.get_output(0)
    interpreter.set_input(np.ones((2, 3), np.float32), 0)
    interpreter.invoke()
    assert np.array_equal(before, np.full((2, 3), 2, np.float32))


def test_details() -> None:
    interpreter = Interpreter.from_bytes(adder())
    details = interpreter.get_input_details(0)
    assert details["dtype"] is np.float32
    assert details["shape"].tolist() == [2, 3]
    parameters = details["quantization_parameters"]
    assert (parameters["scales"].size, parameters["zero_points"].size, parameters["quantized_dimension"]) == (0, 0, 0)
    assert interpreter.get_output_details(0)["shape"].dtype == np.int32


def test_print_allocations(capsys: pytest.CaptureFixture[str]) -> None:
    Interpreter.from_bytes(adder()).print_allocations()
    assert capsys.readouterr().err.splitlines()[:2] == [
        "[RecordingMicroAllocator] Arena allocation total 1088 bytes",
        "[RecordingMicroAllocator] Arena allocation head 64 bytes",
    ]


def test_keeping_all_tensors() -> None:
    interpreter = Interpreter.from_bytes(
        adder(), arena_size=16384, intrepreter_config=InterpreterConfig.kPreserveAllTensors
    )
    interpreter.invoke()
    kept = interpreter.GetTensor(2, 0)
    assert kept["tensor_data"].tolist() == np.ones((2, 3)).tolist()
    with pytest.raises(ValueError, match="Cannot print allocations as they were not recorded"):
        interpreter.print_allocations()
    with pytest.raises(RuntimeError, match="requires all tensors to be preserved"):
        Interpreter.from_bytes(adder()).GetTensor(2, 0)


def test_resource_variables_are_counted() -> None:
    interpreter = Interpreter.from_bytes(counter(), arena_size=8192)
    interpreter.set_input(np.array([1], np.float32), 0)
    interpreter.invoke()
    assert interpreter.get_output(0).tolist() == [11]
    assert interpreter.reset() == 0


def test_a_custom_operator() -> None:
    op = OpDef("Mine", inputs=("x",), outputs=("y",), versions=versions("1.0.0"), custom=True)
    kernel = MicroKernel("Mine", op=op, custom=True, reference=lambda ctx: ctx.value(0) * 2)
    interpreter = Interpreter.from_bytes(custom_model(), [kernel], 4096)
    interpreter.set_input(np.ones(4, np.float32), 0)
    interpreter.invoke()
    assert interpreter.get_output(0).tolist() == [2, 2, 2, 2]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.ones((2, 3), np.float64), "Got value of type float64 but expected type float32 for input 0"),
        (np.ones((3, 2), np.float32), r"Dimension mismatch\. Got \[3, 2\] but expected \[2, 3\] for input 0"),
        (None, "Input data must not be None"),
    ],
)
def test_wrong_inputs(value: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Interpreter.from_bytes(adder()).set_input(value, 0)


def test_wrong_calls() -> None:
    interpreter = Interpreter.from_bytes(adder())
    with pytest.raises(IndexError, match="Tensor is out of bound"):
        interpreter.get_output(1)
    with pytest.raises(ValueError, match="Index must be a non-negative integer"):
        interpreter.get_output(-1)
    with pytest.raises(ValueError, match="Invalid model file path"):
        Interpreter.from_file("nowhere.tflite")
    with pytest.raises(ValueError, match="Model must not be None"):
        Interpreter.from_bytes(None)  # type: ignore[arg-type]


def test_the_arguments_of_tflite_micro() -> None:
    Interpreter.from_bytes(adder(), custom_op_registerers=[], alt_decompression_memory_size=0)


@pytest.mark.parametrize("registerers", [[("wrong", "format")], "WrongFormat", [1]])
def test_registerers_of_a_wrong_kind(registerers: Any) -> None:
    with pytest.raises(ValueError, match="Custom ops registerers must be a list of strings"):
        Interpreter.from_bytes(adder(), registerers)


@pytest.mark.parametrize("kind", [RuntimeError, ValueError])
def test_registerers_of_a_library(kind: type[Exception]) -> None:
    with pytest.raises(kind, match="TFLM could not register custom op via SomeRandomOp"):
        Interpreter.from_bytes(adder(), ["SomeRandomOp"])


def test_an_arena_that_is_too_small_is_a_runtime_error() -> None:
    with pytest.raises(RuntimeError, match="The arena has 1000 bytes") as raised:
        Interpreter.from_bytes(adder(), arena_size=1000)
    assert isinstance(raised.value, ArenaError)
