"""`gossamer.compiled_model` beside `ai_edge_litert.compiled_model`: values, shapes, and errors by type and words."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from gossamer.compiled_model import CompiledModel, CpuKernelMode, CpuOptions, HardwareAccelerator, Options
from gossamer.errors import CompiledModelError
from gossamer.tensor_buffer import TensorBuffer
from tests.runtime.api_models import MODELS, adder
from tests.runtime.graphs import ModelMaker

X = np.arange(6, dtype=np.float32).reshape(2, 3)
MODULES = ("compiled_model", "tensor_buffer", "environment", "options", "hardware_accelerator")


@pytest.fixture(params=["gossamer", pytest.param("ai_edge_litert", marks=pytest.mark.peer)])
def api(request: pytest.FixtureRequest) -> ModuleType:
    """The module, ours and LiteRT's: every test with it holds for both."""
    pytest.importorskip(request.param)
    return importlib.import_module(f"{request.param}.compiled_model")


def test_a_model_runs_by_index_and_by_name(api: ModuleType) -> None:
    with api.CompiledModel.from_buffer(adder()) as model:
        inputs, outputs = model.create_input_buffers(0), model.create_output_buffers(0)
        inputs[0].write(X)
        model.run_by_index(0, inputs, outputs)
        np.testing.assert_array_equal(outputs[0].read(6, np.float32).reshape(2, 3), X + 2)
        x = model.create_input_buffer_by_name("add", "x")
        y = model.create_output_buffer_by_name("add", "sum")
        x.write(-X.T.copy().T)
        model.run_by_name("add", {"x": x}, {"sum": y})
        np.testing.assert_array_equal(y.read(6, np.float32), (2 - X).reshape(-1))


def test_what_is_told_of_signatures_and_tensors(api: ModuleType) -> None:
    model = api.CompiledModel.from_buffer(adder())
    assert model.get_signature_list() == {"add": {"inputs": ["x"], "outputs": ["sum"]}}
    assert model.get_signature_by_index(0) == {"key": "add", "inputs": ["x"], "outputs": ["sum"]}
    assert model.get_num_signatures() == 1
    assert (model.get_signature_index("add"), model.get_signature_index("other")) == (0, -1)
    x = {"name": "x", "index": 0, "dtype": "float32", "shape": [2, 3]}
    assert model.get_input_tensor_details("add") == {"x": x}
    assert model.get_output_tensor_details("add")["sum"]["shape"] == [2, 3]
    assert model.get_input_buffer_requirements(0) == {"buffer_size": 24, "supported_types": [1]}
    assert model.get_output_buffer_requirements(0, 0) == {"buffer_size": 24, "supported_types": [1]}
    assert model.is_fully_accelerated() is True
    assert model.create_input_buffers(0)[0].get_tensor_details() == {"dtype": "float32", "shape": [2, 3]}


@pytest.mark.parametrize("name", ["scalar", "dynamic", "quantize_dequantize", "type_int64", "no_operators"])
@pytest.mark.peer
def test_details_are_litert_s(name: str) -> None:
    peer = pytest.importorskip("ai_edge_litert.compiled_model")
    told = []
    for module in (peer, importlib.import_module("gossamer.compiled_model")):
        model = module.CompiledModel.from_buffer(MODELS[name]())
        signatures = model.get_signature_list()
        told.append([signatures, [model.get_input_tensor_details(key) for key in signatures]])
        told[-1] += [[model.get_output_tensor_details(key) for key in signatures] for _ in range(name != "dynamic")]
    assert told[0] == told[1]


def test_shapes_that_change(api: ModuleType) -> None:
    model = api.CompiledModel.from_buffer(adder())
    for strict in (True, False):
        model.resize_input_tensor(0, (4, 3), strict=strict)
    model.resize_input_tensor_by_name("add", "x", [4, 3])
    assert model.get_input_tensor_details("add")["x"]["shape"] == [4, 3]
    assert model.get_output_tensor_details("add")["sum"]["shape"] == [4, 3]
    assert model.get_input_buffer_requirements(0)["buffer_size"] == 48


def test_buffers_are_as_large_as_their_tensors_are_now() -> None:
    """LiteRT's are as large as the file has it."""
    model = CompiledModel.from_buffer(adder())
    model.resize_input_tensor(0, (4, 3))
    inputs, outputs = model.create_input_buffers(0), model.create_output_buffers(0)
    inputs[0].write(np.ones((4, 3), np.float32))
    model.run_by_index(0, inputs, outputs)
    assert outputs[0].read(12, np.float32).tolist() == [3] * 12


def _buffers(api: ModuleType) -> tuple[Any, Any, Any]:
    model = api.CompiledModel.from_buffer(adder())
    return model, model.create_input_buffers(0), model.create_output_buffers(0)


def _host_memory(api: ModuleType, array: Any) -> Any:
    return api.TensorBuffer.create_from_host_memory(array)


WRONG: dict[str, tuple[Callable[[ModuleType], Any], type[Exception], str]] = {
    "no file": (lambda api: api.CompiledModel.from_file("/no/such.tflite"), RuntimeError, "Failed to load model from"),
    "no model": (lambda api: api.CompiledModel.from_buffer(b"short"), RuntimeError, "Failed to load model from buffer"),
    "both": (
        lambda api: api.CompiledModel.from_buffer(
            adder(), hardware_accel=api.HardwareAccelerator.CPU, options=api.Options()
        ),
        ValueError,
        "Pass either options or hardware_accel, not both",
    ),
    "NPU": (
        lambda api: api.CompiledModel.from_buffer(adder(), api.HardwareAccelerator.NPU),
        RuntimeError,
        "Some ops are not accelerated. Add kLiteRtHwAcceleratorCpu",
    ),
    "nothing": (
        lambda api: api.CompiledModel.from_buffer(adder(), api.HardwareAccelerator(0)),
        RuntimeError,
        "No acceleration provided",
    ),
    "signature": (lambda api: _buffers(api)[0].get_input_tensor_details("q"), RuntimeError, "Signature not found: q"),
    "input": (
        lambda api: _buffers(api)[0].create_input_buffer_by_name("add", "q"),
        RuntimeError,
        "Input tensor not found: q",
    ),
    "input index": (
        lambda api: _buffers(api)[0].get_input_buffer_requirements(9),
        RuntimeError,
        "Input index out of range",
    ),
    "output index": (
        lambda api: _buffers(api)[0].get_output_buffer_requirements(9),
        RuntimeError,
        "Output index out of range",
    ),
    "signature index": (
        lambda api: (lambda m, x, y: m.run_by_index(3, x, y))(*_buffers(api)),
        RuntimeError,
        "Signature index is out of range of signature keys",
    ),
    "few": (
        lambda api: (lambda m, x, y: m.run_by_index(0, [], y))(*_buffers(api)),
        RuntimeError,
        "Input buffer size mismatch: number of inputs:1 vs buffers:0",
    ),
    "no output": (
        lambda api: (lambda m, x, y: m.run_by_name("add", {"x": x[0]}, {}))(*_buffers(api)),
        RuntimeError,
        "The given map is missing some output TensorBuffers",
    ),
    "name": (
        lambda api: (lambda m, x, y: m.run_by_name("q", {"x": x[0]}, {"sum": y[0]}))(*_buffers(api)),
        RuntimeError,
        "Failed to get signature_index",
    ),
    "a list": (lambda api: _buffers(api)[1][0].write([1.0]), ValueError, "data_array must be a NumPy array"),
    "float64": (lambda api: _buffers(api)[1][0].write(np.ones(6)), ValueError, "Unsupported dtype: float64"),
    "read int64": (lambda api: _buffers(api)[1][0].read(1, np.int64), ValueError, "Unsupported dtype"),
    "more": (
        lambda api: _buffers(api)[1][0].write(np.ones(7, np.float32)),
        RuntimeError,
        "WriteTensorBuffer: source buffer is larger than the tensor buffer",
    ),
    "read more": (
        lambda api: _buffers(api)[2][0].read(7, np.float32),
        RuntimeError,
        "ReadTensorToBuffer: destination buffer is larger than the tensor buffer",
    ),
    "host list": (lambda api: _host_memory(api, [1.0]), ValueError, "data_array must be a NumPy array"),
    "host order": (lambda api: _host_memory(api, X.T), ValueError, "data_array must be C-contiguous"),
    "rank": (
        lambda api: (lambda m, x, y: m.run_by_index(0, [_host_memory(api, X)], y))(*_buffers(api)),
        RuntimeError,
        "Cannot auto-resize tensor x: rank mismatch",
    ),
    "negative": (
        lambda api: _buffers(api)[0].resize_input_tensor(0, [-4, 3], strict=False),
        RuntimeError,
        "Dimensions must be positive",
    ),
    "resize signature": (
        lambda api: _buffers(api)[0].resize_input_tensor_by_name("q", "x", [1]),
        ValueError,
        "Unknown signature: q",
    ),
    "resize input": (
        lambda api: _buffers(api)[0].resize_input_tensor_by_name("add", "q", [1]),
        ValueError,
        "Unknown input 'q' for signature 'add'",
    ),
    "environment": (
        lambda api: api.Environment.create(options=api.EnvironmentOptions(), runtime_path="x"),
        ValueError,
        "Pass either options or environment path shortcuts",
    ),
}


@pytest.mark.parametrize("call", WRONG)
def test_errors(call: str, api: ModuleType) -> None:
    function, kind, words = WRONG[call]
    with pytest.raises(kind) as error:
        function(api)
    assert words in str(error.value)


def test_ends(api: ModuleType) -> None:
    model, (x,), (y,) = _buffers(api)
    x.destroy()
    x.destroy()
    with pytest.raises(ValueError, match="TensorBuffer has been destroyed"):
        _ = x.capsule
    with pytest.raises(ValueError, match="TensorBuffer has been destroyed"):
        model.run_by_index(0, [x], [y])
    with api.Environment.create() as environment:
        assert api.CompiledModel.from_buffer(adder(), environment=environment).environment is environment
    with pytest.raises(ValueError, match="Environment is no longer valid"):
        api.CompiledModel.from_buffer(adder(), environment=environment)
    model.close()
    with pytest.raises((RuntimeError, AttributeError)):
        model.get_signature_by_index(0)


def test_memory_of_an_array_is_used_where_it_lies(api: ModuleType) -> None:
    array = np.zeros(64, np.float32)
    array = array[(-array.ctypes.data // 4) % 16 :][:6]
    buffer = _host_memory(api, array)
    array[:] = 5
    assert buffer.read(6, np.float32).tolist() == [5] * 6
    assert buffer.get_tensor_details() == {"dtype": "float32", "shape": [6]}


@pytest.mark.parametrize("mode", [None, *CpuKernelMode])
def test_options_choose_the_kernels(mode: CpuKernelMode | None) -> None:
    options = Options(cpu_options=CpuOptions(num_threads=2, kernel_mode=mode))
    model = CompiledModel.from_buffer(adder(), options=options)
    interpreter = model._open()
    interpreter.allocate_tensors()
    assert bool(interpreter.delegate_claims()) == (mode in (None, CpuKernelMode.DELEGATE))
    assert Options.create().hardware_accelerators is HardwareAccelerator.CPU


def test_names_that_are_missing_are_said() -> None:
    """LiteRT runs on what an input held before."""
    model = CompiledModel.from_buffer(adder())
    (y,) = model.create_output_buffers(0)
    with pytest.raises(CompiledModelError, match="missing some input TensorBuffers: it takes \\['x'\\]"):
        model.run_by_name("add", {"q": y}, {"sum": y})


def test_signatures_of_other_subgraphs() -> None:
    model = CompiledModel.from_buffer(MODELS["branches"]())
    index = model.get_signature_index("then")
    inputs, outputs = model.create_input_buffers(index), model.create_output_buffers(index)
    inputs[0].write(np.full((2, 2), 3, np.float32))
    model.run_by_index(index, inputs, outputs)
    runner = model._open().get_signature_runner("then")
    expected = runner(z=np.full((2, 2), 3, np.float32))["out"]
    np.testing.assert_array_equal(outputs[0].read(4, np.float32).reshape(2, 2), expected)


def test_strings_have_no_buffers() -> None:
    with pytest.raises(CompiledModelError, match="holds strings"):
        CompiledModel.from_buffer(MODELS["strings"]()).create_input_buffers(0)


def test_a_buffer_of_another_type_is_refused() -> None:
    make = ModelMaker()
    x, y = make.tensor((3,), name="x"), make.tensor((3,), name="y")
    make.op("NEG", [x], [y])
    make.io([x], [y])
    model = CompiledModel.from_buffer(make.model())
    outputs = model.create_output_buffers(0)
    with pytest.raises(CompiledModelError, match="tensor x is float32, the buffer int32"):
        model.run_by_index(0, [TensorBuffer.create_from_host_memory(np.ones(3, np.int32))], outputs)
    larger = [TensorBuffer.create_from_host_memory(np.ones(5, np.float32))]
    with pytest.raises(CompiledModelError, match="output y has 20 bytes, its buffer 12"):
        model.run_by_index(0, larger, outputs)
    model.run_by_index(0, larger, [result := TensorBuffer.create_from_host_memory(np.zeros(5, np.float32))])
    assert result.read(5, np.float32).tolist() == [-1] * 5


@pytest.mark.peer
@pytest.mark.parametrize("module", MODULES)
def test_names_are_litert_s(module: str) -> None:
    peer = pytest.importorskip(f"ai_edge_litert.{module}")
    ours = importlib.import_module(f"gossamer.{module}")
    classes = [name for name in ("CompiledModel", "TensorBuffer", "Environment", "Options") if hasattr(peer, name)]
    for name in classes:
        public = {member for member in dir(getattr(peer, name)) if not member.startswith("_")}
        assert public <= set(dir(getattr(ours, name)()) if name == "Options" else dir(getattr(ours, name)))
