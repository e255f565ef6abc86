"""The interpreter of a device: its states, its one arena, and what it does not take."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.errors import ArenaError, InvokeError, ModelError, PrepareError, UnsupportedOpError
from gossamer.micro import (
    MicroInterpreter,
    MicroKernel,
    MicroMutableOpResolver,
    MicroProfiler,
    MicroResourceVariables,
)
from gossamer.micro.allocator import MicroAllocator
from gossamer.micro.context import MicroInvokeContext, MicroPrepareContext, State
from gossamer.ops.op_def import OpDef, versions
from gossamer.schema import (
    AssignVariableOptions,
    CallOnceOptions,
    ReadVariableOptions,
    TensorType,
    VarHandleOptions,
)
from tests.micro.models import chain, chooser
from tests.runtime.graphs import ModelMaker, adder


def ready(model: bytes, **how: Any) -> MicroInterpreter:
    interpreter = MicroInterpreter(model, **({"arena": 8192} | how))
    interpreter.allocate_tensors()
    return interpreter


def custom_op(name: str = "Mine") -> OpDef:
    return OpDef(name, inputs=("x",), outputs=("y",), versions=versions("1.0.0"), custom=True)


def custom_model(name: str = "Mine") -> bytes:
    make = ModelMaker()
    x, y = make.tensor((4,), name="x"), make.tensor((4,), name="y")
    make.op(name, [x], [y], custom=True)
    make.io([x], [y])
    return make.model()


def with_kernel(**functions: Any) -> MicroInterpreter:
    kernel = MicroKernel("Mine", op=custom_op(), custom=True, **functions)
    return MicroInterpreter(custom_model(), MicroMutableOpResolver(1, [kernel]), 4096)


def test_runs_in_the_buffer_that_it_is_given() -> None:
    arena = bytearray(4096)
    interpreter = ready(adder(), arena=arena)
    interpreter.input(0).store(np.ones((2, 3), np.float32))
    assert interpreter.invoke()
    report = {b.name: b.offset for b in _buffers(interpreter)}
    assert np.array_equal(np.frombuffer(arena, np.float32, 6, report["y"]), np.full(6, 3, np.float32))


def _buffers(interpreter: MicroInterpreter) -> Any:
    from gossamer.micro import report

    return report(interpreter).buffers


def test_every_tensor_lies_in_the_arena_or_in_the_file() -> None:
    arena = np.zeros(8192, np.uint8)
    interpreter = ready(chooser(), arena=arena)
    for subgraph in interpreter.graph.subgraphs:
        for tensor in subgraph.tensors:
            assert tensor.data is not None
            assert np.shares_memory(tensor.data, arena) != tensor.is_stored


def test_an_invocation_leaves_the_tensors_where_they_are() -> None:
    interpreter = ready(chooser())
    tensors = [tensor for subgraph in interpreter.graph.subgraphs for tensor in subgraph.tensors]
    before = [tensor.data for tensor in tensors]
    used = interpreter.arena_used_bytes
    for truth in (True, False):
        interpreter.input(0).store(np.array([truth]))
        interpreter.input(1).store(np.arange(24, dtype=np.float32).reshape(1, 24))
        interpreter.invoke()
    assert all(tensor.data is data for tensor, data in zip(tensors, before, strict=True))
    assert interpreter.arena_used_bytes == used


def test_nothing_is_written_outside_the_head_and_the_variables() -> None:
    arena = np.full(8192, 0xA5, np.uint8)
    interpreter = ready(chain(), arena=arena)
    interpreter.input(0).store(np.ones((1, 24), np.float32))
    interpreter.invoke()
    assert (arena[interpreter.allocator.head_bytes :] == 0xA5).all()


def test_the_branches_of_an_if_run_in_the_arena_of_their_caller() -> None:
    interpreter = ready(chooser())
    x = np.arange(24, dtype=np.float32).reshape(1, 24)
    answers = {}
    for truth in (True, False):
        interpreter.input(0).store(np.array([truth]))
        interpreter.input(1).store(x)
        interpreter.invoke()
        answers[truth] = interpreter.output(0).array().copy()
    assert np.array_equal(answers[True], np.pad(x[:, :16], ((0, 0), (0, 16))))
    assert np.array_equal(answers[False], np.pad(x, ((0, 0), (0, 8))))


def test_invoke_allocates_if_nobody_has() -> None:
    interpreter = MicroInterpreter(adder(), arena=4096)
    assert interpreter.state is State.INIT
    assert interpreter.invoke()
    assert interpreter.state is State.INVOKE


def test_allocating_twice() -> None:
    interpreter = ready(adder())
    with pytest.raises(InvokeError, match="allocate_tensors was called before"):
        interpreter.allocate_tensors()


def test_after_a_failure() -> None:
    interpreter = MicroInterpreter(chain(), arena=900)
    with pytest.raises(ArenaError, match="The arena has 900 bytes, 960 are needed: 60 are missing"):
        interpreter.allocate_tensors()
    with pytest.raises(InvokeError, match="invoke was called after initialization failed"):
        interpreter.invoke()
    with pytest.raises(InvokeError, match="allocate_tensors failed before"):
        interpreter.allocate_tensors()


def test_the_error_names_the_operator_that_did_not_fit() -> None:
    with pytest.raises(ArenaError, match=r'FULLY_CONNECTED \(node 0, output "x16_1"\): Failed to allocate temp memory'):
        MicroInterpreter(chain(), arena=640).allocate_tensors()


def test_an_arena_without_memory_does_not_run() -> None:
    interpreter = MicroInterpreter(adder())
    interpreter.allocate_tensors()
    with pytest.raises(InvokeError, match="the arena has no limit and no memory"):
        interpreter.invoke()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda ctx: ctx.micro.allocate_persistent_buffer(8), "allocate_persistent_buffer is for operators while"),
        (lambda ctx: ctx.micro.request_scratch_buffer_in_arena(8), "request_scratch_buffer_in_arena is for operators"),
        (lambda ctx: ctx.micro.allocate_temp_buffer(8, 8), "allocate_temp_buffer is for operators while"),
    ],
)
def test_what_an_operator_may_not_do_while_it_runs(call: Any, message: str) -> None:
    def reference(ctx: MicroInvokeContext) -> Any:
        call(ctx)

    interpreter = with_kernel(reference=reference)
    interpreter.allocate_tensors()
    with pytest.raises(InvokeError, match=f"{message}.*; now it is invoked"):
        interpreter.invoke()


def test_scratch_memory_is_for_the_invocation() -> None:
    with pytest.raises(
        PrepareError, match="get_scratch_buffer is for operators while the model is invoked; now it is prep"
    ):
        with_kernel(prepare=lambda ctx: ctx.micro.get_scratch_buffer(0)).allocate_tensors()


def test_too_many_scratch_requests_name_the_operator() -> None:
    def prepare(ctx: MicroPrepareContext) -> None:
        for _ in range(13):
            ctx.scratch(4)

    with pytest.raises(ArenaError, match=r"Mine \(node 0, .*Scratch buffer request exceeds limit per operator \(12\)"):
        with_kernel(prepare=prepare).allocate_tensors()


def test_an_operator_reaches_memory_through_the_context_alone() -> None:
    def prepare(ctx: MicroPrepareContext) -> Any:
        kept = ctx.persistent(16)
        kept[...] = 7
        looked_at = ctx.micro.get_tensor(ctx.node.inputs[0])
        assert looked_at.tensor.shape == (4,)
        ctx.micro.deallocate_tensor(looked_at)
        return kept, ctx.scratch(16)

    def reference(ctx: MicroInvokeContext) -> Any:
        kept, number = ctx.data
        work = ctx.micro.get_scratch_buffer(number).view(np.float32)
        work[...] = ctx.value(0) + kept[:4]
        context = ctx.micro.get_external_context()
        return work * context

    interpreter = with_kernel(prepare=prepare, reference=reference)
    interpreter.set_external_context(np.float32(2))
    interpreter.allocate_tensors()
    interpreter.input(0).store(np.ones(4, np.float32))
    interpreter.invoke()
    assert np.array_equal(interpreter.output(0).array(), np.full(4, 16, np.float32))
    with pytest.raises(InvokeError, match="an external context can be set once"):
        interpreter.set_external_context(3)


def test_an_operator_that_keeps_temporary_memory() -> None:
    with pytest.raises(ArenaError, match=r"Mine \(node 0.*All temp buffers must be freed"):
        with_kernel(prepare=lambda ctx: ctx.micro.allocate_temp_buffer(8, 8)).allocate_tensors()


def test_a_kernel_that_trips_says_which_it_is() -> None:
    interpreter = with_kernel(reference=lambda ctx: [][1])
    interpreter.allocate_tensors()
    with pytest.raises(InvokeError, match=r"Mine \(node 0, output \"y\"\): IndexError"):
        interpreter.invoke()


def test_a_kernel_that_answers_in_another_shape() -> None:
    interpreter = with_kernel(reference=lambda ctx: np.zeros(5, np.float32))
    interpreter.allocate_tensors()
    with pytest.raises(InvokeError, match=r"output 0 has shape \[4\], got \[5\]"):
        interpreter.invoke()


def test_versions_are_ignored() -> None:
    make = ModelMaker()
    x, y = make.tensor((4,)), make.tensor((4,))
    make.op("ABS", [x], [y], version=77)
    make.io([x], [y])
    interpreter = ready(make.model())
    interpreter.input(0).store(np.full(4, -2, np.float32))
    interpreter.invoke()
    assert interpreter.output(0).array().tolist() == [2, 2, 2, 2]


def test_an_operator_that_is_not_registered() -> None:
    resolver = MicroMutableOpResolver(1, ["MUL"])
    with pytest.raises(UnsupportedOpError, match=r"Didn't find op for opcode 'ADD'\. register it: .*AddAdd\(\)"):
        ready(adder(), resolver=resolver)
    with pytest.raises(UnsupportedOpError, match=r"'Mine'\. TFLite Micro has no such operator"):
        ready(custom_model())


def test_a_builtin_operator_with_custom_options() -> None:
    make = ModelMaker()
    x, y = make.tensor((4,)), make.tensor((4,))
    make.op("ABS", [x], [y], custom_options=b"\x01")
    make.io([x], [y])
    with pytest.raises(ModelError, match="Unsupported behavior: found builtin operator ABS with custom options"):
        ready(make.model())


def _model_of_mine(shape: tuple[int, ...]) -> bytes:
    make = ModelMaker()
    x, y = make.tensor((6,)), make.tensor(shape)
    make.op("Mine", [x], [y], custom=True)
    make.io([x], [y])
    return make.model()


def test_dynamic_shapes() -> None:
    resolver = MicroMutableOpResolver(1, [MicroKernel("Mine", op=custom_op(), custom=True)])
    with pytest.raises(PrepareError, match=r"Op#0 \(Mine\) of subgraph 0 has dynamic tensor #1 of shape \[2, 0\]"):
        ready(_model_of_mine((2, 0)), resolver=resolver)
    with pytest.raises(ModelError, match="negative dimension"):
        ready(_model_of_mine((-1, 3)), resolver=resolver)


def test_a_string_tensor() -> None:
    make = ModelMaker()
    x, y = make.tensor((1,), TensorType.STRING), make.tensor((1,), TensorType.STRING)
    make.op("RESHAPE", [x], [y])
    make.io([x], [y])
    with pytest.raises(ModelError, match="TFLite Micro has no type string"):
        ready(make.model())


def test_operands_out_of_range() -> None:
    interpreter = ready(adder())
    with pytest.raises(InvokeError, match=r"Input index 1 out of range \(length is 1\)"):
        interpreter.input(1)
    with pytest.raises(InvokeError, match=r"Output index 2 out of range \(length is 1\)"):
        interpreter.output(2)
    with pytest.raises(InvokeError, match="there are no tensors yet"):
        MicroInterpreter(adder(), arena=4096).input(0)


def test_all_tensors_can_be_kept() -> None:
    interpreter = ready(adder(), arena=16384, preserve_all_tensors=True)
    interpreter.input(0).store(np.ones((2, 3), np.float32))
    interpreter.invoke()
    assert np.array_equal(interpreter.tensor(2).array(), np.full((2, 3), 2, np.float32))
    with pytest.raises(InvokeError, match="GetTensor requires all tensors to be preserved"):
        ready(adder()).tensor(2)


def test_a_profiler_sees_every_operator() -> None:
    profiler = MicroProfiler()
    ready(chooser(), profiler=profiler).invoke()
    assert [event.tag for event in profiler.events] == ["IF", "FULLY_CONNECTED"]


def counter() -> bytes:
    """A resource variable that CALL_ONCE sets to 10 and each invocation adds x to."""
    make = ModelMaker()
    x, y = make.tensor((1,), name="x"), make.tensor((1,), name="y")
    handle = make.tensor((1,), TensorType.RESOURCE, name="handle")
    old = make.tensor((1,), name="old")
    make.op("CALL_ONCE", [], [], CallOnceOptions(init_subgraph_index=1))
    make.op("VAR_HANDLE", [], [handle], VarHandleOptions(shared_name="count"))
    make.op("READ_VARIABLE", [handle], [old], ReadVariableOptions())
    make.op("ADD", [old, x], [y])
    make.op("ASSIGN_VARIABLE", [handle, y], [], AssignVariableOptions())
    make.io([x], [y])
    make.subgraph("init")
    ten = make.constant([10.0], np.float32, TensorType.FLOAT32)
    handle = make.tensor((1,), TensorType.RESOURCE)
    make.op("VAR_HANDLE", [], [handle], VarHandleOptions(shared_name="count"))
    make.op("ASSIGN_VARIABLE", [handle, ten], [], AssignVariableOptions())
    make.io([], [])
    return make.model()


def _step(interpreter: MicroInterpreter, x: float) -> float:
    interpreter.input(0).store(np.array([x], np.float32))
    interpreter.invoke()
    return float(interpreter.output(0).array()[0])


def test_a_resource_variable_keeps_its_value() -> None:
    interpreter = ready(counter(), resource_variables=1)
    assert [_step(interpreter, x) for x in (1, 2, 3)] == [11, 13, 16]
    interpreter.reset()
    # As on the device, CALL_ONCE does not run again: the variable begins with its default.
    assert _step(interpreter, 1) == 1


def test_resource_variables_must_have_room() -> None:
    with pytest.raises(PrepareError, match=r"VAR_HANDLE .*requires resource variables"):
        ready(counter())
    allocator = MicroAllocator(8192)
    table = MicroResourceVariables(allocator, 0)
    with pytest.raises(PrepareError, match=r"Maximum resource variable count \(0\) reached"):
        ready(counter(), arena=allocator, resource_variables=table)
