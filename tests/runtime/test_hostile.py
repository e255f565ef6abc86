"""Models and calls that contradict themselves: turned down in words that name the place, and nothing is left broken."""

from __future__ import annotations

import gc
import re
from typing import Any

import numpy as np
import pytest

from gossamer import Interpreter, InvokeError, MutableOpResolver, OpResolverType, PrepareError
from gossamer.ops.op_def import InvokeContext, OpDef, PrepareContext, Version
from gossamer.schema import (
    AddOptions,
    Buffer,
    CallOnceOptions,
    DimensionMetadata,
    DimensionType,
    FullyConnectedOptions,
    IfOptions,
    ReshapeOptions,
    SparsityParameters,
    SplitOptions,
    TensorType,
    Uint8Vector,
)
from tests.runtime.graphs import ModelMaker, adder


@pytest.mark.parametrize(
    "error", [ValueError("x"), TypeError("x"), IndexError("x"), KeyError("x"), ZeroDivisionError("x"), MemoryError("x")]
)
def test_a_kernel_that_trips_says_which_operator_it_is(error: Exception) -> None:
    op = OpDef("Trips", inputs=("x",), outputs=("y",), versions=(Version(1, ""),), custom=True)

    @op.prepare
    def prepare(ctx: PrepareContext) -> None:
        ctx.set_shape(0, ctx.input(0).shape)

    @op.reference
    def reference(ctx: InvokeContext) -> Any:
        raise error

    resolver = MutableOpResolver()
    resolver.add(op)
    make = ModelMaker()
    x, y = make.tensor((2,)), make.tensor((2,), name="y")
    make.op("Trips", [x], [y], custom=True)
    make.io([x], [y])
    interpreter = Interpreter(model_content=make.model(), experimental_op_resolver_type=resolver)
    interpreter.allocate_tensors()
    message = f'Trips (node 0, output "y"): {type(error).__name__}: {error}'
    with pytest.raises(InvokeError, match=re.escape(message)) as raised:
        interpreter.invoke()
    assert raised.value.__context__ is error


@pytest.mark.parametrize("shape", [(1,) * 70, (0, (1 << 31) - 1, (1 << 31) - 1, 9)], ids=["rank 70", "vast but empty"])
def test_a_shape_that_no_array_can_have(shape: tuple[int, ...]) -> None:
    make = ModelMaker()
    x, y = make.tensor(shape, name="x"), make.tensor(shape, name="y")
    make.op("NEG", [x], [y])
    make.io([x], [y])
    interpreter = Interpreter(
        model_content=make.model(),
        experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
    )
    interpreter.allocate_tensors()
    with pytest.raises(InvokeError, match=re.escape('NEG (node 0, output "y"): tensor 0 "x" is no array')):
        interpreter.invoke()
    with pytest.raises(ValueError, match=re.escape('tensor 0 "x" is no array')):
        interpreter.get_tensor(0)


def test_a_copy_that_there_is_no_memory_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def array(_: object) -> None:
        raise MemoryError("Unable to allocate")

    interpreter = Interpreter(model_content=adder())
    interpreter.allocate_tensors()
    monkeypatch.setattr("gossamer.runtime.interpreter.np.array", array)
    with pytest.raises(InvokeError, match=re.escape('tensor 0 "x": not enough memory for a copy: Unable to allocate')):
        interpreter.get_tensor(0)


def test_an_input_that_a_later_operator_resizes() -> None:
    # y = x + 1 is prepared for the shape of the input x; then x = -z takes that of z.
    make = ModelMaker()
    x, z = make.tensor((2, 3), name="x"), make.tensor((4,), name="z")
    one = make.constant([1.0], np.float32, TensorType.FLOAT32)
    y = make.tensor((2, 3), name="y")
    make.op("ADD", [x, one], [y])
    make.op("NEG", [z], [x])
    make.io([x, z], [y])
    words = re.escape('NEG (node 1, output "x"): tensor 0 would get shape [4], but as [2, 3] it has been given to')
    for resolver in (OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES, OpResolverType.AUTO):
        interpreter = Interpreter(model_content=make.model(), experimental_op_resolver_type=resolver)
        for _ in range(2):
            with pytest.raises(PrepareError, match=words):
                interpreter.allocate_tensors()


@pytest.mark.parametrize("resolver", [OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES, OpResolverType.AUTO])
def test_an_input_that_nobody_reads_before_it_is_resized(resolver: OpResolverType) -> None:
    # As in LiteRT: x = -z whatever x was, and then y = |x|.
    make = ModelMaker()
    x, z, y = make.tensor((2, 3), name="x"), make.tensor((4,), name="z"), make.tensor((4,), name="y")
    make.op("NEG", [z], [x])
    make.op("ABS", [x], [y])
    make.io([x, z], [y])
    interpreter = Interpreter(model_content=make.model(), experimental_op_resolver_type=resolver)
    for shape in ((2, 3), (0,), (7,)):
        interpreter.resize_tensor_input(x, shape)
        interpreter.allocate_tensors()
        interpreter.set_tensor(z, np.array([1, -2, 3, -4], np.float32))
        interpreter.invoke()
        assert interpreter.get_tensor(y).tolist() == [1, 2, 3, 4]


def test_an_input_that_the_last_run_has_resized(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOSSAMER_STRICT", "0")  # machine code refuses what is of one shape before and another after
    make, int32 = ModelMaker(), TensorType.INT32
    x, ids, sums = make.tensor((4,), int32), make.tensor((4,), int32), make.tensor((2,), int32)
    one, two, zeros = (make.constant(value, np.int32, int32) for value in (1, 2, [0, 0]))
    make.op("UNSORTED_SEGMENT_SUM", [x, ids, two], [sums])
    make.op("UNSORTED_SEGMENT_SUM", [sums, zeros, one], [ids])
    make.io([x, ids], [sums, ids])
    for resolver in (OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES, OpResolverType.AUTO):
        interpreter = Interpreter(model_content=make.model(), experimental_op_resolver_type=resolver)
        interpreter.allocate_tensors()
        interpreter.set_tensor(x, np.array([1, 2, 3, 4], np.int32))
        interpreter.set_tensor(ids, np.array([0, 0, 1, 1], np.int32))
        interpreter.invoke()
        assert [interpreter.get_tensor(index).tolist() for index in (sums, ids)] == [[3, 7], [10]]
        with pytest.raises(InvokeError, match=re.escape("segment_ids [1] must be the first dimensions of data [4]")):
            interpreter.invoke()


def test_a_node_whose_prepare_fails_is_not_prepared() -> None:
    make = ModelMaker()
    x, y, z = make.tensor((2, 3)), make.tensor((2, 3)), make.tensor((2, 3))
    make.op("ADD", [x, y], [z], AddOptions())
    make.io([x, y], [z])
    interpreter = Interpreter(
        model_content=make.model(), experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    )
    interpreter.allocate_tensors()
    node = interpreter._subgraphs[0].nodes[0]
    assert node.is_prepared
    interpreter.resize_tensor_input(y, (7,))
    with pytest.raises(PrepareError, match="broadcast"):
        interpreter.allocate_tensors()
    assert not node.is_prepared


def test_an_output_that_a_later_operator_resizes() -> None:
    make = ModelMaker()
    x, z = make.tensor((2, 3)), make.tensor((4,))
    y = make.tensor((2, 3), name="y")
    make.op("NEG", [x], [y])
    make.op("NEG", [z], [y])
    make.io([x, z], [y])
    interpreter = Interpreter(model_content=make.model())
    words = 'NEG (node 1, output "y"): tensor 2 would get shape [4], but as [2, 3] it has been given to'
    with pytest.raises(PrepareError, match=re.escape(words)):
        interpreter.allocate_tensors()


@pytest.mark.parametrize("name", ["IF", "CALL_ONCE"])
def test_a_called_subgraph_with_bad_indices(name: str) -> None:
    make = ModelMaker()
    condition, x, y = make.tensor((), TensorType.BOOL), make.tensor((2,)), make.tensor((2,))
    if name == "IF":
        make.op(name, [condition, x], [y], IfOptions(then_subgraph_index=1, else_subgraph_index=1))
    else:
        make.op(name, [], [], CallOnceOptions(init_subgraph_index=1))
    make.io([condition, x], [y])
    make.subgraph("broken")
    inner = make.tensor((2,))
    make.io([99], [inner])
    interpreter = Interpreter(model_content=make.model())
    with pytest.raises(PrepareError, match=re.escape("Invalid tensor index 99 in inputs")):
        interpreter.allocate_tensors()


def test_a_called_subgraph_whose_input_is_a_constant() -> None:
    make = ModelMaker()
    condition, x, y = make.tensor((), TensorType.BOOL), make.tensor((2,)), make.tensor((2,))
    make.op("IF", [condition, x], [y], IfOptions(then_subgraph_index=1, else_subgraph_index=1))
    make.io([condition, x], [y])
    make.subgraph("body")
    inner = make.constant([1, 2], np.float32, TensorType.FLOAT32, name="inner")
    make.io([inner], [inner])
    interpreter = Interpreter(model_content=make.model())
    with pytest.raises(PrepareError, match=re.escape('subgraph 1 input 0 "inner" is a constant of the file')):
        interpreter.allocate_tensors()


def test_an_output_that_is_left_out() -> None:
    make = ModelMaker()
    x = make.tensor((2,))
    make.op("NEG", [x], [-1])
    make.io([x], [x])
    interpreter = Interpreter(model_content=make.model())
    with pytest.raises(PrepareError, match=re.escape("output 0 (output) is missing (tensor -1); it is not optional")):
        interpreter.allocate_tensors()


def test_a_sparse_constant_where_a_dense_one_is_needed() -> None:
    make = ModelMaker()
    levels = (
        DimensionMetadata(format=DimensionType.DENSE, dense_size=2),
        DimensionMetadata(
            format=DimensionType.SPARSE_CSR,
            array_segments=Uint8Vector(values=np.array([0, 1, 2], np.uint8)),
            array_indices=Uint8Vector(values=np.array([0, 1], np.uint8)),
        ),
    )
    sparsity = SparsityParameters(traversal_order=(0, 1), dim_metadata=levels)
    make.buffers.append(Buffer(data=np.ones(2, np.float32).view(np.uint8)))
    x = make.tensor((2, 2), buffer=1, sparsity=sparsity)
    y = make.tensor((2, 2), name="y")
    make.op("NEG", [x], [y])
    make.io([], [y])
    interpreter = Interpreter(model_content=make.model())
    with pytest.raises(PrepareError, match=re.escape('NEG (node 0, output "y"): x is a sparse constant, it must be')):
        interpreter.allocate_tensors()


@pytest.mark.parametrize(
    "shape",
    [[-1], [2, -3], [(1 << 31) - 1] * 3, [1 << 31], [-(1 << 31) - 1], [1 << 70], np.array([(1 << 32) + 2, 3])],
    ids=str,
)
def test_a_shape_that_is_turned_down_changes_nothing(shape: Any) -> None:
    interpreter = Interpreter(model_content=adder())
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, np.ones((2, 3), np.float32))
    with pytest.raises(ValueError, match=r"dimension|large|32-bit"):
        interpreter.resize_tensor_input(0, shape)
    assert interpreter.get_input_details()[0]["shape"].tolist() == [2, 3]
    interpreter.invoke()
    np.testing.assert_array_equal(interpreter.get_tensor(3), np.full((2, 3), 3.0))


def test_subgraphs_within_subgraphs_are_no_recursion_error() -> None:
    # IF calls subgraph 1, whose IF calls subgraph 2, ...: deeper than Python's stack.
    depth = 200
    make = ModelMaker()
    for level in range(depth):
        if level:
            make.subgraph(f"level {level}")
        condition, x, y = make.tensor((), TensorType.BOOL), make.tensor((2,)), make.tensor((2,))
        if level < depth - 1:
            make.op("IF", [condition, x], [y], IfOptions(then_subgraph_index=level + 1, else_subgraph_index=level + 1))
            if level < depth - 2:
                # the callee takes the condition too
                make.graphs[-1].operators[-1] = make.graphs[-1].operators[-1].replace(inputs=(condition, condition, x))
        make.io([condition, x], [y] if level < depth - 1 else [x])
    interpreter = Interpreter(model_content=make.model())
    gc.disable()  # what others have left is not finalized where the stack ends
    try:
        with pytest.raises(PrepareError):
            interpreter.allocate_tensors()
    finally:
        gc.enable()


def test_an_operator_that_reads_too_early() -> None:
    make = ModelMaker()
    x, middle, y = make.tensor((2,)), make.tensor((2,)), make.tensor((2,))
    make.op("NEG", [middle], [y])
    make.op("ABS", [x], [middle])
    make.io([x], [y])
    for resolver in (OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES, OpResolverType.AUTO):
        interpreter = Interpreter(model_content=make.model(), experimental_op_resolver_type=resolver)
        with pytest.raises(PrepareError, match=re.escape('NEG (node 0) reads tensor 1 "t1" before an operator')):
            interpreter.allocate_tensors()


def test_what_has_no_elements_need_not_be_written() -> None:
    make = ModelMaker()
    x, shape, y, z = make.tensor((1, 1)), make.tensor((0,), TensorType.INT32), make.tensor(()), make.tensor(())
    make.op("RESHAPE", [x, shape], [y], ReshapeOptions())
    make.op("NEG", [y], [z])
    make.io([x], [z])
    for resolver in (OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES, OpResolverType.AUTO):
        interpreter = Interpreter(model_content=make.model(), experimental_op_resolver_type=resolver)
        interpreter.allocate_tensors()
        interpreter.set_tensor(x, np.float32([[3]]))
        interpreter.invoke()
        assert interpreter.get_tensor(z) == np.float32(-3)


def test_an_operator_whose_outputs_are_one_tensor() -> None:
    make = ModelMaker()
    x, y = make.tensor((4,)), make.tensor((2,))
    axis = make.constant(0, np.int32, TensorType.INT32)
    make.op("SPLIT", [axis, x], [y, y], SplitOptions(num_splits=2))
    make.io([x], [y])
    interpreter = Interpreter(model_content=make.model())
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, np.arange(4, dtype=np.float32))
    interpreter.invoke()
    np.testing.assert_array_equal(interpreter.get_tensor(1), [2, 3])


def test_weights_that_have_no_columns_any_more() -> None:
    make = ModelMaker()
    x, weights, y = make.tensor((2, 4)), make.tensor((3, 4)), make.tensor((2, 3))
    make.op("FULLY_CONNECTED", [x, weights, -1], [y], FullyConnectedOptions())
    make.io([x, weights], [y])
    interpreter = Interpreter(model_content=make.model())
    interpreter.allocate_tensors()
    interpreter.resize_tensor_input(weights, (3, 0))
    interpreter.allocate_tensors()
    interpreter.invoke()
    assert interpreter.get_tensor(y).tolist() == [[0.0] * 3] * 2
