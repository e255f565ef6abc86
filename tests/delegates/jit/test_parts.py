"""What claiming has lowered is what is compiled: no operator's ``lower`` is called a second time for it."""

from __future__ import annotations

import gc
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gossamer import Interpreter, OpResolverType
from gossamer.codegen.build import BASIC, PASSES, Built, Passes, build
from gossamer.codegen.commands import AtHand, NotAtHand
from gossamer.codegen.graph import KernelGraph
from gossamer.delegates.delegate import NodeInfo
from gossamer.delegates.jit import compiling, lowering
from gossamer.delegates.jit.delegate import JitDelegate, JitKernel
from gossamer.delegates.jit.late import LateKernel
from gossamer.delegates.jit.lowered import Lowered
from gossamer.delegates.jit.parts import Part
from gossamer.schema import AddOptions, GatherOptions, TensorType, TransposeOptions
from gossamer.targets import Target
from tests.delegates.graphs import chain
from tests.delegates.jit.running import TARGETS, check
from tests.delegates.jit.test_control_flow import (
    COUNTER,
    Kind,
    affine,
    below,
    counting,
    floats,
    loop,
    number,
    refusals,
    start,
)
from tests.delegates.jit.test_delegate import X as V
from tests.delegates.jit.test_delegate import Y, byte_net, cold, flip, images, in_two_parts, mobile_net, outputs, run
from tests.ops.test_stablehlo_composite import composite
from tests.runtime.graphs import ModelMaker

__all__ = ["cold"]

pytestmark = pytest.mark.skipif(not TARGETS, reason="no machine code for this CPU")

REFERENCE = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES

Lowerings = list[tuple[int | None, int]]


@pytest.fixture
def lowered(monkeypatch: pytest.MonkeyPatch) -> Lowerings:
    """The nodes whose ``lower`` is called, each time: the subgraph if another node calls it, the number."""
    found: Lowerings = []

    class Counted(lowering.GraphLowering):
        def __init__(self, node: NodeInfo, into: Lowered) -> None:
            super().__init__(node, into)
            found.append((into.subgraph, node.node_index))

    monkeypatch.setattr(lowering, "GraphLowering", Counted)
    return found


def programs(interpreter: Interpreter) -> int:
    """How many partitions run as machine code: all."""
    found = interpreter.delegate_kernels()
    assert all(isinstance(kernel, JitKernel) and kernel.program is not None for kernel in found)
    return len(found)


def allocated(model: bytes, **settings: Any) -> Interpreter:
    interpreter = Interpreter(model_content=model, **settings)
    interpreter.allocate_tensors()
    return interpreter


def once(*numbers: int) -> Lowerings:
    return [(None, number) for number in numbers]


@pytest.mark.parametrize("model", [mobile_net(), byte_net()], ids=["float", "int8"])
def test_a_whole_model(lowered: Lowerings, model: bytes) -> None:
    interpreter = allocated(model)
    assert programs(interpreter) == 1
    (claims,) = interpreter.delegate_claims()
    assert lowered == once(*claims.partitions[0].nodes)
    assert not claims.refusals


def test_what_another_partition_computes_is_an_input(lowered: Lowerings) -> None:
    interpreter = allocated(in_two_parts(), custom_ops=[flip])
    assert programs(interpreter) == 2
    assert lowered == once(0, 2)
    for _ in range(2):
        np.testing.assert_array_equal(outputs(interpreter, V), Y)
    first, second = interpreter.delegate_kernels()
    assert first.program.plan.relocations.keys() == {"tensor0", "tensor1"}
    assert second.program.plan.relocations.keys() == {"tensor1", "tensor2", "tensor3"}


def test_what_is_seen_otherwise_elsewhere_is_lowered_again(lowered: Lowerings) -> None:
    """ADD reads a transposed matrix in place if they run together; a custom operator between them prevents that."""
    make = ModelMaker()
    x, b, c, y = make.tensor((4, 4)), make.tensor((4, 4)), make.tensor((4, 4)), make.tensor((4, 4))
    make.op("TRANSPOSE", [x, make.constant([1, 0], np.int32, TensorType.INT32)], [b], TransposeOptions())
    make.op("Flip", [b], [c], custom=True)
    make.op("ADD", [b, c], [y], AddOptions())
    make.io([x], [y])
    value = floats(4, 4)
    interpreter = allocated(make.model(), custom_ops=[flip])
    assert programs(interpreter) == 2
    assert lowered == once(0, 2, 2)
    np.testing.assert_array_equal(outputs(interpreter, value), value.T + value.T[::-1])


def test_what_does_not_depend_on_a_late_shape_does_not_wait_for_it(lowered: Lowerings) -> None:
    """Though it comes later in the plan."""
    make = ModelMaker()
    x, shape = make.tensor((4,)), make.tensor((2,), TensorType.INT32)
    a, b = make.tensor((2, 2)), make.tensor((4,))
    make.op("RESHAPE", [x, shape], [a])
    make.op("NEG", [x], [b])
    make.io([x, shape], [a, b])
    interpreter = allocated(make.model())
    interpreter.set_tensor(x, V)
    interpreter.set_tensor(shape, np.array([2, 2], np.int32))
    interpreter.invoke()
    np.testing.assert_array_equal(interpreter.get_tensor(b), -V)
    kernels = interpreter.delegate_kernels()
    assert [type(kernel) for kernel in kernels] == [JitKernel, LateKernel]
    assert lowered.count((None, 1)) == 1


@pytest.mark.parametrize("what", ["node_fusion", "clustering"])
def test_partitions_may_be_smaller(lowered: Lowerings, what: str) -> None:
    interpreter = allocated(byte_net(), **{f"experimental_disable_delegate_{what}": True})
    assert programs(interpreter) == (1 if what == "clustering" else len(lowered))
    assert len(lowered) == len(set(lowered))
    np.testing.assert_array_equal(outputs(interpreter, images(1)), run(byte_net(), images(1)))


def test_the_nodes_of_a_loop(lowered: Lowerings) -> None:
    x: Kind = ((3, 5), TensorType.FLOAT32)
    model = loop([COUNTER, x], below(7), counting(affine(x)))
    assert programs(allocated(model)) == 1
    assert sorted(lowered, key=str) == sorted([(None, 0), (1, 0), (2, 0), (2, 1), (2, 2)], key=str)
    check(model, start(0, floats(3, 5)), threads=[1])


def test_the_nodes_of_a_composite(lowered: Lowerings) -> None:
    assert programs(allocated(composite())) == 1
    assert len(lowered) == len(set(lowered)) > 1


def test_subgraphs_of_two_signatures(lowered: Lowerings) -> None:
    make = ModelMaker()
    for key, name in (("first", "ABS"), ("second", "NEG")):
        number = make.subgraph(key) if key == "second" else 0
        x, a, y = (make.tensor((4,), name=name) for name in "xay")
        make.op(name, [x], [a])
        make.op("RELU", [a], [y])
        make.io([x], [y])
        make.signature(key, {"x": x}, {"y": y}, number)
    interpreter = allocated(make.model())
    for key, expected in (("first", np.abs(V)), ("second", np.maximum(-V, 0))):
        np.testing.assert_array_equal(interpreter.get_signature_runner(key)(x=V)["y"], expected)
    assert lowered == once(0, 1, 0, 1)
    assert all(kernel.program for index in (0, 1) for kernel in interpreter.delegate_kernels(index))


def test_once_for_each_set_of_shapes(lowered: Lowerings) -> None:
    interpreter = allocated(mobile_net())
    for count, calls in ((1, 12), (3, 24), (1, 24), (3, 24)):
        interpreter.resize_tensor_input(0, [count, 16, 16, 3])
        interpreter.allocate_tensors()
        assert programs(interpreter) == 1
        assert len(lowered) == calls
        found = outputs(interpreter, images(count))
        expected = run_at(count)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


def run_at(count: int) -> np.ndarray:
    wanted = Interpreter(model_content=mobile_net(), experimental_op_resolver_type=REFERENCE)
    wanted.resize_tensor_input(0, [count, 16, 16, 3])
    wanted.allocate_tensors()
    return outputs(wanted, images(count))


def test_what_was_lowered_for_other_shapes_is_not_taken(lowered: Lowerings) -> None:
    interpreter = Interpreter(model_content=mobile_net(), experimental_delegates=[JitDelegate()])
    interpreter.resize_tensor_input(0, [2, 16, 16, 3])
    interpreter.allocate_tensors()
    assert programs(interpreter) == 1
    assert len(lowered) == 24
    np.testing.assert_allclose(outputs(interpreter, images(2)), run_at(2), rtol=1e-4, atol=1e-6)


def test_nor_if_the_claims_for_these_are_known(cold: Path, tmp_path: Path, lowered: Lowerings) -> None:
    path = tmp_path / "m.tflite"
    path.write_bytes(mobile_net())

    def interpreter(count: int) -> Interpreter:
        made = Interpreter(str(path), experimental_op_resolver_type=REFERENCE)
        made.resize_tensor_input(0, [count, 16, 16, 3])
        return made

    first = interpreter(2)
    first.modify_graph_with_delegate(JitDelegate())
    first.preview_delegate(JitDelegate())
    lowered.clear()
    delegate, second = JitDelegate(), interpreter(1)
    second.preview_delegate(delegate)
    assert len(lowered) == 12
    second.resize_tensor_input(0, [2, 16, 16, 3])
    second.modify_graph_with_delegate(delegate)
    second.allocate_tensors()
    assert programs(second) == 1
    np.testing.assert_allclose(outputs(second, images(2)), run_at(2), rtol=1e-4, atol=1e-6)


def test_nothing_of_it_stays() -> None:
    interpreter = allocated(mobile_net())
    assert programs(interpreter) == 1
    gc.collect()
    assert not [found for found in gc.get_objects() if type(found) in (Part, Lowered)]


def test_nothing_is_lowered_of_a_file_that_is_known(cold: Path, tmp_path: Path, lowered: Lowerings) -> None:
    path = tmp_path / "m.tflite"
    path.write_bytes(mobile_net())
    for expected in (12, 0):
        lowered.clear()
        interpreter = Interpreter(str(path))
        interpreter.allocate_tensors()
        assert programs(interpreter) == 1
        assert len(lowered) == expected


def test_without_a_compiler_passes_are_taken_away(
    cold: Path, monkeypatch: pytest.MonkeyPatch, lowered: Lowerings
) -> None:
    """Each attempt begins with the graph as it was lowered."""
    tried: list[Passes] = []

    def lacking(graph: KernelGraph, target: Target, model: Any, passes: Passes, at_hand: AtHand | None) -> Built:
        built = build(graph, target, model, passes, at_hand)
        tried.append(passes)
        if passes != BASIC:
            missing = NotAtHand("a kernel")
            missing.kind = "rows" if passes == PASSES else "copy"
            raise missing
        return built

    def of_basic_passes(graph: KernelGraph, source: memoryview | None, target: Target) -> compiling.Made:
        # Kernels of all attempts are at hand later.
        every, made = (compiling.built_of(graph.copied(), source, target, passes) for passes in (PASSES, BASIC))
        compiling.ensure([*every[0].specs.values(), *made[0].specs.values()], target)
        return made

    with monkeypatch.context() as patch:
        patch.setattr(compiling, "compiled_of", of_basic_passes)
        expected = run(mobile_net(), images(1))
    monkeypatch.setitem(sys.modules, "llvmlite", None)
    monkeypatch.setattr(compiling, "build", lacking)
    lowered.clear()
    interpreter = allocated(mobile_net())
    assert programs(interpreter) == 1
    assert tried == [PASSES, tried[1], BASIC]
    assert len(PASSES) > len(tried[1]) > len(BASIC)
    assert lowered == once(*range(12))
    assert outputs(interpreter, images(1)).tobytes() == expected.tobytes()


def test_without_a_compiler_nodes_are_left_out(cold: Path, monkeypatch: pytest.MonkeyPatch, lowered: Lowerings) -> None:
    for names in (("ABS", "NEG"), ("ABS",), ("NEG",)):
        run(chain(*names), V)
    monkeypatch.setitem(sys.modules, "llvmlite", None)
    lowered.clear()
    interpreter = allocated(chain("ABS", "SIN", "NEG"))
    assert programs(interpreter) == 2
    assert lowered == once(0, 1, 2)
    np.testing.assert_allclose(outputs(interpreter, V), -np.sin(np.abs(V)), rtol=1e-6)


def test_what_comes_behind_a_shape_that_only_the_run_tells_says_so() -> None:
    """GATHER is asked for itself, where a value that is looked at may tell its shape."""
    make = ModelMaker()
    x, ids = make.tensor([6, 3], TensorType.FLOAT32), make.tensor([6], TensorType.INT32)
    sums, doubled, rows = (make.tensor([size, 3], TensorType.FLOAT32) for size in (6, 6, 6))
    make.op("UNSORTED_SEGMENT_SUM", [x, ids, number(make, 6, TensorType.INT32)], [sums])
    make.op("ADD", [sums, sums], [doubled], AddOptions())
    make.op("GATHER", [doubled, ids], [rows], GatherOptions())
    make.io([x, ids], [rows])
    assert refusals(make.model())[0][2] == "it comes after a shape that is only known when the model runs"
