"""What the objects that users hold say of themselves: short, and never an error."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from gossamer import Delegate, Interpreter
from gossamer.compiled_model import CompiledModel
from gossamer.delegates.jit import default_delegate
from gossamer.delegates.null import NullDelegate
from gossamer.schema import AddOptions
from tests.runtime.graphs import ModelMaker


@pytest.fixture
def path(tmp_path: Path) -> str:
    make = ModelMaker()
    x, y = make.tensor((1, 4), name="x", shape_signature=(-1, 4)), make.tensor((1, 4), name="y")
    make.op("ADD", [x, x], [y], AddOptions())
    make.io([x], [y])
    make.signature("double", {"a": x}, {"b": y})
    (tmp_path / "m.tflite").write_bytes(make.model())
    return str(tmp_path / "m.tflite")


def test_an_interpreter_says_what_goes_in_and_out(path: str) -> None:
    for _ in range(2):  # read, then known
        interpreter = Interpreter(path)
        assert repr(interpreter) == "<Interpreter of m.tflite: x float32[?, 4] -> y float32[1, 4], not allocated>"
        interpreter.allocate_tensors()
        assert repr(interpreter) == "<Interpreter of m.tflite: x float32[1, 4] -> y float32[1, 4], allocated>"
    assert repr(Interpreter(model_content=Path(path).read_bytes())).startswith("<Interpreter: x float32")
    assert repr(object.__new__(Interpreter)) == "<Interpreter: not made>"


def test_models_and_runners(path: str) -> None:
    interpreter = Interpreter(path)
    assert re.fullmatch(r"<Model of m.tflite: 1 subgraph, 1 operator, 2 tensors, \d+ bytes>", repr(interpreter.model))
    assert repr(interpreter.get_signature_runner()) == '<SignatureRunner "double"(a) -> (b)>'
    assert repr(interpreter.tap(print)) == "<Tap on 2 tensors of subgraph 0>"
    model = CompiledModel.from_file(path)
    assert repr(model) == "<CompiledModel of m.tflite: x float32[?, 4] -> y float32[1, 4]>"
    assert [repr(buffer) for buffer in model.create_input_buffers(0)] == ["<TensorBuffer float32[1, 4]>"]


def test_delegates(path: str) -> None:
    class Own(Delegate):
        def is_node_supported(self, node: object) -> bool:
            return False

        def create_kernel(self, partition: object) -> None:  # type: ignore[override]
            raise AssertionError

    assert repr(NullDelegate()) == '<NullDelegate "null">'
    assert repr(Own()) == '<Own "unknown">'
    delegate = default_delegate()
    if delegate is not None:
        assert re.fullmatch(r'<DefaultDelegate "jit" for \w+, 1 thread>', repr(delegate))
        interpreter = Interpreter(path)
        interpreter.allocate_tensors()
        (kernel,) = interpreter.delegate_kernels()
        assert re.fullmatch(r"<JitKernel of 1 node: \d+ commands for \w+>", repr(kernel))


def test_details_are_plain_dictionaries(path: str) -> None:
    (details,) = Interpreter(path).get_input_details()
    assert type(details) is dict
    assert details["dtype"] is np.float32
