"""What clients of the peers' interpreters touch beside the documented calls, and the errors that they catch."""

from __future__ import annotations

import copy
import pickle
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gossamer.interpreter
from gossamer import Interpreter, OpResolverType
from gossamer.errors import InvokeError
from gossamer.schema import FullyConnectedOptions, StableHLOCompositeOptions, TensorType
from tests.runtime.api_models import dynamic, dynamic_output, quantized, scalar, strings
from tests.runtime.graphs import ModelMaker, adder


@pytest.fixture
def interpreter() -> Interpreter:
    made = Interpreter(model_content=adder())
    made.allocate_tensors()
    return made


@pytest.mark.parametrize("library", ["libedgetpu.so.1", "/no/such/library.so", "no_such_delegate"])
@pytest.mark.parametrize("kind", [OSError, ValueError])
def test_a_missing_delegate_is_what_either_client_catches(library: str, kind: type[Exception]) -> None:
    with pytest.raises(kind, match=library):
        gossamer.interpreter.load_delegate(library)


@pytest.mark.parametrize("function", [pickle.dumps, copy.copy, copy.deepcopy])
def test_an_interpreter_is_not_pickled(interpreter: Interpreter, function: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError, match=r"cannot pickle 'Interpreter' object.*clone\(\)"):
        function(interpreter)


@pytest.mark.parametrize("size", [1 << 31, -(1 << 31) - 1, 1 << 63, 1 << 70])
@pytest.mark.parametrize("kind", [OverflowError, ValueError])
def test_a_size_beyond_32_bits(interpreter: Interpreter, size: int, kind: type[Exception]) -> None:
    with pytest.raises(kind, match="32-bit"):
        interpreter.resize_tensor_input(0, [size, 3])


def test_a_second_thread_is_told_to_clone(interpreter: Interpreter) -> None:
    running, told = threading.Event(), threading.Event()

    def wait() -> bool:
        running.set()
        assert told.wait(60)
        return False

    interpreter.set_tensor(0, np.zeros((2, 3), np.float32))
    interpreter.set_cancellation_function(wait)
    thread = threading.Thread(target=interpreter.invoke)
    thread.start()
    try:
        assert running.wait(60)
        with pytest.raises(InvokeError, match=r"another thread is in invoke.*use clone\(\)"):
            interpreter.invoke()
    finally:
        told.set()
        thread.join()


def test_an_invocation_within_an_invocation_is_no_other_thread(interpreter: Interpreter) -> None:
    interpreter.set_tensor(0, np.zeros((2, 3), np.float32))
    interpreter.set_cancellation_function(lambda: interpreter.invoke() is None)
    with pytest.raises(InvokeError, match=r"is already running: TFLite has no recursion"):
        interpreter.invoke()


@pytest.mark.parametrize("value", [b"abcd", b"abcd" + bytes(16), bytes(3), b"\0a\0"])
def test_a_string_without_dimensions_keeps_its_last_bytes(value: bytes) -> None:
    make = ModelMaker()
    x = make.tensor((), TensorType.STRING, "x", has_rank=True)
    make.io([x], [x])
    interpreter = Interpreter(model_content=make.model())
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, np.array(value))
    assert interpreter.get_tensor(0).item() == value


def test_strings_in_an_array_are_numpys() -> None:
    """NumPy's arrays of bytes fill up with NULs, and cannot tell them from others."""
    interpreter = Interpreter(model_content=strings())
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, np.array([b"a\0", b"bc", b""]))
    assert interpreter.get_tensor(0).tolist() == [b"a", b"bc", b""]


def _composite() -> bytes:
    make = ModelMaker()
    x, y = make.tensor((2,), name="x"), make.tensor((2,), name="y")
    options = StableHLOCompositeOptions(
        name="c", decomposition_subgraph_index=1, composite_attributes=np.zeros(1, np.uint8)
    )
    make.op("STABLEHLO_COMPOSITE", [x], [y], options)
    make.io([x], [y])
    make.subgraph("decomposition")
    a, b, c = (make.tensor((2,), name=name) for name in "abc")
    make.op("NEG", [a], [b])
    make.op("EXP", [b], [c])
    make.io([a], [c])
    return make.model()


@pytest.mark.parametrize("resolver", list(OpResolverType))
@pytest.mark.filterwarnings("ignore:experimental_preserve_all_tensors")
def test_tensors_of_called_subgraphs_are_kept_with_all_others(resolver: OpResolverType) -> None:
    interpreter = Interpreter(
        model_content=_composite(),
        experimental_preserve_all_tensors=True,
        experimental_op_resolver_type=resolver,
    )
    interpreter.allocate_tensors()
    x = np.array([1, -2], np.float32)
    interpreter.set_tensor(0, x)
    interpreter.invoke()
    for index, expected in enumerate((x, -x, np.exp(-x))):
        np.testing.assert_allclose(interpreter.get_tensor(index, 1), expected, rtol=1e-6)


def test_private_names_that_tools_use(interpreter: Interpreter) -> None:
    assert interpreter._safe_to_run()
    view = interpreter.tensor(0)()
    assert not interpreter._safe_to_run()
    del view
    assert interpreter._safe_to_run()
    assert interpreter._signature_defs == interpreter.get_signature_list()
    assert interpreter._delegates == []
    with pytest.raises(RuntimeError, match=r"C\+\+.*Python"):
        interpreter._native_handle()
    assert gossamer.interpreter.Delegate is gossamer.Delegate


def test_the_wrapper_has_the_calls_of_the_original(interpreter: Interpreter) -> None:
    wrapper = interpreter._interpreter
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    wrapper.ResizeInputTensor(0, np.array([2, 3], np.int32), False)
    wrapper.AllocateTensors()
    wrapper.SetTensor(0, x)
    wrapper.Invoke()
    (output,) = wrapper.OutputIndices()
    np.testing.assert_array_equal(wrapper.GetTensor(output), x + 2)
    assert wrapper.InputIndices().tolist() == [0]
    assert wrapper.NumSubgraphs() == 1
    assert wrapper.NumTensors(0) == len(interpreter.get_tensor_details())
    for index, details in enumerate(interpreter.get_tensor_details()):
        assert wrapper.TensorName(index, 0) == details["name"]
        assert wrapper.TensorType(index, 0) is details["dtype"]
        assert wrapper.TensorSize(index, 0).tolist() == details["shape"].tolist()
        assert wrapper.TensorSizeSignature(index, 0).tolist() == details["shape_signature"].tolist()
        assert wrapper.TensorQuantization(index, 0) == details["quantization"]
        assert wrapper.TensorSparsityParameters(index, 0) == details["sparsity_parameters"]
        assert len(wrapper.TensorQuantizationParameters(index, 0)) == 4
    assert wrapper.NumNodes() == len(interpreter._get_ops_details())
    assert wrapper.NodeName(0) == interpreter._get_op_details(0)["op_name"]
    assert wrapper.NodeInputs(0).tolist() == interpreter._get_op_details(0)["inputs"].tolist()
    assert wrapper.NodeOutputs(0).tolist() == interpreter._get_op_details(0)["outputs"].tolist()
    assert wrapper.GetSignatureDefs() == interpreter._get_full_signature_list()
    wrapper.ResetVariableTensors()
    del wrapper
    np.testing.assert_array_equal(interpreter._interpreter.tensor(interpreter._interpreter, 0), x)


@pytest.mark.peer
def test_the_wrapper_has_every_call_of_litert(interpreter: Interpreter) -> None:
    peer = pytest.importorskip("ai_edge_litert.interpreter").Interpreter(model_content=adder())
    calls = {name for name in dir(peer._interpreter) if not name.startswith("_")}
    assert calls <= set(dir(interpreter._interpreter))


@pytest.mark.peer
def test_scales_are_those_of_the_file() -> None:
    """XNNPACK gives the weights of LiteRT's FULLY_CONNECTED a scale for each unit, in the details too, and leaves one
    zero point. Here details are the file's, whoever runs the model."""
    make = ModelMaker()
    x = make.tensor((1, 4), TensorType.INT8, "x", quantization=quantized([0.5]))
    w = make.constant(np.ones((2, 4)), np.int8, TensorType.INT8, name="w", quantization=quantized([0.25]))
    y = make.tensor((1, 2), TensorType.INT8, "y", quantization=quantized([0.3]))
    make.op("FULLY_CONNECTED", [x, w, -1], [y], FullyConnectedOptions(), version=4)
    make.io([x], [y])
    scales = []
    for module in (gossamer.interpreter, pytest.importorskip("ai_edge_litert.interpreter")):
        interpreter = module.Interpreter(model_content=make.model())
        interpreter.allocate_tensors()
        parameters = interpreter.get_tensor_details()[w]["quantization_parameters"]
        assert parameters["zero_points"].tolist() == [0]
        scales.append(parameters["scales"].tolist())
    assert scales == [[0.25], [0.25, 0.25]]


@pytest.mark.parametrize("resolver", [OpResolverType.AUTO, OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES])
@pytest.mark.parametrize("model", [dynamic, dynamic_output])
def test_a_tensor_has_no_value_before_its_shape_is_known(model: Callable[[], bytes], resolver: OpResolverType) -> None:
    interpreter = Interpreter(model_content=model(), experimental_op_resolver_type=resolver)
    (output,) = interpreter.get_output_details()
    interpreter.allocate_tensors()
    with pytest.raises(ValueError, match="Tensor data is null"):
        interpreter.get_tensor(2)
    interpreter.set_tensor(0, np.arange(6, dtype=np.float32))
    interpreter.set_tensor(1, np.array([2, 3], np.int32))
    interpreter.invoke()
    assert interpreter.get_tensor(output["index"]).shape == (2, 3)


def test_a_scalar_stays_one_whatever_shape_it_had() -> None:
    interpreter = Interpreter(model_content=scalar())
    for shape in ((), (1,), ()):
        interpreter.resize_tensor_input(0, shape)
        interpreter.allocate_tensors()
        interpreter.set_tensor(0, np.ones(shape, np.float32))
        for _ in range(2):
            assert type(interpreter.get_tensor(0)) is (np.ndarray if shape else np.float32)
