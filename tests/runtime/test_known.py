"""A file that has been here before: it runs without being read, and whoever asks for more gets what there would be."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gossamer import Interpreter, InvokeError, ModelError, OpResolverType
from gossamer.delegates.jit import compiling, default_delegate
from gossamer.delegates.jit import delegate as jit
from gossamer.delegates.jit import parts as lowering
from gossamer.delegates.null import NullDelegate
from gossamer.errors import GossamerError
from gossamer.model import ModelFile, read_model
from gossamer.model import reader as model_reader
from gossamer.model.structure import LARGE, checksum, structure
from gossamer.programs import library as libraries
from gossamer.runtime import engine
from gossamer.runtime import interpreter as runtime
from gossamer.schema import (
    ActivationFunctionType,
    AddOptions,
    AssignVariableOptions,
    FullyConnectedOptions,
    GatherOptions,
    QuantizationParameters,
    ReadVariableOptions,
    ReshapeOptions,
    SoftmaxOptions,
    TensorType,
    VarHandleOptions,
)
from tests.runtime.graphs import ModelMaker

pytestmark = pytest.mark.skipif(default_delegate() is None, reason="no machine code for this CPU")

FLOAT, INT32 = TensorType.FLOAT32, TensorType.INT32
ROOT = Path(__file__).parents[2]
X = np.linspace(-1, 1, 64, dtype=np.float32).reshape(1, 64)


@pytest.fixture(autouse=True)
def cold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is known, and nothing ships."""
    monkeypatch.setenv("GOSSAMER_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(libraries, "SHIPPED", tmp_path / "shipped")
    monkeypatch.setattr(libraries, "_libraries", {})
    monkeypatch.setattr(engine, "_told", set())


def layers(seed: int = 0) -> bytes:
    """Two layers and a softmax, with weights of more than `LARGE` bytes."""
    make, rng = ModelMaker(), np.random.default_rng(seed)
    x, hidden = make.tensor((1, 64), name="x"), make.tensor((1, 48), name="hidden")
    y, z = make.tensor((1, 48), name="y"), make.tensor((1, 48), name="z")
    weights = make.constant(rng.standard_normal((48, 64)), np.float32, FLOAT)
    bias = make.constant(rng.standard_normal(48), np.float32, FLOAT)
    relu = FullyConnectedOptions(fused_activation_function=ActivationFunctionType.RELU)
    make.op("FULLY_CONNECTED", [x, weights, bias], [hidden], relu)
    make.op("ADD", [hidden, bias], [y], AddOptions())
    make.op("SOFTMAX", [y], [z], SoftmaxOptions(beta=1.0))
    make.io([x], [z, y])
    return make.model()


def gather() -> bytes:
    make = ModelMaker()
    x = make.tensor((4,), INT32, name="indices")
    table = make.constant(np.arange(8), np.float32, FLOAT)
    y = make.tensor((4,), name="y")
    make.op("GATHER", [table, x], [y], GatherOptions())
    make.io([x], [y])
    return make.model()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file of `layers`, which is known."""
    path = tmp_path / "model.tflite"
    path.write_bytes(layers())
    known(path)
    return path


def known(path: Path) -> list[np.ndarray]:
    """Load a file for the first time; its outputs."""
    interpreter = Interpreter(str(path))
    assert interpreter._engine.known is None
    interpreter.allocate_tensors()
    return run(interpreter)


def read(path: Path) -> Interpreter:
    """An interpreter of the bytes of a file, which are read."""
    interpreter = Interpreter(model_content=path.read_bytes())
    interpreter.allocate_tensors()
    return interpreter


def run(interpreter: Interpreter, x: np.ndarray = X) -> list[np.ndarray]:
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    interpreter.invoke()
    return [interpreter.get_tensor(details["index"]) for details in interpreter.get_output_details()]


def equal(found: Any, wanted: Any) -> None:
    np.testing.assert_equal(found, wanted)


def saying(action: Callable[[], Any]) -> str:
    with pytest.raises((GossamerError, ValueError)) as caught:
        action()
    return f"{type(caught.value).__name__}: {caught.value}"


@pytest.fixture
def unread(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No model is read."""
    with monkeypatch.context() as patch:
        patch.setattr(engine, "read_model", lambda *_: pytest.fail("the file was read"))
        yield


LOADED = """
import sys
import numpy as np
import gossamer
before = set(sys.modules)
interpreter = gossamer.Interpreter(sys.argv[1])
interpreter.allocate_tensors()
interpreter.set_tensor(interpreter.get_input_details()[0]["index"], np.ones((1, 64), np.float32))
interpreter.invoke()
interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
print(sorted(name for name in set(sys.modules) - before if name.startswith("gossamer")))
"""


def test_it_needs_no_module_that_is_not_imported_yet(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(layers())
    command = [sys.executable, "-c", LOADED, str(path)]
    first, again = (
        subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout for _ in range(2)
    )
    for module in ("gossamer.ops.softmax", "gossamer.schema.options", "gossamer.model.verifier"):
        assert module in first
    assert again == "[]\n"


@pytest.mark.usefixtures("unread")
@pytest.mark.parametrize("threads", [1, 2])
def test_it_runs_without_being_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(layers())
    with monkeypatch.context() as patch:
        patch.setattr(engine, "read_model", read_model)
        expected = known(path)
    interpreter = Interpreter(str(path), num_threads=threads)
    interpreter.allocate_tensors()
    for x in (X, -X, X):
        found = run(interpreter, x)
        interpreter.reset_all_variables()
    equal(found, expected)
    interpreter.allocate_tensors()
    equal([interpreter.get_tensor(details["index"]) for details in interpreter.get_output_details()], expected)


def test_details_are_those_of_the_file(tmp_path: Path) -> None:
    make = ModelMaker()
    quantized = QuantizationParameters(scale=np.array([0.5], np.float32), zero_point=np.array([3], np.int64))
    x = make.tensor((1, 4), name="x\udcff", shape_signature=(-1, 4), quantization=quantized)
    y = make.tensor((2, 2), name="")
    make.op("RESHAPE", [x, make.constant([2, 2], np.int32, INT32)], [y], ReshapeOptions())
    make.io([x], [y])
    path = tmp_path / "m.tflite"
    path.write_bytes(make.model())
    known_details = []
    known_outputs = []
    for _ in range(2):
        interpreter = Interpreter(str(path))
        before = interpreter.get_input_details() + interpreter.get_output_details()
        interpreter.allocate_tensors()
        known_details.append((before, interpreter.get_input_details() + interpreter.get_output_details()))
        known_outputs.append(run(interpreter, np.arange(4, dtype=np.float32).reshape(1, 4)))
    assert interpreter._engine.known is not None
    equal(*known_details)
    equal(*known_outputs)


def test_whoever_asks_for_more_gets_it(path: Path) -> None:
    everything: dict[str, Callable[[Interpreter], Any]] = {
        "tensors": lambda one: one.get_tensor_details(),
        "operators": lambda one: one._get_ops_details(),
        "subgraphs": lambda one: one.num_subgraphs(),
        "plan": lambda one: one.memory_plan().to_json(),
        "claims": lambda one: one.delegate_claims(),
        "constant": lambda one: one.get_tensor(one.get_tensor_details()[4]["index"]),
        "view": lambda one: one.tensor(one.get_output_details()[0]["index"])().copy(),
        "input": lambda one: one.get_tensor(one.get_input_details()[0]["index"]),
        "model": lambda one: one.model,
        "signatures": lambda one: one.get_signature_list(),
        "kernels": lambda one: [kernel.built is not None for kernel in one.delegate_kernels()],
        "handles": lambda one: one.get_buffer_handle(one.get_input_details()[0]["index"]),
    }
    first = Interpreter(model_content=path.read_bytes())
    first.allocate_tensors()
    expected = run(first)
    for name, ask in everything.items():
        interpreter = Interpreter(str(path))
        interpreter.allocate_tensors()
        run(interpreter)
        assert interpreter._engine.known is not None, name
        if name != "handles":
            equal(ask(interpreter), ask(first))
        else:
            ask(interpreter)
        outputs = [interpreter.get_tensor(details["index"]) for details in interpreter.get_output_details()]
        equal(outputs, expected)
        equal(run(interpreter, -X), run(first, -X))
        run(first)


def test_nodes_made_later_are_those_made_at_once(path: Path) -> None:
    late, content = Interpreter(str(path)), Interpreter(model_content=path.read_bytes())
    late.allocate_tensors()
    content.allocate_tensors()
    nodes = [
        [(node.op.name, node.inputs, node.outputs, node.version, node.options) for node in one._subgraphs[0].nodes]
        for one in (late, content)
    ]
    assert nodes[0] == nodes[1]
    assert late._subgraphs[0].execution_plan == content._subgraphs[0].execution_plan
    (first,), (second,) = late.delegate_kernels(), content.delegate_kernels()
    assert isinstance(first, jit.JitKernel)
    assert isinstance(second, jit.JitKernel)
    assert first.program is not None
    assert second.program is not None
    assert first.program.plan.kernels == second.program.plan.kernels


def test_other_shapes(path: Path) -> None:
    interpreter = Interpreter(str(path))
    interpreter.allocate_tensors()
    expected = run(interpreter)
    interpreter.resize_tensor_input(0, [2, 64])
    interpreter.allocate_tensors()
    for found, one in zip(run(interpreter, np.concatenate((X, X))), expected, strict=True):
        np.testing.assert_allclose(found, np.concatenate((one, one)), rtol=1e-5)
    interpreter.resize_tensor_input(0, [1, 64])
    interpreter.allocate_tensors()
    equal(run(interpreter), expected)
    assert Interpreter(str(path))._engine.known is not None


@pytest.mark.parametrize("strict", [False, True])
def test_the_shape_that_it_has(path: Path, strict: bool) -> None:
    interpreter = Interpreter(str(path))
    interpreter.resize_tensor_input(0, [1, 64], strict=strict)
    interpreter.allocate_tensors()
    interpreter.resize_tensor_input(0, [1, 64], strict=strict)
    equal(run(interpreter), run(read(path)))
    assert interpreter._engine.known is not None


def test_what_is_set_before_the_nodes_are_made_stays_set(path: Path) -> None:
    interpreter = Interpreter(str(path))
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, X)
    assert interpreter._get_op_details(0)["op_name"] == "FULLY_CONNECTED"
    interpreter.invoke()
    equal(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]), run(read(path))[0])


def test_mistakes_are_told_in_the_same_words(path: Path) -> None:
    mistakes: list[Callable[[Interpreter], Any]] = [
        lambda one: one.invoke(),
        lambda one: one.set_tensor(0, X),
        lambda one: one.get_tensor(0),
        lambda one: (one.allocate_tensors(), one.set_tensor(0, X.astype(np.float64))),
        lambda one: one.set_tensor(0, X[:, :3]),
        lambda one: one.set_tensor(2, X),
        lambda one: one.get_tensor(0, 1),
        lambda one: one.resize_tensor_input(0, [-1, 64]),
    ]
    first, again = Interpreter(model_content=path.read_bytes()), Interpreter(str(path))
    assert again._engine.known is not None
    for mistake in mistakes:
        assert saying(lambda: mistake(again)) == saying(lambda: mistake(first))  # noqa: B023 (called at once)
    with pytest.raises(ValueError, match="Invalid tensor index 99 exceeds max tensor index"):
        Interpreter(str(path)).get_tensor(99)


def test_an_index_out_of_range_is_told_by_the_operator(tmp_path: Path) -> None:
    path, indices = tmp_path / "m.tflite", np.array([0, 7, 3, 1], np.int32)
    path.write_bytes(gather())
    first = Interpreter(str(path))
    first.allocate_tensors()
    again = Interpreter(str(path))
    again.allocate_tensors()
    equal(run(again, indices), run(first, indices))
    assert again._engine.known is not None
    wrong = indices + 1
    message = saying(lambda: run(again, wrong))
    assert message == saying(lambda: run(first, wrong))
    assert message.startswith("InvokeError")
    equal(run(again, indices), run(first, indices))


def test_it_runs_once_at_a_time(path: Path) -> None:
    interpreter = Interpreter(str(path))
    interpreter.allocate_tensors()
    assert interpreter._engine.known is not None
    interpreter._engine.known.busy = True
    with pytest.raises(InvokeError, match="subgraph 0 is already running: another thread"):
        interpreter.invoke()
    interpreter._engine.known.busy = False
    run(interpreter)


@pytest.mark.usefixtures("warned")
def test_kernels_that_are_gone_are_made_again(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = run(read(path))
    for kernels in (tmp_path / "cache" / "kernels").glob("*.kernels"):
        kernels.unlink()
    monkeypatch.setattr(libraries, "_libraries", {})
    interpreter = Interpreter(str(path))
    assert interpreter._engine.known is not None
    interpreter.allocate_tensors()
    assert interpreter._engine.known is None
    equal(run(interpreter), expected)
    assert Interpreter(str(path))._engine.known is not None


@pytest.fixture
def warned(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Nothing is."""
    yield
    assert not caplog.records


def test_what_was_made_with_other_means_is_not_known(path: Path) -> None:
    for settings in (
        {"experimental_preserve_all_tensors": True, "experimental_op_resolver_type": OpResolverType.BUILTIN_REF},
        {"experimental_op_resolver_type": OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES},
        {"experimental_disable_delegate_clustering": True},
        {"experimental_disable_delegate_node_fusion": True},
        {"experimental_delegates": [NullDelegate()]},
        {"model_path": None, "model_content": path.read_bytes()},
    ):
        assert Interpreter(**{"model_path": str(path), **settings})._engine.known is None


def test_a_delegate_may_still_be_applied(path: Path) -> None:
    interpreter = Interpreter(str(path))
    assert interpreter.modify_graph_with_delegate(NullDelegate())
    interpreter.allocate_tensors()
    assert interpreter.delegate_claims()[0].delegate == "null"
    for found, wanted in zip(run(interpreter), run(read(path)), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5)


# Which files are known


def same_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every file looks like every other."""
    mapped = model_reader.map_model

    def map_model(path: str) -> ModelFile:
        return mapped(path)._replace(identity="the same")

    monkeypatch.setattr(runtime, "map_model", map_model)


def made(source: str | bytes) -> str:
    """That an interpreter reads its model, or why it cannot."""
    try:
        one = Interpreter(source) if isinstance(source, str) else Interpreter(model_content=source)
    except (ModelError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    return "read" if one._engine.known is None else "known"


def test_a_file_that_was_changed_is_read_and_verified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    same_identity(monkeypatch)
    path, content = tmp_path / "m.tflite", layers()
    path.write_bytes(content)
    known(path)
    assert Interpreter(str(path))._engine.known is not None
    parts = structure(read_model(content))
    places = [start + step for start, end in parts for step in range(0, end - start, 97)]
    assert len(places) > 10
    for place in places:
        changed = bytearray(content)
        changed[place] ^= 0x55
        path.write_bytes(changed)
        assert made(str(path)) == made(bytes(changed))
    path.write_bytes(content)
    assert Interpreter(str(path))._engine.known is not None


def test_a_file_that_was_replaced_is_not_known(path: Path) -> None:
    content = path.read_bytes()
    replacement = path.with_suffix(".new")
    replacement.write_bytes(content)
    os.replace(replacement, path)
    assert Interpreter(str(path))._engine.known is None


def test_the_structure_is_all_but_the_data_of_large_buffers() -> None:
    model = read_model(layers())
    assert model.source is not None
    parts = structure(model)
    kept = bytearray(len(model.source))
    for start, end in parts:
        assert 0 <= start < end <= len(kept)
        assert not any(kept[start:end])
        kept[start:end] = b"\1" * (end - start)
    sizes = [data.size for data in map(model.buffer_data, range(len(model.buffers))) if data is not None]
    assert len(kept) - sum(kept) == sum(size for size in sizes if size >= LARGE) == 48 * 64 * 4
    other = read_model(layers(seed=1))
    assert other.source is not None
    assert structure(other) == parts
    assert checksum(model.source, parts) == checksum(bytes(model.source), parts) != checksum(other.source, parts)


def test_outputs_that_nobody_computes_are_not_known(tmp_path: Path) -> None:
    make = ModelMaker()
    x, y = make.tensor((1, 64), name="x"), make.tensor((1, 64), name="y")
    constant = make.constant(np.ones((1, 64)), np.float32, FLOAT)
    make.op("ADD", [x, constant], [y], AddOptions())
    for outputs in ([y, x], [y, constant]):
        make.io([x], outputs)
        path = tmp_path / f"{outputs[1]}.tflite"
        path.write_bytes(make.model())
        expected = known(path)
        again = Interpreter(str(path))
        assert again._engine.known is None
        again.allocate_tensors()
        equal(run(again), expected)


def test_variables_keep_their_nodes(tmp_path: Path) -> None:
    make = ModelMaker()
    x, y = make.tensor((1, 64), name="x"), make.tensor((1, 64), name="y")
    handle = make.tensor((1,), TensorType.RESOURCE, name="handle")
    make.op("VAR_HANDLE", [], [handle], VarHandleOptions(container="", shared_name="v"))
    make.op("ASSIGN_VARIABLE", [handle, x], [], AssignVariableOptions())
    make.op("READ_VARIABLE", [handle], [y], ReadVariableOptions())
    make.io([x], [y])
    path = tmp_path / "m.tflite"
    path.write_bytes(make.model())
    known(path)
    assert Interpreter(str(path))._engine.known is None


def two_signatures() -> bytes:
    make = ModelMaker()
    for number, (name, options) in enumerate({"RELU": None, "ADD": AddOptions()}.items()):
        if number:
            make.subgraph(name)
        x, y = make.tensor((1, 64), name="x"), make.tensor((1, 64), name="y")
        make.op(name, [x] * (1 + number), [y], options)
        make.io([x], [y])
        make.signature(name, {"x": x}, {"y": y}, subgraph=number)
    return make.model()


def test_without_llvmlite_plans_are_kept_of_signatures_that_nobody_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(two_signatures())
    interpreter = Interpreter(str(path))
    expected = {key: interpreter.get_signature_runner(key)(x=X)["y"] for key in ("RELU", "ADD")}
    monkeypatch.setitem(sys.modules, "llvmlite", None)
    Interpreter(str(path)).allocate_tensors()  # plans are renewed for what there is without a compiler
    monkeypatch.setattr(compiling, "made_of", lambda *_: pytest.fail("it was planned anew"))
    again = Interpreter(str(path))
    again.allocate_tensors()
    for key, value in expected.items():
        equal(again.get_signature_runner(key)(x=X)["y"], value)
    monkeypatch.delitem(sys.modules, "llvmlite")
    planned: list[bool] = []
    compiled_of = compiling.compiled_of
    monkeypatch.setattr(compiling, "compiled_of", lambda *of: planned.append(True) or compiled_of(*of))
    Interpreter(str(path)).allocate_tensors()  # those of the compiler are still there
    assert not planned


def test_without_kernels_nothing_is_planned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(layers())
    monkeypatch.setitem(sys.modules, "llvmlite", None)
    monkeypatch.setattr(lowering, "lower", lambda *_: pytest.fail("a node was lowered"))
    interpreter = Interpreter(str(path))
    interpreter.allocate_tensors()
    (claims,) = interpreter.delegate_claims()
    assert claims.partitions == ()
    assert {reason.split(" (")[0] for reason in claims.refusals.values()} == {"No kernels for this CPU"}
