"""The default delegate as users meet it: what it takes, what it falls back to, shapes, threads, processes, bits."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gossamer
from gossamer import Delegate, DelegateFlags, DelegateKernel, Interpreter, OpResolverType
from gossamer.codegen import library as compiling
from gossamer.codegen.graph import KernelGraph
from gossamer.delegates.delegate import NodeInfo, Partition, PartitionInvokeContext, PartitionPrepareContext
from gossamer.delegates.jit import delegate as jit
from gossamer.delegates.jit.delegate import JitDelegate, JitKernel
from gossamer.delegates.null import NullDelegate
from gossamer.errors import CompileError
from gossamer.ops.relu import op as relu
from gossamer.programs import library as libraries
from gossamer.programs.program import Program
from gossamer.runtime import engine
from gossamer.schema import (
    ActivationFunctionType,
    AddOptions,
    Conv2DOptions,
    DepthwiseConv2DOptions,
    FullyConnectedOptions,
    Padding,
    QuantizationParameters,
    ReducerOptions,
    ReshapeOptions,
    SoftmaxOptions,
    TensorType,
)
from gossamer.targets import Target
from tests.conftest import HANGS
from tests.delegates.graphs import chain
from tests.delegates.jit.running import TARGETS
from tests.runtime.graphs import ModelMaker

pytestmark = pytest.mark.skipif(not TARGETS, reason="no machine code for this CPU")

ROOT = Path(__file__).parents[3]
FLOAT, INT8, INT32 = TensorType.FLOAT32, TensorType.INT8, TensorType.INT32
REFERENCE = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
RELU6 = ActivationFunctionType.RELU6
SEED = 3


@pytest.fixture
def cold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A new directory for kernels: nothing is known, and nothing ships."""
    monkeypatch.setenv("GOSSAMER_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(libraries, "SHIPPED", tmp_path / "shipped")
    monkeypatch.setattr(libraries, "_libraries", {})
    monkeypatch.setattr(jit, "_warned", set())
    monkeypatch.setattr(engine, "_told", set())
    return tmp_path / "cache"


def mobile_net(seed: int = SEED) -> bytes:
    """float32 [n, 16, 16, 3] to probabilities [n, 10]: a strided convolution, two inverted residuals, a classifier."""
    make, rng = ModelMaker(), np.random.default_rng(seed)

    def weights(*shape: int) -> int:
        return make.constant(rng.standard_normal(shape) / np.sqrt(np.prod(shape[:-1])), np.float32, FLOAT)

    def image(size: int, channels: int) -> int:
        return make.tensor((1, size, size, channels), shape_signature=(-1, size, size, channels))

    def conv(x: int, size: int, channels: int, depth: int, kernel: int = 1, stride: int = 1, relu: bool = True) -> int:
        y = image(size, channels)
        activation = RELU6 if relu else ActivationFunctionType.NONE
        options = Conv2DOptions(stride_w=stride, stride_h=stride, fused_activation_function=activation)
        make.op("CONV_2D", [x, weights(channels, kernel, kernel, depth), weights(channels)], [y], options)
        return y

    def depthwise(x: int, size: int, channels: int) -> int:
        y = image(size, channels)
        options = DepthwiseConv2DOptions(
            stride_w=1, stride_h=1, depth_multiplier=1, fused_activation_function=RELU6, padding=Padding.SAME
        )
        make.op("DEPTHWISE_CONV_2D", [x, weights(1, 3, 3, channels), weights(channels)], [y], options)
        return y

    x = make.tensor((1, 16, 16, 3), name="x", shape_signature=(-1, 16, 16, 3))
    y = conv(x, 8, 8, 3, kernel=3, stride=2)
    for _ in range(2):
        projected = conv(depthwise(conv(y, 8, 24, 8), 8, 24), 8, 8, 24, relu=False)
        total = image(8, 8)
        make.op("ADD", [y, projected], [total], AddOptions())
        y = total
    mean, logits, scores = (make.tensor((1, n), shape_signature=(-1, n)) for n in (8, 10, 10))
    axes = make.constant([1, 2], np.int32, INT32)
    make.op("MEAN", [y, axes], [mean], ReducerOptions(keep_dims=False))
    make.op("FULLY_CONNECTED", [mean, weights(10, 8), weights(10)], [logits], FullyConnectedOptions())
    make.op("SOFTMAX", [logits], [scores], SoftmaxOptions(beta=1.0))
    make.io([x], [scores])
    return make.model()


def byte_net(seed: int = SEED) -> bytes:
    """The same in int8, between QUANTIZE and DEQUANTIZE, and a hybrid layer behind them: float32 [1, 16, 16, 3] to
    [1, 10]."""
    make, rng = ModelMaker(), np.random.default_rng(seed)

    def levels(scale: float, zero_point: int = 0) -> dict[str, Any]:
        scales, points = np.array([scale], np.float32), np.array([zero_point], np.int64)
        return {"quantization": QuantizationParameters(scale=scales, zero_point=points)}

    def weights(*shape: int) -> int:
        return make.constant(rng.integers(-127, 128, shape), np.int8, INT8, **levels(0.01))

    def bias(channels: int) -> int:
        return make.constant(rng.integers(-500, 500, channels), np.int32, INT32, **levels(0.0005))

    def image(size: int, channels: int) -> int:
        return make.tensor((1, size, size, channels), INT8, **levels(0.05, -3))

    x, levels_of_x, y = make.tensor((1, 16, 16, 3), name="x"), image(16, 3), image(8, 24)
    make.op("QUANTIZE", [x], [levels_of_x], version=1)
    options = Conv2DOptions(stride_w=2, stride_h=2, fused_activation_function=RELU6)
    make.op("CONV_2D", [levels_of_x, weights(24, 3, 3, 3), bias(24)], [y], options, version=3)
    filtered, projected, total = image(8, 24), image(8, 24), image(8, 24)
    deep = DepthwiseConv2DOptions(stride_w=1, stride_h=1, depth_multiplier=1, padding=Padding.SAME)
    make.op("DEPTHWISE_CONV_2D", [y, weights(1, 3, 3, 24), bias(24)], [filtered], deep, version=3)
    options = Conv2DOptions(stride_w=1, stride_h=1)
    make.op("CONV_2D", [filtered, weights(24, 1, 1, 24), bias(24)], [projected], options, version=3)
    make.op("ADD", [y, projected], [total], AddOptions(), version=2)
    mean, logits = (make.tensor((1, n), INT8, **levels(0.05)) for n in (24, 10))
    scores, reals, result = make.tensor((1, 10), INT8, **levels(1 / 256, -128)), *(make.tensor((1, 10)) for _ in "xx")
    axes = make.constant([1, 2], np.int32, INT32)
    make.op("MEAN", [total, axes], [mean], ReducerOptions(keep_dims=False), version=2)
    make.op("FULLY_CONNECTED", [mean, weights(10, 24), bias(10)], [logits], FullyConnectedOptions(), version=4)
    make.op("SOFTMAX", [logits], [scores], SoftmaxOptions(beta=1.0), version=2)
    make.op("DEQUANTIZE", [scores], [reals], version=2)
    make.op("FULLY_CONNECTED", [reals, weights(10, 10)], [result], FullyConnectedOptions(), version=9)
    make.io([x], [result])
    return make.model()


def in_two_parts() -> bytes:
    """y = relu(x) + reversed relu(x): RELU, Flip (a custom operator), ADD over float32 [4]."""
    make = ModelMaker()
    x, a, b, y = (make.tensor((4,), name=name) for name in "xaby")
    make.op("RELU", [x], [a])
    make.op("Flip", [a], [b], custom=True)
    make.op("ADD", [a, b], [y], AddOptions())
    make.io([x], [y])
    return make.model()


@gossamer.custom_op("Flip", shape="x", trace=False)
def flip(x: np.ndarray) -> np.ndarray:
    """What no delegate knows."""
    return x[::-1].copy()


X, Y = np.array([1, -2, 3, 4], np.float32), np.array([5, 3, 3, 5], np.float32)
"""An input of `in_two_parts`, and its output."""


def images(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((count, 16, 16, 3)).astype(np.float32)


def outputs(interpreter: Interpreter, x: np.ndarray) -> np.ndarray:
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


def run(model: bytes, x: np.ndarray, **settings: Any) -> np.ndarray:
    interpreter = Interpreter(model_content=model, **settings)
    interpreter.allocate_tensors()
    return outputs(interpreter, x)


def kernels(interpreter: Interpreter) -> list[JitKernel]:
    found = interpreter.delegate_kernels()
    assert all(isinstance(kernel, JitKernel) for kernel in found)
    return [kernel for kernel in found if isinstance(kernel, JitKernel)]


def close(found: np.ndarray, wanted: np.ndarray) -> None:
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


@pytest.fixture
def warnings(caplog: pytest.LogCaptureFixture) -> Iterator[list[str]]:
    """The messages of Gossamer's warnings, as they come."""
    messages: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.levelno >= logging.WARNING:
                messages.append(record.getMessage())

    logger, handler = logging.getLogger("gossamer"), Keep()
    logger.addHandler(handler)
    yield messages
    logger.removeHandler(handler)


# What it takes


def test_a_whole_model_is_one_program() -> None:
    interpreter = Interpreter(model_content=mobile_net())
    assert interpreter.delegate_claims() == []  # not before it is allocated
    interpreter.allocate_tensors()
    (claims,) = interpreter.delegate_claims()
    assert (claims.delegate, claims.refusals) == ("jit", {})
    assert [len(subset.nodes) for subset in claims.partitions] == [12]
    (kernel,) = kernels(interpreter)
    assert kernel.program is not None
    assert kernel.failure is None
    close(outputs(interpreter, images(1)), run(mobile_net(), images(1), experimental_op_resolver_type=REFERENCE))


def test_claims_and_refusals_are_there_to_see() -> None:
    refusals = {1: "trace=False"}
    preview = Interpreter(model_content=in_two_parts(), custom_ops=[flip]).preview_delegate(JitDelegate())
    interpreter = Interpreter(model_content=in_two_parts(), custom_ops=[flip])
    interpreter.allocate_tensors()
    for claims in (preview, *interpreter.delegate_claims()):
        assert (claims.delegate, claims.refusals) == ("jit", refusals)
        assert [subset.nodes for subset in claims.subsets] == [(0,), (1,), (2,)]
    assert len(kernels(interpreter)) == 2
    np.testing.assert_array_equal(outputs(interpreter, X), Y)


def test_shapes_that_depend_on_values_are_late() -> None:
    make = ModelMaker()
    x, y = make.tensor((4,), name="x"), make.tensor((4,), name="y")
    shape, a = make.tensor((1,), INT32, name="shape"), make.tensor((4,), name="a")
    make.op("RELU", [x], [a])
    make.op("RESHAPE", [a, shape], [y], ReshapeOptions(new_shape=np.array([-1], np.int32)))
    make.io([x, shape], [y])
    interpreter = Interpreter(model_content=make.model())
    interpreter.allocate_tensors()
    claims, late = interpreter.delegate_claims()
    assert [subset.nodes for subset in claims.partitions] == [(0,)]
    assert claims.refusals == {1: 'the shape of "y" is only known when the model runs'}
    assert [subset.nodes for subset in late.partitions] == [(1,)]
    interpreter.set_tensor(x, np.array([1, -2, 3, -4], np.float32))
    interpreter.set_tensor(shape, np.array([4], np.int32))
    interpreter.invoke()
    assert interpreter.get_tensor(y).tolist() == [1, 0, 3, 0]


@pytest.mark.parametrize("choice", [REFERENCE, OpResolverType.BUILTIN_REF])
def test_the_reference_path_has_no_delegate(choice: OpResolverType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(JitDelegate, "__init__", lambda *_: pytest.fail("made"))
    interpreter = Interpreter(model_content=mobile_net(), experimental_op_resolver_type=choice)
    interpreter.allocate_tensors()
    assert interpreter.delegate_claims() == []
    assert interpreter.delegate_kernels() == []
    outputs(interpreter, images(1))


def test_delegates_of_the_user_go_first() -> None:
    interpreter = Interpreter(
        model_content=in_two_parts(), custom_ops=[flip], experimental_delegates=[NullDelegate("ADD")]
    )
    interpreter.allocate_tensors()
    theirs, ours = interpreter.delegate_claims()
    assert [subset.nodes for subset in theirs.partitions] == [(2,)]
    assert [subset.nodes for subset in ours.partitions] == [(0,)]
    assert ours.refusals == {1: "trace=False", 3: "already delegated to null"}
    assert isinstance(interpreter.delegate_kernels()[1], JitKernel)
    np.testing.assert_array_equal(outputs(interpreter, X), Y)


def test_preserve_all_tensors() -> None:
    with pytest.warns(UserWarning, match="experimental_preserve_all_tensors"):
        ours = Interpreter(model_content=mobile_net(), experimental_preserve_all_tensors=True)
    wanted = Interpreter(
        model_content=mobile_net(), experimental_preserve_all_tensors=True, experimental_op_resolver_type=REFERENCE
    )
    for interpreter in (ours, wanted):
        interpreter.allocate_tensors()
        outputs(interpreter, images(1))
    (claims,) = ours.delegate_claims()
    assert [len(subset.nodes) for subset in claims.partitions] == [1] * 12
    for index in range(len(ours.model.subgraphs[0].tensors)):
        close(ours.get_tensor(index), wanted.get_tensor(index))


def test_latest_features_change_nothing() -> None:
    interpreter = Interpreter(model_content=mobile_net(), experimental_default_delegate_latest_features=True)
    interpreter.allocate_tensors()
    (claims,) = interpreter.delegate_claims()
    assert (claims.delegate, len(claims.partitions), claims.refusals) == ("jit", 1, {})
    documented = " ".join((Interpreter.__doc__ or "").split())
    assert "``experimental_default_delegate_latest_features`` changes nothing" in documented


# What it falls back to


@pytest.mark.usefixtures("lenient")
def test_a_failing_compiler_costs_one_warning(cold: Path, monkeypatch: pytest.MonkeyPatch, warnings: list[str]) -> None:
    def fail(*_: object) -> None:
        raise CompileError("the compiler is on strike")

    monkeypatch.setattr(compiling, "compile_kernels", fail)
    for _ in range(2):
        interpreter = Interpreter(model_content=in_two_parts(), custom_ops=[flip])
        interpreter.allocate_tensors()
        assert [kernel.failure for kernel in kernels(interpreter)] == ["the compiler is on strike"] * 2
        assert [kernel.program for kernel in kernels(interpreter)] == [None, None]
        np.testing.assert_array_equal(outputs(interpreter, X), Y)
    (message,) = warnings
    assert message.startswith(
        "3 of 3 operators of the model run on the reference kernels, in NumPy, which take 30 to 3,000 times the time "
        "of machine code. 1 RELU, 1 ADD: the compiler is on strike. 1 Flip: "
    )


@pytest.mark.usefixtures("lenient")
def test_a_compiler_that_comes_back_is_used_after_a_resize(
    cold: Path, monkeypatch: pytest.MonkeyPatch, warnings: list[str]
) -> None:
    compile_kernels = compiling.compile_kernels

    def fail(*_: object) -> None:
        raise CompileError("the compiler is on strike")

    monkeypatch.setattr(compiling, "compile_kernels", fail)
    interpreter = Interpreter(model_content=mobile_net())
    interpreter.allocate_tensors()
    assert kernels(interpreter)[0].program is None
    monkeypatch.setattr(compiling, "compile_kernels", compile_kernels)
    interpreter.resize_tensor_input(0, [2, 16, 16, 3])
    interpreter.allocate_tensors()
    assert kernels(interpreter)[0].program is not None
    assert kernels(interpreter)[0].failure is None
    close(
        outputs(interpreter, images(2))[1:], run(mobile_net(), images(2)[1:], experimental_op_resolver_type=REFERENCE)
    )
    assert len(warnings) == 1


@pytest.mark.usefixtures("lenient")
def test_a_bug_in_the_generator_costs_one_warning(
    cold: Path, monkeypatch: pytest.MonkeyPatch, warnings: list[str]
) -> None:
    from gossamer.delegates.jit import compiling as making

    monkeypatch.setattr(making, "build", lambda *_: {}["nobody foresaw this"])
    np.testing.assert_array_equal(run(in_two_parts(), X, custom_ops=[flip]), Y)
    (message,) = warnings
    assert "KeyError: 'nobody foresaw this'." in message


@pytest.mark.parametrize("stage", ["lowering", "compiling"])
def test_strictly_the_reference_kernels_do_not_step_in(cold: Path, monkeypatch: pytest.MonkeyPatch, stage: str) -> None:
    def fail(*_: object) -> None:
        raise KeyError("nobody foresaw this")

    monkeypatch.setenv("GOSSAMER_STRICT", "1")
    if stage == "lowering":
        monkeypatch.setattr(relu, "lower_function", fail)
    else:
        monkeypatch.setattr(compiling, "compile_kernels", fail)
    interpreter = Interpreter(model_content=in_two_parts(), custom_ops=[flip])
    with pytest.raises(RuntimeError, match="nobody foresaw this"):
        interpreter.allocate_tensors()


@pytest.mark.usefixtures("lenient")
def test_an_operator_that_cannot_be_lowered_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relu, "lower_function", lambda graph: {}["nobody foresaw this"])
    interpreter = Interpreter(model_content=in_two_parts(), custom_ops=[flip])
    interpreter.allocate_tensors()
    (claims,) = interpreter.delegate_claims()
    assert [subset.nodes for subset in claims.partitions] == [(2,)]
    assert claims.refusals[0] == "it cannot be lowered: KeyError: 'nobody foresaw this'"
    np.testing.assert_array_equal(outputs(interpreter, X), Y)


def test_without_llvmlite_and_kernels_the_warning_says_what_to_install(
    cold: Path, monkeypatch: pytest.MonkeyPatch, warnings: list[str]
) -> None:
    monkeypatch.setitem(sys.modules, "llvmlite", None)
    np.testing.assert_array_equal(run(in_two_parts(), X, custom_ops=[flip]), Y)
    (message,) = warnings
    assert message.endswith('or the compiler: python -m pip install "gossamer[compile]".')


def of_what_ships(graph: KernelGraph, source: memoryview | None, target: Target) -> Any:
    """What a partition becomes without a compiler, of kernels that a wheel has."""
    from gossamer.codegen.basis import basis
    from gossamer.delegates.jit import compiling as making

    names = {spec.name for member in target.family() for spec in basis(member)}
    built, boundaries = making.made_of(graph, source, target, names.__contains__)
    making.ensure(built.specs.values(), target)
    return built, boundaries


def test_without_llvmlite_a_model_runs_on_what_ships(
    cold: Path, monkeypatch: pytest.MonkeyPatch, warnings: list[str]
) -> None:
    from gossamer.delegates.jit import compiling as making

    x = np.random.default_rng(0).standard_normal((1, 16, 16, 3)).astype(np.float32)
    with monkeypatch.context() as patch:
        patch.setattr(making, "compiled_of", of_what_ships)
        expected = run(mobile_net(), x)
    monkeypatch.setitem(sys.modules, "llvmlite", None)
    interpreter = Interpreter(model_content=mobile_net())
    interpreter.allocate_tensors()
    np.testing.assert_array_equal(outputs(interpreter, x), expected)
    (kernel,) = interpreter.delegate_kernels()
    assert isinstance(kernel, JitKernel)
    assert kernel.program is not None
    assert kernel.built is not None  # which is made again for profiles: of the same kernels
    assert kernel.built.plan.kernels == kernel.program.plan.kernels
    assert len(kernel.built.steps) == len(kernel.program.plan.commands)
    assert warnings == []


def test_without_llvmlite_fused_kernels_are_enough(
    cold: Path, monkeypatch: pytest.MonkeyPatch, warnings: list[str]
) -> None:
    """Operators need no kernels of their own, and no operator is looked at alone."""
    from gossamer.delegates.jit import compiling as making

    x = images(1)
    expected = run(mobile_net(), x)
    monkeypatch.setitem(sys.modules, "llvmlite", None)
    monkeypatch.setattr(making, "unavailable", lambda *_: pytest.fail("an operator was looked at alone"))
    interpreter = Interpreter(model_content=mobile_net())
    interpreter.allocate_tensors()
    np.testing.assert_array_equal(outputs(interpreter, x), expected)
    (kernel,) = kernels(interpreter)
    assert kernel.program is not None
    assert warnings == []


def test_without_llvmlite_what_was_looked_at_with_other_shapes_is_made_anew(
    cold: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = {count: run_resized(mobile_net(), count) for count in (1, 2)}
    monkeypatch.setitem(sys.modules, "llvmlite", None)
    for count in (2, 1):
        np.testing.assert_array_equal(run_resized(mobile_net(), count), expected[count])


def run_resized(model: bytes, count: int) -> np.ndarray:
    """The outputs for some images, by way of a delegate that is applied before the input is resized."""
    interpreter = Interpreter(model_content=model, experimental_delegates=[JitDelegate()])
    (index,) = (details["index"] for details in interpreter.get_input_details())
    interpreter.resize_tensor_input(index, [count, 16, 16, 3])
    interpreter.allocate_tensors()
    assert kernels(interpreter)[0].program is not None
    return outputs(interpreter, images(count))


def test_without_llvmlite_only_the_operators_that_lack_a_kernel_are_left_out(
    cold: Path, monkeypatch: pytest.MonkeyPatch, warnings: list[str]
) -> None:
    run(chain("ABS", "NEG"), X)
    for name in ("ABS", "NEG"):
        run(chain(name), X)
    monkeypatch.setitem(sys.modules, "llvmlite", None)
    interpreter = Interpreter(model_content=chain("ABS", "SIN", "NEG"))
    interpreter.allocate_tensors()
    expected = -np.sin(np.abs(X))
    np.testing.assert_allclose(outputs(interpreter, X), expected, rtol=1e-6)
    (claims,) = interpreter.delegate_claims()
    assert [subset.nodes for subset in claims.partitions] == [(0,), (2,)]
    assert claims.refusals.keys() == {1}
    assert claims.refusals[1].startswith("No archive has f32_map_sin")
    (message,) = warnings
    assert message.startswith("1 of 3 operators of the model runs on the reference kernels, in NumPy")
    assert message.endswith(f"1 SIN: {claims.refusals[1]}")
    preview = Interpreter(model_content=chain("ABS", "SIN", "NEG")).preview_delegate(JitDelegate())
    assert dict(preview.refusals) == dict(claims.refusals)


REFUSED = """
import ctypes, logging, sys
import numpy as np
from pathlib import Path
PR_SET_MDWE, REFUSE_EXEC_GAIN = 65, 1
if ctypes.CDLL(None).prctl(PR_SET_MDWE, REFUSE_EXEC_GAIN, 0, 0, 0):
    sys.exit(77)
from gossamer import Interpreter
from gossamer.programs import host, library
library.SHIPPED = Path(sys.argv[2])
logging.basicConfig(level=logging.WARNING)
assert not host.runs_new_code()
interpreter = Interpreter(sys.argv[1])
interpreter.allocate_tensors()
interpreter.set_tensor(0, np.load(sys.argv[3]))
interpreter.invoke()
np.save(sys.argv[3], interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))
(kernel,) = interpreter.delegate_kernels()
assert kernel.program is not None, kernel.failure
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the policy is Linux's")
@pytest.mark.parametrize("kept", ["shipped", "nothing", "a place", "shipped and a full place"])
def test_memory_that_must_not_become_executable(
    cold: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: str
) -> None:
    from gossamer.delegates.jit import compiling as making

    x = images(1)
    with monkeypatch.context() as patch:
        patch.setattr(making, "compiled_of", of_what_ships)
        expected = run(mobile_net(), x)
    shipped, model, data = tmp_path / "shipped", tmp_path / "model.tflite", tmp_path / "x.npy"
    if "ship" in kept:
        (cold / "kernels").rename(shipped)
    place = Path("/dev/null/nowhere") if kept in ("shipped", "nothing") else tmp_path / "place"
    if kept == "shipped and a full place":
        (place / "kernels" / "lock").mkdir(parents=True)  # which therefore cannot be had
    model.write_bytes(mobile_net())
    np.save(data, x)
    process = subprocess.run(
        [sys.executable, "-c", REFUSED, model, shipped, data],
        env={**os.environ, "GOSSAMER_CACHE_DIR": str(place), "GOSSAMER_STRICT": "0"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=HANGS,
    )
    if process.returncode == 77:
        pytest.skip("this Linux knows no such policy")
    if kept == "nothing":
        assert process.returncode == 1
        assert "runs compiled kernels only from files: GOSSAMER_CACHE_DIR must name a place" in process.stderr
    else:
        assert process.returncode == 0, process.stderr
        np.testing.assert_allclose(np.load(data), expected, rtol=1e-5)


def test_interpreters_of_one_model_share_packed_weights(tmp_path: Path) -> None:
    path, content = tmp_path / "m.tflite", mobile_net()
    path.write_bytes(content)
    x = np.random.default_rng(0).standard_normal((1, 16, 16, 3)).astype(np.float32)
    other = mobile_net(seed=4)
    kernels, results = [], []
    for arguments in (
        {"model_path": str(path)},
        {"model_path": str(path), "num_threads": 2},
        {"model_content": content},
        {"model_content": content},
        {"model_content": other},
    ):
        interpreter = Interpreter(**arguments)
        interpreter.allocate_tensors()
        results.append(outputs(interpreter, x))
        kernels.append(interpreter)
    places = [interpreter.delegate_kernels()[0].program.memory["weights"].address for interpreter in kernels]
    assert places[0] == places[1]
    assert places[2] == places[3]
    assert len(set(places)) == 3
    for result in results[1:4]:
        np.testing.assert_array_equal(result, results[0])
    assert (results[4] != results[0]).any()


def test_programs_for_several_shapes_share_packed_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = []
    pack = Program.pack

    def counted(program: Program, *arguments: Any, **settings: Any) -> None:
        packed.append(program.plan.packs)
        pack(program, *arguments, **settings)

    path = tmp_path / "m.tflite"
    path.write_bytes(mobile_net())
    interpreter = Interpreter(model_path=str(path))
    programs, results = [], []
    with monkeypatch.context() as patch:
        patch.setattr(Program, "pack", counted)
        for count in range(1, 9):
            interpreter.resize_tensor_input(0, [count, 16, 16, 3])
            interpreter.allocate_tensors()
            results.append(outputs(interpreter, images(count)))
            programs.append(kernels(interpreter)[0].program)
    places = {(program.plan.packs, program.memory["weights"].address) for program in programs}
    assert len(packed) == len(set(packed)) == len(places) < len(programs)
    for count, result in enumerate(results, 1):
        alone = Interpreter(model_content=mobile_net())
        alone.resize_tensor_input(0, [count, 16, 16, 3])
        alone.allocate_tensors()
        np.testing.assert_array_equal(result, outputs(alone, images(count)))


def test_plans_of_the_last_shapes_are_kept_and_in_files_those_of_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jit, "MOST_PLANS", 3)
    monkeypatch.setattr(jit, "MOST_KEPT", 0)
    monkeypatch.setenv("GOSSAMER_CACHE_DIR", str(tmp_path))
    path = tmp_path / "m.tflite"
    path.write_bytes(mobile_net())

    made: list[int] = []
    make = JitKernel._make
    monkeypatch.setattr(JitKernel, "_make", lambda *arguments: made.append(count) or make(*arguments))
    interpreter = Interpreter(model_path=str(path))
    for count in (2, 3, 4, 5, 6, 5, 4, 6, 2):
        interpreter.resize_tensor_input(0, [count, 16, 16, 3])
        interpreter.allocate_tensors()
    assert made == [2, 3, 4, 5, 6, 2]
    for kernel in interpreter.delegate_kernels():
        kernel.free()
    assert len(list((tmp_path / "kernels").glob("*.plans"))) == 3


def test_a_signature_runner_has_machine_code_without_allocation() -> None:
    interpreter = Interpreter(str(ROOT / "examples" / "digits.tflite"))
    read = interpreter.get_signature_runner("serving_default")
    assert read(image=np.zeros((1, 8, 8, 1), np.float32))["probabilities"].shape == (1, 10)
    (kernel,) = interpreter.delegate_kernels()
    assert isinstance(kernel, JitKernel)
    assert kernel.program is not None


# Shapes


def test_shapes_may_change_and_change_back() -> None:
    interpreter = Interpreter(model_content=mobile_net())
    interpreter.allocate_tensors()
    first = outputs(interpreter, images(1))
    for count in (3, 1, 2, 1):
        interpreter.resize_tensor_input(0, [count, 16, 16, 3])
        interpreter.allocate_tensors()
        found = outputs(interpreter, images(count))
        assert found.shape == (count, 10)
        assert kernels(interpreter)[0].program is not None
        wanted = Interpreter(model_content=mobile_net(), experimental_op_resolver_type=REFERENCE)
        wanted.resize_tensor_input(0, [count, 16, 16, 3])
        wanted.allocate_tensors()
        close(found, outputs(wanted, images(count)))
    assert found.tobytes() == first.tobytes()


class Growing(Delegate):
    """Runs ABS, which it makes ``count`` times as long; how much that is, it says when it runs, or before."""

    name = "growing"
    flags = DelegateFlags.ALLOW_DYNAMIC_TENSORS

    def __init__(self, count: int, says: bool) -> None:
        self.count, self.says = count, says

    def is_node_supported(self, node: NodeInfo) -> bool | str:
        return node.op.name == "ABS" or "only ABS"

    def create_kernel(self, partition: Partition) -> DelegateKernel:
        return GrowingKernel(self)


class GrowingKernel(DelegateKernel):
    def __init__(self, delegate: Growing) -> None:
        self.delegate = delegate

    def prepare(self, ctx: PartitionPrepareContext) -> None:
        if self.delegate.says:
            ctx.set_shape(ctx.outputs[0], (4 * self.delegate.count,))
        else:
            ctx.set_dynamic(ctx.outputs[0])

    def invoke(self, ctx: PartitionInvokeContext) -> None:
        ctx.set_value(ctx.outputs[0], np.tile(np.abs(ctx.value(ctx.inputs[0])), self.delegate.count))


def test_another_delegate_may_decide_the_shapes(cold: Path, tmp_path: Path) -> None:
    path = tmp_path / "m.tflite"
    path.write_bytes(chain("ABS", "NEG"))
    for count, says in ((1, True), (2, True), (1, False), (2, False), (3, False), (2, True)):
        interpreter = Interpreter(str(path), experimental_delegates=[Growing(count, says)])
        interpreter.allocate_tensors()
        np.testing.assert_array_equal(outputs(interpreter, X), np.tile(-np.abs(X), count))
        programs = [kernel.program for kernel in interpreter.delegate_kernels() if isinstance(kernel, JitKernel)]
        assert any(program is not None for program in programs) is says


def test_outputs_that_are_inputs_constants_or_each_other() -> None:
    make = ModelMaker()
    x = make.tensor((2, 3), name="x")
    constant = make.constant([[1, 2, 3]], np.float32, FLOAT, name="constant")
    shape = make.constant([3, 2], np.int32, INT32)
    y, reshaped = make.tensor((2, 3), name="y"), make.tensor((3, 2), name="reshaped")
    make.op("RESHAPE", [x, shape], [reshaped], ReshapeOptions())
    make.op("ADD", [x, constant], [y], AddOptions())
    make.io([x], [y, x, reshaped, constant, y])
    interpreter = Interpreter(model_content=make.model())
    interpreter.allocate_tensors()
    value = np.arange(6, dtype=np.float32).reshape(2, 3)
    interpreter.set_tensor(x, value)
    interpreter.invoke()
    added = value + np.array([1, 2, 3], np.float32)
    for details, wanted in zip(
        interpreter.get_output_details(), (added, value, value.reshape(3, 2), [[1, 2, 3]], added), strict=True
    ):
        np.testing.assert_array_equal(interpreter.get_tensor(details["index"]), wanted)


# Bits


BITS = """
import sys
if {without_llvm}:
    sys.modules["llvmlite"] = None
from pathlib import Path
from tests.delegates.jit.test_delegate import Interpreter, images, outputs, kernels
interpreter = Interpreter({path!r}, num_threads={threads})
interpreter.allocate_tensors()
assert kernels(interpreter)[0].program is not None
first, second = (outputs(interpreter, images(1)).tobytes() for _ in range(2))
assert first == second
print(first.hex(), "llvmlite.binding" in sys.modules)
"""


def in_another_process(path: Path, threads: int, without_llvm: bool) -> tuple[str, str]:
    """The bits that come out, and whether LLVM was loaded."""
    code = BITS.format(path=str(path), threads=threads, without_llvm=without_llvm)
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT, env=os.environ
    ).stdout
    bits, loaded = out.split()
    return bits, loaded


@pytest.mark.parametrize("model", [mobile_net(), byte_net()], ids=["floats", "bytes"])
def test_bits_depend_on_nothing(model: bytes, cold: Path, tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(model)
    bits, loaded = in_another_process(path, 1, without_llvm=False)
    assert loaded == "True"
    # Kernels and plan are known now.
    assert in_another_process(path, 1, without_llvm=False) == (bits, "False")
    assert in_another_process(path, 2, without_llvm=True) == (bits, "False")
    for threads in (1, 2, 3):
        interpreter = Interpreter(str(path), num_threads=threads)
        interpreter.allocate_tensors()
        for _ in range(3):
            assert outputs(interpreter, images(1)).tobytes().hex() == bits
    assert run(model, images(1)).tobytes().hex() == bits


def test_a_file_that_changes_is_another_model(cold: Path, tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    found = []
    for seed in (SEED, SEED + 1, SEED):
        model = mobile_net(seed)
        path.write_bytes(model)
        interpreter = Interpreter(str(path))
        interpreter.allocate_tensors()
        found.append(outputs(interpreter, images(1)).tobytes())
        assert found[-1] == run(model, images(1)).tobytes()
        del interpreter
    assert found[0] == found[2] != found[1]


# Threads and processes


def test_two_interpreters_in_two_threads() -> None:
    models, inputs = [mobile_net(), in_two_parts()], [images(1), X]
    wanted = [run(mobile_net(), images(1)).tobytes(), Y.tobytes()]
    start, wrong = threading.Barrier(4), []

    def work(which: int, threads: int) -> None:
        interpreter = Interpreter(model_content=models[which], num_threads=threads, custom_ops=[flip])
        interpreter.allocate_tensors()
        start.wait()
        for _ in range(50):
            if outputs(interpreter, inputs[which]).tobytes() != wanted[which]:
                wrong.append(which)

    workers = [threading.Thread(target=work, args=(which, threads)) for which in (0, 1) for threads in (1, 2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert wrong == []


FORKING = """
import os
from tests.delegates.jit.test_delegate import Interpreter, images, in_two_parts, mobile_net, outputs

def make(count):
    interpreter = Interpreter(model_content=mobile_net(), num_threads=2)
    interpreter.resize_tensor_input(0, [count, 16, 16, 3])
    interpreter.allocate_tensors()
    return interpreter

interpreters = [make(1), make(2)]
wanted = [outputs(interpreter, images(count)).tobytes() for count, interpreter in enumerate(interpreters, 1)]
children = []
for _ in range(3):
    child = os.fork()
    if child == 0:
        same = True
        for interpreter in (*interpreters, make(1), make(2)):
            count = int(interpreter.get_input_details()[0]["shape"][0])
            same &= all(outputs(interpreter, images(count)).tobytes() == wanted[count - 1] for _ in range(3))
        os._exit(0 if same else 1)
    children.append(child)
print([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children])
print(outputs(interpreters[0], images(1)).tobytes() == wanted[0])
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_processes_may_fork() -> None:
    out = subprocess.run(
        [sys.executable, "-c", FORKING], capture_output=True, text=True, check=True, cwd=ROOT, env=os.environ
    ).stdout
    assert out.split("\n")[:2] == ["[0, 0, 0]", "True"]


def test_kernels_are_freed_with_their_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    freed = []
    monkeypatch.setattr(JitKernel, "free", lambda kernel: freed.append(kernel))
    interpreter = Interpreter(model_content=mobile_net())
    interpreter.allocate_tensors()
    (kernel,) = kernels(interpreter)
    del interpreter
    assert freed == [kernel]


def test_the_delegate_can_be_applied_by_hand() -> None:
    interpreter = gossamer.Interpreter(
        model_content=mobile_net(), experimental_op_resolver_type=REFERENCE, experimental_delegates=[JitDelegate(2)]
    )
    interpreter.allocate_tensors()
    (claims,) = interpreter.delegate_claims()
    assert len(claims.partitions) == 1
    close(outputs(interpreter, images(1)), run(mobile_net(), images(1), experimental_op_resolver_type=REFERENCE))
