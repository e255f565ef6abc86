"""What lasts from one invocation to the next, and what clones share of it."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gossamer
from gossamer import Interpreter, OpResolverType
from gossamer.errors import InvokeError
from gossamer.schema import (
    AddOptions,
    CallOnceOptions,
    FullyConnectedOptions,
    ReshapeOptions,
    ShapeOptions,
    SVDFOptions,
    TensorType,
    VarHandleOptions,
)
from tests.ops.variables import accumulator
from tests.runtime.graphs import ModelMaker, adder
from tests.runtime.test_control_flow import increment, loop, run

BOTH = pytest.mark.parametrize(
    "resolver", [OpResolverType.AUTO, OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES], ids=["jit", "reference"]
)


def two_kinds_of_state() -> bytes:
    """``step``: y = SVDF(x) + total, total = y; ``read``: total. SVDF sums over the last three calls."""
    make = ModelMaker()
    make.op("CALL_ONCE", [], [], CallOnceOptions(init_subgraph_index=2))
    x = make.tensor((1, 2))
    handle, s, before, y = (
        make.tensor((1,), TensorType.RESOURCE),
        make.tensor((1, 2)),
        make.tensor((1, 2)),
        make.tensor((1, 2)),
    )
    features = make.constant(np.eye(2), np.float32, TensorType.FLOAT32)
    times = make.constant(np.ones((2, 3)), np.float32, TensorType.FLOAT32)
    state = make.tensor((1, 6), is_variable=True)
    make.op("SVDF", [x, features, times, -1, state], [s], SVDFOptions(rank=1))
    make.op("VAR_HANDLE", [], [handle], VarHandleOptions(shared_name="total"))
    make.op("READ_VARIABLE", [handle], [before])
    make.op("ADD", [s, before], [y])
    make.op("ASSIGN_VARIABLE", [handle, y], [])
    make.io([x], [y])
    make.signature("step", {"x": x}, {"y": y})
    read = make.subgraph("read")
    make.op("CALL_ONCE", [], [], CallOnceOptions(init_subgraph_index=2))
    handle, total = make.tensor((1,), TensorType.RESOURCE), make.tensor((1, 2))
    make.op("VAR_HANDLE", [], [handle], VarHandleOptions(shared_name="total"))
    make.op("READ_VARIABLE", [handle], [total])
    make.io([], [total])
    make.signature("read", {}, {"total": total}, read)
    make.subgraph("init")
    handle = make.tensor((1,), TensorType.RESOURCE)
    make.op("VAR_HANDLE", [], [handle], VarHandleOptions(shared_name="total"))
    make.op("ASSIGN_VARIABLE", [handle, make.constant([[100, 100]], np.float32, TensorType.FLOAT32)], [])
    return make.model()


@BOTH
def test_resources_belong_to_the_interpreter_and_variables_to_subgraphs(resolver: OpResolverType) -> None:
    interpreter = Interpreter(model_content=two_kinds_of_state(), experimental_op_resolver_type=resolver)
    step, read = (interpreter.get_signature_runner(key) for key in ("step", "read"))
    x = np.float32([[1, 2]])
    assert read()["total"].tolist() == [[100, 100]]
    assert step(x=x)["y"].tolist() == [[101, 102]]
    assert step(x=x)["y"].tolist() == [[103, 106]]
    assert read()["total"].tolist() == [[103, 106]]
    interpreter.reset_all_variables()
    assert read()["total"].tolist() == [[103, 106]]
    assert step(x=x)["y"].tolist() == [[104, 108]]


@BOTH
def test_a_clone_begins_without_state(resolver: OpResolverType) -> None:
    first = Interpreter(model_content=accumulator(), experimental_op_resolver_type=resolver)
    first.allocate_tensors()
    assert [run(first, [1]) for _ in range(2)] == [[[11]], [[12]]]
    second = first.clone()
    assert [run(second, [5]) for _ in range(2)] == [[[15]], [[20]]]
    assert run(first, [1]) == [[13]]


@BOTH
def test_a_clone_has_the_shapes_and_is_allocated(resolver: OpResolverType) -> None:
    first = Interpreter(model_content=adder(), experimental_op_resolver_type=resolver)
    assert not first.clone()._subgraphs[0].is_invokable
    first.resize_tensor_input(0, [4, 3])
    first.allocate_tensors()
    x = np.ones((4, 3), np.float32)
    second = first.clone()
    first.set_tensor(0, x)
    assert run(second, 5 * x) == [(5 * x + 2).tolist()]
    first.invoke()
    assert first.get_tensor(3).tolist() == (x + 2).tolist()


def test_a_clone_has_custom_operators_and_delegates_too() -> None:
    @gossamer.custom_op("Spy", shape="x")
    def spy(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return x * 2

    model = loop(2, lambda make, x: [increment(make, x[0], "Spy")], [(2,)])
    delegate = gossamer.load_delegate("recording")
    first = Interpreter(model_content=model, custom_ops=[spy], experimental_delegates=[delegate])
    first.allocate_tensors()
    second = first.clone()
    assert run(second, 0, [1, 2]) == [2, [4, 8]]
    assert [claims.delegate for claims in second.delegate_claims()] == [c.delegate for c in first.delegate_claims()]


def dense(size: int = 64) -> bytes:
    make = ModelMaker()
    x, y = make.tensor((8, size)), make.tensor((8, size))
    weights = make.constant(np.arange(size * size).reshape(size, size) % 7 - 3, np.float32, TensorType.FLOAT32)
    make.op("FULLY_CONNECTED", [x, weights, -1], [y], FullyConnectedOptions())
    make.io([x], [y])
    return make.model()


def weights_of(interpreter: Interpreter) -> Any:
    if interpreter._engine.known is not None:
        kernel: Any = interpreter._engine.known._kernel
    else:
        (kernel,) = interpreter.delegate_kernels()
    if kernel.program is None:
        pytest.skip("no machine code for this CPU")
    return kernel.program.memory.get("weights")


@pytest.mark.parametrize("stored", [True, False], ids=["file", "bytes"])
def test_clones_share_packed_weights(stored: bool, tmp_path: Path) -> None:
    path = tmp_path / "dense.tflite"
    path.write_bytes(dense())
    for _ in range(2):  # the second time, the file is known
        first = Interpreter(str(path)) if stored else Interpreter(model_content=dense())
        first.allocate_tensors()
        second = first.clone()
        assert weights_of(first) is weights_of(second)
        assert weights_of(first) is not None


@BOTH
def test_two_threads_run_two_clones(resolver: OpResolverType) -> None:
    model = loop(50, lambda make, x: [increment(make, x[0])], [(256,)])
    first = Interpreter(model_content=model, experimental_op_resolver_type=resolver)
    first.allocate_tensors()
    wrong: list[Any] = []

    def work(interpreter: Interpreter, number: int) -> None:
        for step in range(20):
            x = np.full(256, 1000 * number + step, np.float32)
            got = run(interpreter, step, x)
            if got != [50, (x + 50 - step).tolist()]:
                wrong.append((number, step, got))

    threads = [threading.Thread(target=work, args=(one, n)) for n, one in enumerate([first, first.clone()])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@BOTH
def test_a_variable_that_prepare_computes_keeps_its_value(resolver: OpResolverType) -> None:
    make = ModelMaker()
    x, y = make.tensor((3, 1, 4)), make.tensor((3,), TensorType.INT32, is_variable=True)
    make.op("SHAPE", [x], [y], ShapeOptions(out_type=TensorType.INT32))
    make.io([x], [y])
    interpreter = Interpreter(model_content=make.model(), experimental_op_resolver_type=resolver)
    interpreter.allocate_tensors()
    for _ in range(2):
        interpreter.invoke()
        assert interpreter.get_tensor(y).tolist() == [3, 1, 4]
        interpreter.reset_all_variables()


@BOTH
def test_a_variable_that_its_reader_writes_keeps_its_value(resolver: OpResolverType) -> None:
    """state = (x - state) ** 2. No partition can have that: the node would wait for itself."""
    make = ModelMaker()
    x, state = make.tensor((3,)), make.tensor((3,), is_variable=True)
    make.op("SQUARED_DIFFERENCE", [x, state], [state])
    make.io([x], [state])
    make.signature("step", {"x": x}, {"state": state})
    interpreter = Interpreter(model_content=make.model(), experimental_op_resolver_type=resolver)
    interpreter.allocate_tensors()
    three = np.full(3, 3, np.float32)
    for level in (9, 36):
        interpreter.set_tensor(x, three)
        interpreter.invoke()
        assert interpreter.get_tensor(state).tolist() == [level] * 3
    for level in (33**2, (33**2 - 3) ** 2):
        assert interpreter.get_signature_runner("step")(x=three)["state"].tolist() == [level] * 3


def test_variable_without_memory_is_named_with_the_operator_that_reads_it() -> None:
    """TFLite plans no memory for a variable that RESHAPE writes."""
    make = ModelMaker()
    x, twice, state, y = (
        make.tensor((1, 4)),
        make.tensor((1, 4)),
        make.tensor((2, 2), is_variable=True, name="state"),
        make.tensor((2, 2)),
    )
    make.op("ADD", [x, x], [twice], AddOptions())
    make.op("RESHAPE", [twice, make.constant([2, 2], np.int32, TensorType.INT32)], [state], ReshapeOptions())
    make.op("ADD", [state, state], [y], AddOptions())
    make.io([x], [y])
    interpreter = Interpreter(
        model_content=make.model(), experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    )
    interpreter.allocate_tensors()
    with pytest.raises(InvokeError, match=r'^ADD \(node 2, .*: input tensor 2 "state" lacks data: nothing gives it'):
        interpreter.invoke()
