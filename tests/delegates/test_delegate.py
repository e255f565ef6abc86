"""What kernels may and may not do, and how delegates are found by name."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import gossamer
from gossamer import Delegate, DelegateFlags, DelegateKernel
from gossamer.delegates import load_delegate
from gossamer.delegates.delegate import NodeInfo, Partition, PartitionInvokeContext, PartitionPrepareContext
from gossamer.delegates.null import NullDelegate
from gossamer.delegates.recording import RecordingDelegate
from gossamer.schema import AddOptions
from tests.delegates.graphs import Interpreter, chain, sine_model, sine_of

X = np.array([0.5, 1, 2], np.float32)


class Scripted(Delegate):
    """A delegate whose kernel is two functions."""

    name = "scripted"

    def __init__(
        self,
        invoke: Callable[[PartitionInvokeContext], None],
        prepare: Callable[[PartitionPrepareContext], None] | None = None,
        claim: str = "SIN",
        flags: DelegateFlags = DelegateFlags.NONE,
    ) -> None:
        self.invoke, self.prepare, self.claim, self.flags = invoke, prepare, claim, flags

    def is_node_supported(self, node: NodeInfo) -> bool | str:
        return node.op.name in self.claim.split(",") or f"only {self.claim}"

    def create_kernel(self, partition: Partition) -> DelegateKernel:
        return ScriptedKernel(self)


class ScriptedKernel(DelegateKernel):
    def __init__(self, script: Scripted) -> None:
        self.script = script

    def prepare(self, ctx: PartitionPrepareContext) -> None:
        if self.script.prepare is None:
            super().prepare(ctx)
        else:
            self.script.prepare(ctx)

    def invoke(self, ctx: PartitionInvokeContext) -> None:
        self.script.invoke(ctx)


def sines(ctx: PartitionInvokeContext) -> None:
    for node in ctx.nodes:
        ctx.set_value(node.output(), np.sin(ctx.value(node.input(0))))


def run(interpreter: Interpreter, x: np.ndarray = X) -> np.ndarray:
    interpreter.set_tensor(0, x)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


def test_flags_have_tflites_numbers() -> None:
    assert {flag.name: int(flag) for flag in DelegateFlags if flag} == {  # Python 3.10 counts NONE among them
        "ALLOW_DYNAMIC_TENSORS": 1,
        "REQUIRE_PROPAGATED_SHAPES": 2,
        "PER_OPERATOR_PROFILING": 4,
    }


def test_a_kernel_runs_all_nodes_of_its_partition() -> None:
    interpreter = Interpreter(model_content=chain("SIN", "SIN"), experimental_delegates=[Scripted(sines)])
    assert len(interpreter.delegate_claims()[0].partitions) == 1
    x = np.arange(4, dtype=np.float32)
    np.testing.assert_array_equal(run(interpreter, x), np.sin(np.sin(x)))


def test_a_kernel_may_mix_its_own_code_with_reference_kernels() -> None:
    def invoke(ctx: PartitionInvokeContext) -> None:
        for node in ctx.nodes:
            if node.op.name == "SIN":
                ctx.set_value(node.output(), np.sin(ctx.value(node.input(0))))
            else:
                ctx.run(node)

    delegate = Scripted(invoke, claim="SIN,ADD,MUL")
    interpreter = Interpreter(model_content=sine_model(), experimental_delegates=[delegate])
    np.testing.assert_array_equal(run(interpreter), sine_of(X))


def test_what_a_delegate_sees_of_a_node() -> None:
    seen: list[NodeInfo] = []

    class Looking(NullDelegate):
        def is_node_supported(self, node: NodeInfo) -> bool | str:
            seen.append(node)
            return False

    Interpreter(model_content=sine_model(), experimental_delegates=[Looking()])
    assert [node.op.name for node in seen] == ["SIN", "ADD", "MUL", "SIN", "ADD"]
    assert [node.node_index for node in seen] == [0, 1, 2, 3, 4]
    add, mul = seen[1], seen[2]
    assert add.version == 1
    assert add.options == AddOptions()
    assert [tensor.index for tensor in add.inputs if tensor] == [2, 0]
    assert add.output().shape == (3,)
    assert mul.constant(0) is None
    np.testing.assert_array_equal(mul.constant(1), [2])
    assert mul.input(1).is_constant


def test_what_a_kernel_sees_of_its_partition() -> None:
    seen: list[Partition] = []

    class Looking(NullDelegate):
        def create_kernel(self, partition: Partition) -> DelegateKernel:
            seen.append(partition)
            return super().create_kernel(partition)

    Interpreter(model_content=sine_model(), experimental_delegates=[Looking("ADD,MUL")])
    first, second = seen
    assert first.subgraph_index == 0
    assert [node.op.name for node in first.nodes] == ["ADD", "MUL"]
    assert [tensor.name for tensor in first.inputs] == ["x", "two", "a"]
    assert [tensor.name for tensor in first.outputs] == ["b", "c"]
    np.testing.assert_array_equal(first.nodes[1].constant(1), [2])
    assert [tensor.name for tensor in second.inputs] == ["b", "d"]


def test_prepare_sets_the_shapes_of_a_dynamic_delegate() -> None:
    def prepare(ctx: PartitionPrepareContext) -> None:
        for node in ctx.nodes:
            ctx.set_shape(node.output(), node.input(0).shape)

    delegate = Scripted(sines, prepare, flags=DelegateFlags.ALLOW_DYNAMIC_TENSORS)
    interpreter = Interpreter(model_content=chain("SIN", "SIN"), experimental_delegates=[delegate])
    interpreter.resize_tensor_input(0, [2])
    interpreter.allocate_tensors()
    np.testing.assert_array_equal(run(interpreter, X[:2]), np.sin(np.sin(X[:2])))


@pytest.mark.parametrize("says", [True, False], ids=["all shapes", "those of outputs"])
def test_what_a_kernel_has_set_is_there_when_it_runs_its_first_node(says: bool) -> None:
    def prepare(ctx: PartitionPrepareContext) -> None:
        for node in ctx.nodes if says else ctx.nodes[-1:]:
            ctx.set_shape(node.output(), ctx.inputs[0].shape)

    def invoke(ctx: PartitionInvokeContext) -> None:
        first, second = ctx.nodes
        ctx.set_value(first.output(), np.sin(ctx.value(first.input(0))))
        ctx.run(second)

    delegate = Scripted(invoke, prepare, flags=DelegateFlags.ALLOW_DYNAMIC_TENSORS)
    interpreter = Interpreter(model_content=chain("SIN", "SIN"), experimental_delegates=[delegate])
    for size in (4, 2) if says else (4,):
        interpreter.resize_tensor_input(0, [size])
        interpreter.allocate_tensors()
        x = np.arange(size, dtype=np.float32)
        np.testing.assert_array_equal(run(interpreter, x), np.sin(np.sin(x)))


@pytest.mark.parametrize("flags", [DelegateFlags(1), DelegateFlags(3)])
def test_shapes_are_propagated_if_the_delegate_requires_it(flags: DelegateFlags) -> None:
    shapes: list[tuple[int, ...]] = []

    def prepare(ctx: PartitionPrepareContext) -> None:
        shapes.extend(node.output().shape for node in ctx.nodes)
        ctx.prepare_nodes()

    interpreter = Interpreter(
        model_content=chain("SIN", "SIN"), experimental_delegates=[Scripted(sines, prepare, flags=flags)]
    )
    interpreter.resize_tensor_input(0, [2])
    interpreter.allocate_tensors()
    assert shapes == ([(2,), (2,)] if flags & DelegateFlags.REQUIRE_PROPAGATED_SHAPES else [(4,), (4,)])
    np.testing.assert_array_equal(run(interpreter, X[:2]), np.sin(np.sin(X[:2])))


def test_a_kernel_that_prepares_nothing_keeps_the_shapes_of_the_graph() -> None:
    delegate = Scripted(lambda ctx: [ctx.run(node) for node in ctx.nodes] and None, lambda ctx: None)
    interpreter = Interpreter(model_content=chain("SIN", "SIN"), experimental_delegates=[delegate])
    x = np.arange(4, dtype=np.float32)
    np.testing.assert_array_equal(run(interpreter, x), np.sin(np.sin(x)))


MISTAKES = {
    "forgets an output": (
        lambda ctx: None,
        'the kernel left output tensor 2 "a" without a value',
    ),
    "has another shape": (
        lambda ctx: ctx.set_value(ctx.outputs[0], np.zeros(2, np.float32)),
        'tensor 2 "a" has shape [3], the kernel returned [2]',
    ),
    "has another dtype": (
        lambda ctx: ctx.set_value(ctx.outputs[0], np.zeros(3)),
        'tensor 2 "a" is float32, the kernel returned float64',
    ),
    "writes what is not its own": (
        lambda ctx: ctx.set_value(ctx.inputs[0], np.zeros(3, np.float32)),
        'tensor 0 "x" is not written by this partition',
    ),
    "is stale without a handle": (
        lambda ctx: ctx.set_stale(ctx.outputs[0]),
        'tensor 2 "a" cannot be stale: it has no buffer handle',
    ),
    "reads before it writes": (
        lambda ctx: ctx.value(ctx.outputs[0]),
        'ValueError: tensor 2 "a" has no data',
    ),
    "sets a shape too late": (
        lambda ctx: ctx.set_shape(ctx.outputs[0], (3,)),
        "shapes are set in prepare, not later",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_of_kernels(mistake: str) -> None:
    invoke, message = MISTAKES[mistake]
    interpreter = Interpreter(model_content=sine_model(), experimental_delegates=[Scripted(invoke)])
    with pytest.raises(gossamer.InvokeError) as error:
        run(interpreter)
    assert str(error.value) == f"scripted (node 5 for nodes 0): {message}\nNode number 5 (scripted) failed to invoke."


def test_a_handle_inside_a_partition_is_a_mistake() -> None:
    def prepare(ctx: PartitionPrepareContext) -> None:
        ctx.set_buffer_handle(ctx.nodes[0].output(), 1)

    with pytest.raises(gossamer.DelegateError, match='tensor 1 "t1" is no input or output of this partition'):
        Interpreter(model_content=chain("SIN", "SIN"), experimental_delegates=[Scripted(sines, prepare)])


def test_nodes_that_cannot_be_prepared_by_anybody_are_left_to_the_kernel() -> None:
    from tests.runtime.graphs import ModelMaker

    make = ModelMaker()
    x, a, y = (make.tensor((3,)) for _ in range(3))
    make.op("SIN", [x], [a])
    make.op("MyOp", [a], [y], custom=True)
    make.io([x], [y])

    def invoke(ctx: PartitionInvokeContext) -> None:
        for node in ctx.nodes:
            ctx.run(node)

    interpreter = Interpreter(model_content=make.model(), experimental_delegates=[Scripted(invoke, claim="SIN,MyOp")])
    with pytest.raises(RuntimeError, match="Encountered unresolved custom op: MyOp"):
        interpreter.invoke()


def test_load_delegate_by_name() -> None:
    delegate = load_delegate("null", {"claim": "SIN", "flags": "1", "min_nodes_per_partition": "1"})
    assert isinstance(delegate, NullDelegate)
    assert delegate.flags == DelegateFlags.ALLOW_DYNAMIC_TENSORS
    assert delegate.min_nodes_per_partition == 1
    assert isinstance(load_delegate("recording"), RecordingDelegate)
    interpreter = Interpreter(model_content=sine_model(), experimental_delegates=[load_delegate("null")])
    np.testing.assert_array_equal(run(interpreter), sine_of(X))


def test_load_delegate_by_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    offered = [
        importlib.metadata.EntryPoint("mine", "gossamer.delegates.recording:RecordingDelegate", "gossamer.delegates"),
        importlib.metadata.EntryPoint("other", "builtins:dict", "gossamer.delegates"),
    ]
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: offered)
    assert isinstance(load_delegate("mine", {"fail_at": "init"}), RecordingDelegate)
    with pytest.raises(ValueError, match="Failed to load delegate from other\nIt made a dict, not a Delegate"):
        load_delegate("other")
    with pytest.raises(ValueError, match="there are jit, mine, null, other, recording"):
        load_delegate("others")


def test_load_delegate_errors(tmp_path: Path) -> None:
    library = tmp_path / "libdelegate.so"
    with pytest.raises(OSError, match="cannot open shared object file: No such file or directory"):
        load_delegate(str(library))
    library.write_bytes(b"\x7fELF")
    for name in (str(library), "libedgetpu.so.1", "edgetpu.dll", "libedgetpu.1.dylib"):
        with pytest.raises(ValueError, match="Failed to load delegate") as error:
            load_delegate(name)
        assert str(error.value) == (
            f"Failed to load delegate from {name}\nIt is a C shared library for TFLite's own runtime and cannot be "
            "loaded: this runtime is Python, and so are its delegates"
        )
    with pytest.raises(ValueError, match="Failed to load delegate from nul\nThere is no delegate of that name"):
        load_delegate("nul")
    with pytest.raises(
        ValueError, match=r"(?s)Failed to load delegate from null.*unexpected keyword argument 'colour'"
    ):
        load_delegate("null", {"colour": "red"})
    with pytest.raises(ValueError, match="Failed to load delegate from null\n"):
        load_delegate("null", {"flags": "x"})


def test_a_delegate_must_say_what_it_supports() -> None:
    with pytest.raises(TypeError, match="abstract"):
        Delegate()  # type: ignore[abstract]
    with pytest.raises(TypeError, match="abstract"):
        DelegateKernel()  # type: ignore[abstract]
