"""Delegates on a graph: what is replaced, logged, restored, refused, undone and done again."""

from __future__ import annotations

import gc
import logging

import numpy as np
import pytest

import gossamer
from gossamer import Delegate, DelegateError, DelegateFlags, DelegateKernel
from gossamer.delegates.delegate import NodeInfo, Partition, PartitionInvokeContext, PartitionPrepareContext
from gossamer.delegates.null import NullDelegate
from gossamer.delegates.recording import RecordingDelegate
from gossamer.model import read_model
from gossamer.model.control_dependencies import CONTROL_DEPENDENCIES, encode
from gossamer.model.metadata import with_metadata
from gossamer.model.writer import write_model
from gossamer.runtime.graph import RunningGraph
from gossamer.runtime.node import Node
from gossamer.schema import CallOnceOptions, IfOptions, TensorType, WhileOptions
from tests.delegates.graphs import FLOAT, Interpreter, chain, sine_model, sine_of
from tests.runtime.graphs import ModelMaker

X = np.array([0.5, 1, 2], np.float32)
RESTORED = "Restored original execution plan after delegate application failure."


def run(interpreter: Interpreter, x: np.ndarray = X) -> np.ndarray:
    interpreter.set_tensor(0, x)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


def plan_of(interpreter: Interpreter, subgraph: int = 0) -> list[int]:
    return interpreter._subgraphs[subgraph].execution_plan


def dynamic_model() -> bytes:
    """y = x reshaped to a shape that is an input: only its value tells how large y is."""
    make = ModelMaker()
    x, shape = make.tensor((4,), name="x"), make.tensor((1,), TensorType.INT32, name="shape")
    sine, y = make.tensor((4,), name="sine"), make.tensor((4,), name="y")
    make.op("SIN", [x], [sine])
    make.op("RESHAPE", [sine, shape], [y])
    make.io([x, shape], [y])
    return make.model()


def run_dynamic(interpreter: Interpreter) -> np.ndarray:
    interpreter.set_tensor(1, np.array([4], np.int32))
    return run(interpreter, np.arange(4, dtype=np.float32))


def test_the_nodes_of_a_partition_are_replaced_by_one(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "gossamer")
    delegate = RecordingDelegate("SIN")
    interpreter = Interpreter(model_content=sine_model(), experimental_delegates=[delegate])
    assert caplog.messages == [
        "Replacing 2 out of 5 node(s) with delegate (recording) node, yielding 4 partitions for subgraph 0 (main)."
    ]
    assert plan_of(interpreter) == [5, 1, 2, 6, 4]
    first, second = interpreter._get_ops_details()[5:]
    assert first["op_name"] == second["op_name"] == "DELEGATE"
    assert [*first["inputs"], *first["outputs"], *second["inputs"], *second["outputs"]] == [0, 2, 4, 5]
    np.testing.assert_array_equal(run(interpreter), sine_of(X))
    assert delegate.stages() == [
        "create_kernel", "init", "create_kernel", "init", "prepare", "prepare", "invoke", "invoke",
    ]  # fmt: skip
    del interpreter
    gc.collect()
    assert delegate.stages()[-2:] == ["free", "free"]


def test_a_static_delegate_allocates_when_it_is_applied() -> None:
    interpreter = Interpreter(model_content=sine_model(), experimental_delegates=[NullDelegate()])
    np.testing.assert_array_equal(run(interpreter), sine_of(X))
    dynamic = NullDelegate(flags=DelegateFlags.ALLOW_DYNAMIC_TENSORS)
    interpreter = Interpreter(model_content=sine_model(), experimental_delegates=[dynamic])
    with pytest.raises(RuntimeError, match="not ready"):
        interpreter.invoke()


def test_inner_tensors_take_no_memory() -> None:
    interpreter = Interpreter(model_content=sine_model(), experimental_delegates=[NullDelegate("ADD,MUL,SIN")])
    assert set(interpreter.memory_plan().offsets) == {0, 6}
    assert interpreter.memory_plan().size == 64 + 12
    run(interpreter)
    with pytest.raises(ValueError, match="Tensor data is null"):
        interpreter.get_tensor(3)
    plain = Interpreter(model_content=sine_model())
    plain.allocate_tensors()
    assert plain.memory_plan().size > 64 + 12


def test_applying_to_an_interpreter_that_has_run() -> None:
    interpreter = Interpreter(model_content=sine_model())
    interpreter.allocate_tensors()
    np.testing.assert_array_equal(run(interpreter), sine_of(X))
    assert interpreter.modify_graph_with_delegate(NullDelegate("SIN"))
    assert plan_of(interpreter) == [5, 1, 2, 6, 4]
    np.testing.assert_array_equal(run(interpreter), sine_of(X))


class Hesitant(NullDelegate):
    """Gives up the last node of every partition that has more than two."""

    def __init__(self) -> None:
        super().__init__("ADD,MUL,SIN")
        self.seen: list[tuple[int, ...]] = []

    def review(self, partition: Partition) -> dict[int, str]:
        self.seen.append(partition.node_numbers)
        assert partition.node_numbers == tuple(node.node_index for node in partition.nodes)
        return {} if len(partition.nodes) < 3 else {partition.node_numbers[-1]: "too many", 99: "unheard of"}


def test_claims_are_reviewed_until_there_are_no_objections() -> None:
    interpreter, delegate = Interpreter(model_content=chain("SIN", "SIN", "SIN", "SIN", "SIN")), Hesitant()
    expected = run(interpreter_of(chain("SIN", "SIN", "SIN", "SIN", "SIN")), np.arange(4, dtype=np.float32))
    preview = interpreter.preview_delegate(delegate)
    assert delegate.seen == [(0, 1, 2, 3, 4), (0, 1, 2, 3), (0, 1, 2), (0, 1)]
    assert preview.refusals == {2: "too many", 3: "too many", 4: "too many"}
    assert interpreter.modify_graph_with_delegate(delegate)
    assert interpreter.delegate_claims() == [preview]
    assert plan_of(interpreter) == [5, 2, 3, 4]
    np.testing.assert_array_equal(run(interpreter, np.arange(4, dtype=np.float32)), expected)


def interpreter_of(model: bytes) -> Interpreter:
    interpreter = Interpreter(model_content=model)
    interpreter.allocate_tensors()
    return interpreter


def test_preview_changes_nothing() -> None:
    interpreter = Interpreter(model_content=sine_model())
    delegate = RecordingDelegate("SIN")
    claims = interpreter.preview_delegate(delegate)
    assert [subset.nodes for subset in claims.subsets] == [(0,), (1, 2), (3,), (4,)]
    assert [subset.nodes for subset in claims.partitions] == [(0,), (3,)]
    assert claims.refusals == {1: "only SIN", 2: "only SIN", 4: "only SIN"}
    assert plan_of(interpreter) == [0, 1, 2, 3, 4]
    assert delegate.stages() == []
    assert interpreter.delegate_claims() == []
    interpreter.modify_graph_with_delegate(delegate)
    assert interpreter.delegate_claims() == [claims]


def test_preview_of_a_static_delegate_on_a_dynamic_graph() -> None:
    claims = Interpreter(model_content=dynamic_model()).preview_delegate(NullDelegate())
    assert claims.partitions == ()
    assert set(claims.refusals) == {0, 1}
    assert "tensor#3 is a dynamic-sized tensor" in claims.refusals[0]


def test_limits() -> None:
    model = chain("SIN", "NEG", "SIN", "SIN", "NEG", "SIN")
    for settings, nodes in (
        ({}, [(0,), (2, 3), (5,)]),
        ({"max_delegated_partitions": 1}, [(2, 3)]),
        ({"max_delegated_partitions": 2}, [(0,), (2, 3)]),
        ({"min_nodes_per_partition": 2}, [(2, 3)]),
        ({"min_nodes_per_partition": 3}, []),
    ):
        interpreter = Interpreter(model_content=model, experimental_delegates=[NullDelegate("SIN", **settings)])
        assert [subset.nodes for subset in interpreter.delegate_claims()[0].partitions] == nodes
    assert interpreter.delegate_claims()[0].refusals[2] == (
        "its partition has 2 nodes, fewer than min_nodes_per_partition, which is 3"
    )
    preview = Interpreter(model_content=model).preview_delegate(NullDelegate("SIN", max_delegated_partitions=1))
    assert preview.refusals[5] == "its partition is not among the largest: max_delegated_partitions is 1"


def test_a_version_above_the_highest_is_refused() -> None:
    class Old(NullDelegate):
        name = "old"
        max_versions = {"ADD": 0, "SIN": 1}  # noqa: RUF012 - as a user writes it

    claims = Interpreter(model_content=sine_model()).preview_delegate(Old())
    assert claims.refusals == dict.fromkeys((1, 4), "ADD version 1 is above 0, the highest that old supports")


@pytest.mark.parametrize("answer", [False, 0])
def test_a_bare_no(answer) -> None:
    claims = Interpreter(model_content=sine_model()).preview_delegate(NullDelegate(lambda node: answer))
    assert set(claims.refusals.values()) == {"no reason given"}


FAILURES = {
    "is_node_supported": "recording: RuntimeError: told to fail at is_node_supported",
    "create_kernel": "recording (node 5 for nodes 0): RuntimeError: told to fail at create_kernel\n"
    "Failed to initialize kernel.",
    "init": "recording (node 5 for nodes 0): RuntimeError: told to fail at init\nFailed to initialize kernel.",
    "prepare": "recording (node 5 for nodes 0): RuntimeError: told to fail at prepare\n"
    "Node number 5 (recording) failed to prepare.",
}


@pytest.mark.parametrize("stage", FAILURES)
def test_failure_restores_the_plan_and_the_interpreter_runs(stage: str) -> None:
    interpreter = Interpreter(model_content=sine_model())
    delegate = RecordingDelegate("SIN", fail_at=stage)
    with pytest.raises(DelegateError) as error:
        interpreter.modify_graph_with_delegate(delegate)
    assert str(error.value) == f"{FAILURES[stage]}\n{RESTORED}"
    assert plan_of(interpreter) == [0, 1, 2, 3, 4]
    assert len(interpreter._get_ops_details()) == 5
    assert interpreter.delegate_claims() == []
    np.testing.assert_array_equal(run(interpreter), sine_of(X))
    assert delegate.stages().count("free") == (2 if stage == "prepare" else 0)
    delegate.fail_at = ""
    assert interpreter.modify_graph_with_delegate(delegate)
    np.testing.assert_array_equal(run(interpreter), sine_of(X))


def test_failure_of_the_second_kernel_frees_the_first() -> None:
    class Second(RecordingDelegate):
        def create_kernel(self, partition: Partition) -> DelegateKernel:
            if partition.nodes[0].node_index == 3:
                self.fail_at = "init"
            return super().create_kernel(partition)

    delegate = Second("SIN")
    with pytest.raises(RuntimeError, match=r"recording \(node 6 for nodes 3\): RuntimeError: told to fail at init"):
        Interpreter(model_content=sine_model(), experimental_delegates=[delegate])
    assert delegate.stages() == ["create_kernel", "init", "create_kernel", "init", "free"]
    assert delegate.calls[-1].about == (0,)


def test_failure_takes_earlier_delegates_off_too() -> None:
    first, second = RecordingDelegate("SIN"), RecordingDelegate("ADD", fail_at="init")
    interpreter = Interpreter(model_content=sine_model(), experimental_delegates=[first])
    with pytest.raises(DelegateError, match=RESTORED):
        interpreter.modify_graph_with_delegate(second)
    assert plan_of(interpreter) == [0, 1, 2, 3, 4]
    assert first.stages().count("free") == 2
    np.testing.assert_array_equal(run(interpreter), sine_of(X))


def test_failure_when_the_model_runs() -> None:
    delegate = RecordingDelegate("SIN", fail_at="invoke")
    interpreter = Interpreter(model_content=sine_model(), experimental_delegates=[delegate])
    with pytest.raises(gossamer.InvokeError) as error:
        run(interpreter)
    assert str(error.value) == (
        "recording (node 5 for nodes 0): RuntimeError: told to fail at invoke\n"
        "Node number 5 (recording) failed to invoke."
    )
    delegate.fail_at = ""
    np.testing.assert_array_equal(run(interpreter), sine_of(X))


def test_failure_to_free_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    delegate = RecordingDelegate("SIN", fail_at="free")
    interpreter = Interpreter(model_content=sine_model(), experimental_delegates=[delegate])
    interpreter.resize_tensor_input(0, [2])
    assert caplog.messages == ["recording failed to free a kernel: told to fail at free"] * 2
    delegate.fail_at = ""
    interpreter.allocate_tensors()
    np.testing.assert_array_equal(run(interpreter, X[:2]), sine_of(X[:2]))


def test_a_static_delegate_is_refused_on_a_dynamic_graph(caplog: pytest.LogCaptureFixture) -> None:
    delegate = RecordingDelegate("SIN")
    interpreter = Interpreter(model_content=dynamic_model(), experimental_delegates=[delegate])
    assert caplog.messages == [
        "Attempting to use a delegate that only supports static-sized tensors with a graph that has dynamic-sized "
        "tensors (tensor#3 is a dynamic-sized tensor)."
    ]
    assert delegate.calls == []
    assert not interpreter.modify_graph_with_delegate(delegate)
    np.testing.assert_array_equal(run_dynamic(interpreter), np.sin(np.arange(4, dtype=np.float32)))


@pytest.mark.parametrize("flags", [1, 1 | 2])
@pytest.mark.parametrize("claim", ["", "SIN", "RESHAPE"])
def test_a_delegate_that_allows_dynamic_tensors(flags: int, claim: str) -> None:
    interpreter = Interpreter(model_content=dynamic_model(), experimental_delegates=[NullDelegate(claim, flags=flags)])
    interpreter.allocate_tensors()
    want = np.sin(np.arange(4, dtype=np.float32))
    np.testing.assert_array_equal(run_dynamic(interpreter), want)
    interpreter.set_tensor(1, np.array([-1], np.int32))
    np.testing.assert_array_equal(run(interpreter, np.arange(4, dtype=np.float32)), want)


def test_shapes_that_change_inside_a_partition() -> None:
    make = ModelMaker()
    x, shape = make.tensor((4,)), make.tensor((2,), TensorType.INT32)
    wide, sine, y = make.tensor((2, 2)), make.tensor((2, 2)), make.tensor((2, 2))
    make.op("RESHAPE", [x, shape], [wide])
    make.op("SIN", [wide], [sine])
    make.op("NEG", [sine], [y])
    make.io([x, shape], [y])
    delegate = RecordingDelegate(flags=1)
    interpreter = Interpreter(model_content=make.model(), experimental_delegates=[delegate])
    interpreter.allocate_tensors()
    assert len(plan_of(interpreter)) == 1
    values = np.arange(4, dtype=np.float32)
    for size in ((2, 2), (1, 4), (4, 1), (2, 2)):
        interpreter.set_tensor(shape, np.array(size, np.int32))
        np.testing.assert_array_equal(run(interpreter, values), -np.sin(values).reshape(size))


def test_resize_undoes_and_allocation_redoes(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "gossamer")
    delegate = RecordingDelegate("SIN")
    interpreter = Interpreter(model_content=sine_model(), experimental_delegates=[delegate])
    interpreter.resize_tensor_input(0, [3])  # nothing changes
    assert plan_of(interpreter) == [5, 1, 2, 6, 4]
    interpreter.resize_tensor_input(0, [2])
    assert plan_of(interpreter) == [0, 1, 2, 3, 4]
    assert delegate.stages()[-2:] == ["free", "free"]
    with pytest.raises(RuntimeError, match="not ready"):
        interpreter.invoke()
    interpreter.allocate_tensors()
    assert caplog.messages[1] == "Redoing 1 delegates."
    assert caplog.messages[2] == caplog.messages[0]
    assert plan_of(interpreter) == [5, 1, 2, 6, 4]
    np.testing.assert_array_equal(run(interpreter, X[:2]), sine_of(X[:2]))
    assert set(interpreter.memory_plan().offsets) == {0, 2, 3, 4, 5, 6}


def test_resize_does_not_undo_delegates_that_allow_it() -> None:
    delegate = RecordingDelegate("SIN", flags=1)
    interpreter = Interpreter(model_content=sine_model(), experimental_delegates=[delegate])
    interpreter.allocate_tensors()
    interpreter.resize_tensor_input(0, [2])
    interpreter.allocate_tensors()
    assert "free" not in delegate.stages()
    assert delegate.stages().count("prepare") == 4
    np.testing.assert_array_equal(run(interpreter, X[:2]), sine_of(X[:2]))


def test_failure_when_redone() -> None:
    delegate = RecordingDelegate("SIN")
    interpreter = Interpreter(model_content=sine_model(), experimental_delegates=[delegate])
    delegate.fail_at = "prepare"
    interpreter.resize_tensor_input(0, [2])
    with pytest.raises(DelegateError, match=RESTORED):
        interpreter.allocate_tensors()
    interpreter.allocate_tensors()
    np.testing.assert_array_equal(run(interpreter, X[:2]), sine_of(X[:2]))


def test_shapes_that_no_operator_takes_leave_the_delegates_for_better_ones() -> None:
    make = ModelMaker()
    x, two, a, y = make.tensor((4,)), make.constant([1.0, 2, 3, 4], np.float32, FLOAT), *map(make.tensor, [(4,), (4,)])
    make.op("SIN", [x], [a])
    make.op("ADD", [a, two], [y])
    make.io([x], [y])
    delegates = [NullDelegate("SIN"), NullDelegate("ADD")]
    interpreter = Interpreter(model_content=make.model(), experimental_delegates=delegates)
    assert plan_of(interpreter) == [2, 3]
    interpreter.resize_tensor_input(0, [3])
    for _ in range(2):
        with pytest.raises(gossamer.PrepareError, match="ADD"):
            interpreter.allocate_tensors()
    interpreter.resize_tensor_input(0, [1])
    interpreter.allocate_tensors()
    assert plan_of(interpreter) == [2, 3]
    one = np.ones(1, np.float32)
    np.testing.assert_allclose(run(interpreter, one), np.sin(one) + [1, 2, 3, 4], rtol=1e-6)


def test_several_delegates_in_order() -> None:
    first, second = RecordingDelegate("SIN"), RecordingDelegate()
    interpreter = Interpreter(model_content=sine_model(), experimental_delegates=[first, second])
    claims = interpreter.delegate_claims()
    assert [subset.nodes for subset in claims[0].partitions] == [(0,), (3,)]
    assert [subset.nodes for subset in claims[1].partitions] == [(1, 2), (4,)]
    assert claims[1].refusals == dict.fromkeys((5, 6), "already delegated to recording")
    assert plan_of(interpreter) == [5, 7, 6, 8]
    np.testing.assert_array_equal(run(interpreter), sine_of(X))
    interpreter.resize_tensor_input(0, [1])
    interpreter.allocate_tensors()
    assert plan_of(interpreter) == [5, 7, 6, 8]
    np.testing.assert_array_equal(run(interpreter, X[:1]), sine_of(X[:1]))


def test_a_dynamic_delegate_after_a_static_one_may_not_make_shapes_dynamic() -> None:
    class Loose(NullDelegate):
        def create_kernel(self, partition: Partition) -> DelegateKernel:
            return LooseKernel()

    class LooseKernel(DelegateKernel):
        def prepare(self, ctx: PartitionPrepareContext) -> None:
            ctx.set_dynamic(ctx.outputs[0])

        def invoke(self, ctx: PartitionInvokeContext) -> None:
            raise AssertionError("never run")

    interpreter = Interpreter(model_content=sine_model(), experimental_delegates=[NullDelegate("SIN")])
    with pytest.raises(DelegateError, match="Cannot allow dynamic tensors due to previous delegation"):
        interpreter.modify_graph_with_delegate(Loose("ADD", flags=1))
    assert plan_of(interpreter) == [0, 1, 2, 3, 4]
    np.testing.assert_array_equal(run(interpreter), sine_of(X))


def test_without_clustering_fusion_or_intermediate_losses() -> None:
    model = sine_model()
    for settings, partitions in (
        ({}, [(0,), (3, 4)]),
        ({"experimental_disable_delegate_clustering": True}, [(0,), (3, 4)]),
        ({"experimental_disable_delegate_node_fusion": True}, [(0,), (3,), (4,)]),
        ({"experimental_preserve_all_tensors": True, "experimental_op_resolver_type": gossamer.OpResolverType(3)},
         [(0,), (3,), (4,)]),
    ):  # fmt: skip
        delegate = NullDelegate(lambda node: node.node_index in (0, 3, 4))
        interpreter = Interpreter(model_content=model, experimental_delegates=[delegate], **settings)
        assert [subset.nodes for subset in interpreter.delegate_claims()[0].partitions] == partitions
        np.testing.assert_array_equal(run(interpreter), sine_of(X))
    np.testing.assert_array_equal(interpreter.get_tensor(5), np.sin(np.float32(2) * X))


def test_clustering_moves_nodes_past_others() -> None:
    model = sine_model()
    delegate = NullDelegate("ADD,SIN")
    interpreter = Interpreter(model_content=model, experimental_delegates=[delegate])
    assert [subset.nodes for subset in interpreter.delegate_claims()[0].subsets] == [(0, 1), (2,), (3, 4)]
    make = ModelMaker()
    x, a, b, c, y = (make.tensor((3,)) for _ in range(5))
    make.op("SIN", [x], [a])
    make.op("NEG", [x], [b])
    make.op("SIN", [x], [c])
    make.op("ADD_N", [a, b, c], [y])
    make.io([x], [y])
    for clustering, plan in ((True, [(0, 2), (1, 3)]), (False, [(0,), (1,), (2,), (3,)])):
        made = Interpreter(
            model_content=make.model(),
            experimental_delegates=[NullDelegate("SIN")],
            experimental_disable_delegate_clustering=not clustering,
        )
        assert [subset.nodes for subset in made.delegate_claims()[0].subsets] == plan
        np.testing.assert_allclose(run(made), 2 * np.sin(X) - X, rtol=1e-6)


def branching_model() -> bytes:
    """if x[0] > 0 then sin(x) else -x, and a validation subgraph that nobody runs."""
    make = ModelMaker()
    flag, x, y = make.tensor((1,), TensorType.BOOL), make.tensor((3,)), make.tensor((3,))
    make.op("IF", [flag, x], [y], IfOptions(then_subgraph_index=1, else_subgraph_index=2))
    make.io([flag, x], [y])
    for index, (name, op) in enumerate((("then", "SIN"), ("else", "NEG"), ("VALIDATION:main", "SIN")), 1):
        assert make.subgraph(name) == index
        inner, result = make.tensor((3,)), make.tensor((3,))
        make.op(op, [inner], [result])
        make.io([inner], [result])
    return make.model()


def test_every_subgraph_but_validation_ones_is_delegated(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "gossamer")
    interpreter = Interpreter(model_content=branching_model(), experimental_delegates=[NullDelegate("SIN")])
    assert caplog.messages == [
        "Replacing 1 out of 1 node(s) with delegate (null) node, yielding 1 partitions for subgraph 1 (then).",
        "Skipping calling ModifyGraphWithDelegate on Subgraph 3: VALIDATION:main",
    ]
    assert [plan_of(interpreter, index) for index in range(4)] == [[0], [1], [0], [0]]
    for flag, want in ((True, np.sin(X)), (False, -X)):
        interpreter.set_tensor(0, np.array([flag]))
        interpreter.set_tensor(1, X)
        interpreter.invoke()
        np.testing.assert_array_equal(interpreter.get_tensor(2), want)


def test_failure_in_one_subgraph_restores_all() -> None:
    class Late(RecordingDelegate):
        def create_kernel(self, partition: Partition) -> DelegateKernel:
            if partition.subgraph_index == 2:
                self.fail_at = "init"
            return super().create_kernel(partition)

    interpreter = Interpreter(model_content=branching_model())
    with pytest.raises(DelegateError, match=RESTORED):
        interpreter.modify_graph_with_delegate(Late("SIN,NEG"))
    assert [plan_of(interpreter, index) for index in range(3)] == [[0], [0], [0]]


def test_a_delegated_control_flow_node_calls_its_subgraphs() -> None:
    interpreter = Interpreter(model_content=branching_model(), experimental_delegates=[NullDelegate()])
    interpreter.set_tensor(0, np.array([True]))
    interpreter.set_tensor(1, X)
    interpreter.invoke()
    np.testing.assert_array_equal(interpreter.get_tensor(2), np.sin(X))


def test_a_loop_whose_body_is_delegated() -> None:
    make = ModelMaker()
    count, x = make.tensor((1,), TensorType.INT32), make.tensor((3,))
    outputs = [make.tensor((1,), TensorType.INT32), make.tensor((3,))]
    make.op("WHILE", [count, x], outputs, WhileOptions(cond_subgraph_index=1, body_subgraph_index=2))
    make.io([count, x], outputs)
    make.subgraph("cond")
    inner, value, less = make.tensor((1,), TensorType.INT32), make.tensor((3,)), make.tensor((1,), TensorType.BOOL)
    three = make.constant([3], np.int32, TensorType.INT32)
    make.op("LESS", [inner, three], [less])
    make.io([inner, value], [less])
    make.subgraph("body")
    inner, value = make.tensor((1,), TensorType.INT32), make.tensor((3,))
    one = make.constant([1], np.int32, TensorType.INT32)
    after, sine, negative = make.tensor((1,), TensorType.INT32), make.tensor((3,)), make.tensor((3,))
    make.op("ADD", [inner, one], [after])
    make.op("SIN", [value], [sine])
    make.op("NEG", [sine], [negative])
    make.io([inner, value], [after, negative])
    interpreter = Interpreter(model_content=make.model(), experimental_delegates=[NullDelegate("SIN,NEG")])
    assert [plan_of(interpreter, index) for index in range(3)] == [[0], [0], [0, 3]]
    interpreter.set_tensor(count, np.array([0], np.int32))
    interpreter.set_tensor(x, X)
    interpreter.invoke()
    want = X
    for _ in range(3):
        want = -np.sin(want)
    np.testing.assert_array_equal(interpreter.get_tensor(outputs[1]), want)


def test_side_effects_keep_their_order_in_a_graph() -> None:
    make = ModelMaker()
    x, a, y = make.tensor((3,)), make.tensor((3,)), make.tensor((3,))
    make.op("CALL_ONCE", [], [], CallOnceOptions(init_subgraph_index=1))
    make.op("SIN", [x], [a])
    make.op("CALL_ONCE", [], [], CallOnceOptions(init_subgraph_index=1))
    make.op("NEG", [a], [y])
    make.op("CALL_ONCE", [], [], CallOnceOptions(init_subgraph_index=1))
    make.io([x], [y])
    make.subgraph("init")
    claims = Interpreter(model_content=make.model()).preview_delegate(
        NullDelegate(lambda node: node.node_index in (1, 2))
    )
    assert [subset.nodes for subset in claims.subsets] == [(0,), (1, 2), (3, 4)]


def independent(edges: list[tuple[int, int]]) -> bytes:
    """SIN, NEG, SIN of one input, and control dependencies between them."""
    make = ModelMaker()
    x, a, b, c = (make.tensor((3,)) for _ in range(4))
    for op, output in (("SIN", a), ("NEG", b), ("SIN", c)):
        make.op(op, [x], [output])
    make.io([x], [a, b, c])
    model = with_metadata(read_model(make.model()), CONTROL_DEPENDENCIES, encode([edges]))
    return bytes(write_model(model))


def test_control_dependencies_of_the_file_are_kept() -> None:
    for edges, subsets in (([], [(0, 2), (1,)]), ([(1, 2)], [(0,), (1,), (2,)]), ([(0, 1)], [(0, 2), (1,)])):
        preview = Interpreter(model_content=independent(edges)).preview_delegate(NullDelegate("SIN"))
        assert [subset.nodes for subset in preview.subsets] == subsets
    # What is in a partition hands its dependencies on to the node in its place.
    interpreter = Interpreter(
        model_content=independent([(0, 1), (0, 2)]), experimental_delegates=[NullDelegate("SIN"), NullDelegate("NEG")]
    )
    assert plan_of(interpreter) == [3, 4]
    with pytest.raises(RuntimeError, match=r"control dependency \(1, 7\) is between nodes that do not exist"):
        Interpreter(model_content=independent([(1, 7)]), experimental_delegates=[NullDelegate("SIN")])


class Names:
    """A recorder of the names of nodes."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.depth = 0

    def begin(self, graph: RunningGraph, node: Node | None) -> None:
        self.depth += 1
        if node is not None:
            self.names.append(node.op.name)

    def end(self) -> None:
        self.depth -= 1


def test_profilers_see_kernels_or_what_they_run() -> None:
    def seen(flags: int, **arguments: bool) -> list[str]:
        interpreter = Interpreter(
            model_content=sine_model(), experimental_delegates=[NullDelegate("SIN", flags=flags)], **arguments
        )
        interpreter._engine.recorder = recorder = Names()
        interpreter._subgraphs[0].invoke()
        assert recorder.depth == 0
        return recorder.names

    profiling = DelegateFlags.PER_OPERATOR_PROFILING
    assert seen(0) == ["DELEGATE", "ADD", "MUL", "DELEGATE", "ADD"]
    assert seen(profiling) == ["SIN", "ADD", "MUL", "SIN", "ADD"]
    assert seen(profiling, experimental_force_delegate_node_profiling=True) == [
        "DELEGATE", "SIN", "ADD", "MUL", "DELEGATE", "SIN", "ADD",
    ]  # fmt: skip


class CustomDelegate(Delegate):
    """Knows an operator that nobody registered."""

    name = "custom"

    def is_node_supported(self, node: NodeInfo) -> bool | str:
        return node.op.name == "MyOp" or "only MyOp"

    def create_kernel(self, partition: Partition) -> DelegateKernel:
        return CustomKernel()


class CustomKernel(DelegateKernel):
    def invoke(self, ctx: PartitionInvokeContext) -> None:
        for node in ctx.nodes:
            ctx.set_value(node.output(), ctx.value(node.input(0)) + np.float32(1))


@pytest.mark.parametrize("first", [None, NullDelegate("SIN")])
def test_a_custom_operator_that_only_a_delegate_has(first: Delegate | None) -> None:
    make = ModelMaker()
    x, a, b, y = (make.tensor((3,)) for _ in range(4))
    make.op("SIN", [x], [a])
    make.op("MyOp", [a], [b], custom=True)
    make.op("NEG", [b], [y])
    make.io([x], [y])
    interpreter = Interpreter(model_content=make.model())
    with pytest.raises(RuntimeError, match="Encountered unresolved custom op: MyOp"):
        interpreter.allocate_tensors()
    delegates = [delegate for delegate in (first, CustomDelegate()) if delegate]
    interpreter = Interpreter(model_content=make.model(), experimental_delegates=delegates)
    np.testing.assert_array_equal(run(interpreter), -(np.sin(X) + np.float32(1)))


def test_what_is_no_delegate_is_turned_down() -> None:
    class Native:
        def _get_native_delegate_pointer(self) -> int:
            return 0

    for what, got in ((object(), "a object"), (Native(), "a C\\+\\+ delegate for LiteRT's own runtime")):
        with pytest.raises(ValueError, match=f"experimental_delegates takes instances of gossamer.Delegate, got {got}"):
            Interpreter(model_content=sine_model(), experimental_delegates=[what])
        with pytest.raises(ValueError, match=f"modify_graph_with_delegate takes .*got {got}"):
            Interpreter(model_content=sine_model()).modify_graph_with_delegate(what)


def test_a_held_view_forbids_it() -> None:
    interpreter = Interpreter(model_content=sine_model())
    interpreter.allocate_tensors()
    view = interpreter.tensor(0)()
    with pytest.raises(RuntimeError, match="There is at least 1 reference to internal data"):
        interpreter.modify_graph_with_delegate(NullDelegate())
    del view


def test_a_graph_that_is_broken_says_so() -> None:
    make = ModelMaker()
    x, y = make.tensor((1,)), make.tensor((1,))
    make.op("RELU", [77], [y])
    make.io([x], [y])
    with pytest.raises(RuntimeError, match=r"AllocateTensors\(\) called on inconsistent model"):
        Interpreter(model_content=make.model(), experimental_delegates=[NullDelegate()])


def test_variables_live_across_invocations_of_a_partition() -> None:
    make = ModelMaker()
    x, y = make.tensor((1, 2)), make.tensor((1, 2))
    features = make.constant([[1.0, 0], [0, 1]], np.float32, FLOAT)
    recurrent = make.constant([[0.5, 0], [0, 0.5]], np.float32, FLOAT)
    bias = make.constant([0.0, 0], np.float32, FLOAT)
    state = make.tensor((1, 2), is_variable=True)
    make.op("RNN", [x, features, recurrent, bias, state], [y])
    make.io([x], [y])
    plain = Interpreter(model_content=make.model())
    plain.allocate_tensors()
    delegated = Interpreter(model_content=make.model(), experimental_delegates=[NullDelegate()])
    for _ in range(3):
        ones = np.ones((1, 2), np.float32)
        np.testing.assert_array_equal(run(delegated, ones), run(plain, ones))
    delegated.reset_all_variables()
    plain.reset_all_variables()
    np.testing.assert_array_equal(run(delegated, ones), run(plain, ones))
