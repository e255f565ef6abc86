"""Operators that call subgraphs: where values lie, what is kept, and what of it LiteRT shows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import gossamer
from gossamer import Interpreter, OpResolverType
from gossamer.delegates.jit.delegate import JitKernel
from gossamer.ops.op_def import InvokeContext, OpDef
from gossamer.runtime.callee import SMALL
from gossamer.schema import IfOptions, SVDFOptions, TensorType, WhileOptions
from tests.runtime.graphs import ModelMaker

BOTH = pytest.mark.parametrize(
    "resolver", [OpResolverType.AUTO, OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES], ids=["jit", "reference"]
)

MANY = SMALL // 4 + 1
"""Elements of what is not copied."""


def place_of(array: np.ndarray[Any, Any] | None) -> int:
    assert array is not None
    return int(array.__array_interface__["data"][0])


class Spy:
    """A custom operator y = x + 1 that notes where its operand lies and where its result is wanted."""

    def __init__(self) -> None:
        self.read: list[int] = []
        self.written: list[int] = []

        @gossamer.custom_op("Spy", shape="x", trace=False)
        def spy(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
            return x + 1

        reference = spy.reference_function
        assert reference is not None

        def noting(ctx: InvokeContext) -> Any:
            self.read.append(place_of(ctx.value(0)))
            self.written.append(place_of(ctx.out(0)))
            return reference(ctx)

        spy.reference_function = noting
        self.op: OpDef = spy


def loop(limit: int, body: Callable[[ModelMaker, list[int]], list[int]], shapes: Sequence[tuple[int, ...]]) -> bytes:
    """i, x... -> while i < limit: i + 1, body(x...)."""
    make = ModelMaker()

    def variables() -> list[int]:
        return [make.tensor((), TensorType.INT32), *map(make.tensor, shapes)]

    inputs, outputs = variables(), variables()
    make.op("WHILE", inputs, outputs, WhileOptions(cond_subgraph_index=1, body_subgraph_index=2))
    make.io(inputs, outputs)
    make.subgraph("cond")
    inside = variables()
    less = make.tensor((), TensorType.BOOL)
    make.op("LESS", [inside[0], make.constant(limit, np.int32, TensorType.INT32)], [less])
    make.io(inside, [less])
    make.subgraph("body")
    inside = variables()
    after = make.tensor((), TensorType.INT32)
    make.op("ADD", [inside[0], make.constant(1, np.int32, TensorType.INT32)], [after])
    make.io(inside, [after, *body(make, inside[1:])])
    return make.model()


def increment(make: ModelMaker, x: int, name: str = "ADD") -> int:
    y = make.tensor(make.graphs[-1].tensors[x].shape)
    if name == "ADD":
        make.op("ADD", [x, make.constant(1, np.float32, TensorType.FLOAT32)], [y])
    else:
        make.op(name, [x], [y], custom=True)
    return y


def run(interpreter: Interpreter, *values: Any) -> list[Any]:
    for detail, value in zip(interpreter.get_input_details(), values, strict=True):
        interpreter.set_tensor(detail["index"], np.asarray(value, detail["dtype"]))
    interpreter.invoke()
    return [interpreter.get_tensor(detail["index"]).tolist() for detail in interpreter.get_output_details()]


@pytest.mark.parametrize("limit", range(6))
def test_an_iteration_reads_what_the_one_before_wrote_where_it_lies(limit: int) -> None:
    spy = Spy()
    model = loop(limit, lambda make, x: [increment(make, x[0], "Spy")], [(MANY,)])
    interpreter = Interpreter(model_content=model, custom_ops=[spy.op])
    interpreter.allocate_tensors()
    for _ in range(2):
        spy.read.clear()
        spy.written.clear()
        assert run(interpreter, 0, [1] * MANY) == [limit, [1 + limit] * MANY]
        begin, end = (place_of(interpreter.tensor(index)()) for index in (1, 3))
        assert spy.read == ([begin, *spy.written])[: len(spy.read)]
        assert spy.written[::2] == [end] * len(spy.written[::2])
        assert len(set(spy.written[1::2])) <= 1


@BOTH
def test_what_the_body_hands_on_is_read_where_it_lies(resolver: OpResolverType) -> None:
    spy = Spy()

    def body(make: ModelMaker, x: list[int]) -> list[int]:
        total = make.tensor((MANY,))
        make.op("ADD", [x[0], increment(make, x[1], "Spy")], [total])
        return [total, x[1]]

    interpreter = Interpreter(
        model_content=loop(5, body, [(MANY,), (MANY,)]), custom_ops=[spy.op], experimental_op_resolver_type=resolver
    )
    interpreter.allocate_tensors()
    assert run(interpreter, 0, [0] * MANY, [3] * MANY) == [5, [20] * MANY, [3] * MANY]
    assert spy.read == [place_of(interpreter.tensor(2)())] * 5


def test_small_values_go_where_programs_know_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that these run again without a look at anything."""
    make = ModelMaker()
    c, x, y = make.tensor((), TensorType.BOOL), make.tensor((4,)), make.tensor((4,))
    make.op("IF", [c, x], [y], IfOptions(then_subgraph_index=1, else_subgraph_index=2))
    make.io([c, x], [y])
    for name in ("then", "else"):
        make.subgraph(name)
        inside = make.tensor((4,))
        make.io([inside], [increment(make, increment(make, inside), "Spy") if name == "then" else inside])
    interpreter = Interpreter(model_content=make.model(), custom_ops=[Spy().op])
    interpreter.allocate_tensors()
    for value in (1, 2, 3):
        assert run(interpreter, True, [value] * 4) == [[value + 2] * 4]

    def looks(*_: Any) -> None:
        raise AssertionError("a program is told where values lie")

    monkeypatch.setattr(JitKernel, "invoke", looks)
    for value in (3, 4):
        assert run(interpreter, True, [value] * 4) == [[value + 2] * 4]


def while_with_unread_output(name: str = "main") -> bytes:
    """i, n -> while i < n: i + 1, n; only i is an output."""
    make = ModelMaker()
    inputs, outputs = [make.tensor((64,)), make.tensor((64,))], [make.tensor((64,)), make.tensor((64,))]
    make.op("WHILE", inputs, outputs, WhileOptions(cond_subgraph_index=1, body_subgraph_index=2))
    make.io(inputs, outputs[:1])
    make.subgraph("cond")
    i, n = make.tensor((64,)), make.tensor((64,))
    less, axis, verdict = make.tensor((64,), TensorType.BOOL), make.constant([0], np.int32, TensorType.INT32), -1
    verdict = make.tensor((), TensorType.BOOL)
    make.op("LESS", [i, n], [less])
    make.op("REDUCE_ANY", [less, axis], [verdict])
    make.io([i, n], [verdict])
    make.subgraph("body")
    i, n = make.tensor((64,)), make.tensor((64,))
    make.io([i, n], [increment(make, i), n])
    return make.model()


@BOTH
def test_an_output_that_is_handed_on_and_not_read_is_left_out(resolver: OpResolverType) -> None:
    interpreter = Interpreter(model_content=while_with_unread_output(), experimental_op_resolver_type=resolver)
    interpreter.allocate_tensors()
    assert run(interpreter, np.zeros(64), np.full(64, 9)) == [[9] * 64]
    with pytest.raises(ValueError, match="Tensor data is null"):
        interpreter.get_tensor(3)
    assert 3 not in interpreter.memory_plan().offsets
    interpreter.allocate_tensors()
    assert run(interpreter, np.zeros(64), np.full(64, 4)) == [[4] * 64]


@BOTH
@pytest.mark.parametrize("limit", range(5))
def test_variables_may_change_places(limit: int, resolver: OpResolverType) -> None:
    model = loop(limit, lambda make, x: [x[1], x[2], increment(make, x[0])], [(2,), (2,), (2,)])
    interpreter = Interpreter(model_content=model, experimental_op_resolver_type=resolver)
    interpreter.allocate_tensors()
    a, b, c = [1, 1], [10, 10], [20, 20]
    expected = [a, b, c]
    for _ in range(limit):
        a, b, c = b, c, [value + 1 for value in a]
        expected = [a, b, c]
    for _ in range(2):
        assert run(interpreter, 0, [1, 1], [10, 10], [20, 20]) == [limit, *expected]


@BOTH
@pytest.mark.parametrize("limit", range(4))
def test_a_tensor_may_be_several_outputs_of_the_body(limit: int, resolver: OpResolverType) -> None:
    def body(make: ModelMaker, x: list[int]) -> list[int]:
        y = increment(make, x[0])
        return [y, y]

    interpreter = Interpreter(model_content=loop(limit, body, [(2,), (2,)]), experimental_op_resolver_type=resolver)
    interpreter.allocate_tensors()
    after = [1 + limit, 2 + limit]
    assert run(interpreter, 0, [1, 2], [5, 5]) == [limit, after, after if limit else [5, 5]]


@BOTH
def test_a_constant_may_be_an_output_of_the_body(resolver: OpResolverType) -> None:
    model = loop(3, lambda make, x: [make.constant([7, 8], np.float32, TensorType.FLOAT32)], [(2,)])
    interpreter = Interpreter(model_content=model, experimental_op_resolver_type=resolver)
    interpreter.allocate_tensors()
    assert run(interpreter, 0, [1, 2]) == [3, [7, 8]]


def one_or_none(outer: tuple[int, ...], inner: tuple[int, ...], verdict: tuple[int, ...]) -> bytes:
    """i -> while i < 5: i + 1, where the shapes of i and of the condition are those given."""
    make = ModelMaker()
    i, end = make.tensor(outer), make.tensor(outer)
    make.op("WHILE", [i], [end], WhileOptions(cond_subgraph_index=1, body_subgraph_index=2))
    make.io([i], [end])
    make.signature("count", {"t0": i}, {"end": end})
    make.subgraph("cond")
    i, less = make.tensor(outer), make.tensor(verdict, TensorType.BOOL)
    make.op("LESS", [i, make.constant(np.full(verdict, 5), np.float32, TensorType.FLOAT32)], [less])
    make.io([i], [less])
    make.subgraph("body")
    i, after = make.tensor(outer), make.tensor(inner)
    make.op("ADD", [i, make.constant(np.full(inner, 1), np.float32, TensorType.FLOAT32)], [after])
    make.io([i], [after])
    return make.model()


@BOTH
@pytest.mark.parametrize("shapes", [((), (), ()), ((1,), (1,), (1,)), ((), (1,), (1,)), ((), (), (1,))])
def test_one_element_may_have_a_dimension_or_none(shapes: Any, resolver: OpResolverType) -> None:
    interpreter = Interpreter(model_content=one_or_none(*shapes), experimental_op_resolver_type=resolver)
    interpreter.allocate_tensors()
    for start in (0, 1, 5):
        assert run(interpreter, np.full(shapes[0], start)) == [np.full(shapes[1], 5).tolist()]


def nested() -> bytes:
    """i, x -> while i < 3: (j = 0; while j < 4: x + 1), i + 1, x."""
    make = ModelMaker()

    def variables() -> list[int]:
        return [make.tensor((), TensorType.INT32), make.tensor((2,))]

    def part(name: str, limit: int, call: bool) -> None:
        make.subgraph(f"{name} cond")
        i, x = variables()
        less = make.tensor((), TensorType.BOOL)
        make.op("LESS", [i, make.constant(limit, np.int32, TensorType.INT32)], [less])
        make.io([i, x], [less])
        make.subgraph(f"{name} body")
        i, x = variables()
        after, y = variables()
        make.op("ADD", [i, make.constant(1, np.int32, TensorType.INT32)], [after])
        if call:
            start, end = make.constant(0, np.int32, TensorType.INT32), make.tensor((), TensorType.INT32)
            make.op("WHILE", [start, x], [end, y], WhileOptions(cond_subgraph_index=3, body_subgraph_index=4))
        else:
            y = increment(make, x)
        make.io([i, x], [after, y])

    inputs, outputs = variables(), variables()
    make.op("WHILE", inputs, outputs, WhileOptions(cond_subgraph_index=1, body_subgraph_index=2))
    make.io(inputs, outputs)
    part("outer", 3, call=True)
    part("inner", 4, call=False)
    return make.model()


@BOTH
@pytest.mark.parametrize("preserve", [False, True])
@pytest.mark.filterwarnings("ignore:experimental_preserve_all_tensors")
def test_loops_in_loops(resolver: OpResolverType, preserve: bool) -> None:
    interpreter = Interpreter(
        model_content=nested(),
        experimental_op_resolver_type=resolver,
        experimental_preserve_all_tensors=preserve,
    )
    interpreter.allocate_tensors()
    for start in (0, 2, 3, 1):
        times = max(0, 3 - start)
        assert run(interpreter, start, [1, 5]) == [max(3, start), [1 + 4 * times, 5 + 4 * times]]


def stateful_branch() -> bytes:
    """y = c ? z * s : -x with s = SVDF(x), a sum over the last three calls, and z = s + x."""
    make = ModelMaker()
    c, x, y = make.tensor((), TensorType.BOOL), make.tensor((1, 2)), make.tensor((1, 2))
    make.op("IF", [c, x], [y], IfOptions(then_subgraph_index=1, else_subgraph_index=2))
    make.io([c, x], [y])
    make.subgraph("then")
    x = make.tensor((1, 2))
    features = make.constant(np.eye(2), np.float32, TensorType.FLOAT32)
    times = make.constant(np.ones((2, 3)), np.float32, TensorType.FLOAT32)
    state = make.tensor((1, 6), is_variable=True)
    s, z, y = (make.tensor((1, 2)) for _ in range(3))
    make.op("SVDF", [x, features, times, -1, state], [s], SVDFOptions(rank=1))
    make.op("ADD", [s, x], [z])
    make.op("MUL", [z, s], [y])
    make.io([x], [y])
    make.subgraph("else")
    x, y = make.tensor((1, 2)), make.tensor((1, 2))
    make.op("NEG", [x], [y])
    make.io([x], [y])
    return make.model()


@BOTH
@pytest.mark.filterwarnings("ignore:experimental_preserve_all_tensors")
def test_variables_of_a_branch_begin_anew_with_each_call(resolver: OpResolverType) -> None:
    """As LiteRT has it, which gives memory back after a call unless all tensors are preserved."""

    def three(preserve: bool) -> tuple[Interpreter, list[Any]]:
        interpreter = Interpreter(
            model_content=stateful_branch(),
            experimental_op_resolver_type=resolver,
            experimental_preserve_all_tensors=preserve,
        )
        interpreter.allocate_tensors()
        return interpreter, [run(interpreter, True, [[1, 2]]) for _ in range(3)]

    interpreter, results = three(preserve=False)
    assert results == [[[[2, 8]]]] * 3
    for index in (4, 5):
        with pytest.raises(ValueError, match="Tensor data is null"):
            interpreter.get_tensor(index, subgraph_index=1)
    assert interpreter.get_tensor(0, subgraph_index=1).tolist() == [[1, 2]]
    assert interpreter.get_tensor(6, subgraph_index=1).tolist() == [[2, 8]]
    interpreter, results = three(preserve=True)
    assert results == [[[[2, 8]]], [[[6, 24]]], [[[12, 48]]]]
    assert interpreter.get_tensor(4, subgraph_index=1).tolist() == [[3, 6]]
    assert interpreter.get_tensor(5, subgraph_index=1).tolist() == [[4, 8]]


def test_a_branch_reads_and_writes_where_its_caller_has_its_values() -> None:
    spy = Spy()
    make = ModelMaker()
    c, x, y = make.tensor((), TensorType.BOOL), make.tensor((MANY,)), make.tensor((MANY,))
    make.op("IF", [c, x], [y], IfOptions(then_subgraph_index=1, else_subgraph_index=2))
    make.io([c, x], [y])
    for name in ("then", "else"):
        make.subgraph(name)
        inside = make.tensor((MANY,))
        make.io([inside], [increment(make, inside, "Spy") if name == "then" else inside])
    interpreter = Interpreter(model_content=make.model(), custom_ops=[spy.op])
    interpreter.allocate_tensors()
    for condition in (True, False, True):
        assert run(interpreter, condition, [1] * MANY) == [[2 if condition else 1] * MANY]
    assert spy.read == [place_of(interpreter.tensor(1)())] * 2
    assert spy.written == [place_of(interpreter.tensor(2)())] * 2
    # TFLite plans neither the inputs of a branch nor what is written for the caller.
    assert 0 not in interpreter.memory_plan(1).offsets


def test_a_subgraph_with_a_signature_keeps_its_own_memory() -> None:
    make = ModelMaker()
    c, x, y = make.tensor((), TensorType.BOOL), make.tensor((2,)), make.tensor((2,))
    make.op("IF", [c, x], [y], IfOptions(then_subgraph_index=1, else_subgraph_index=1))
    make.io([c, x], [y])
    make.subgraph("then")
    inside = make.tensor((2,))
    result = increment(make, inside)
    make.io([inside], [result])
    make.signature("increment", {"x": inside}, {"y": result}, 1)
    interpreter = Interpreter(model_content=make.model())
    interpreter.allocate_tensors()
    runner = interpreter.get_signature_runner("increment")
    assert run(interpreter, True, [1, 2]) == [[2, 3]]
    assert runner(x=np.float32([5, 6]))["y"].tolist() == [6, 7]
    assert interpreter.get_tensor(1).tolist() == [1, 2]
    assert run(interpreter, False, [3, 4]) == [[4, 5]]


def test_an_input_that_a_node_of_the_branch_writes_is_a_copy() -> None:
    make = ModelMaker()
    c, x, y = make.tensor((), TensorType.BOOL), make.tensor((2,)), make.tensor((2,))
    make.op("IF", [c, x], [y], IfOptions(then_subgraph_index=1, else_subgraph_index=1))
    make.io([c, x], [y])
    make.subgraph("then")
    inside, result = make.tensor((2,)), make.tensor((2,))
    one = make.constant([1, 1], np.float32, TensorType.FLOAT32)
    make.op("ADD", [inside, one], [result])
    make.op("ADD", [result, one], [inside])
    make.io([inside], [result])
    interpreter = Interpreter(
        model_content=make.model(),
        experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
    )
    interpreter.allocate_tensors()
    for _ in range(2):
        assert run(interpreter, True, [1, 2]) == [[2, 3]]
        assert interpreter.get_tensor(1).tolist() == [1, 2]


@BOTH
def test_values_of_different_shapes_for_one_input_are_told(resolver: OpResolverType) -> None:
    make = ModelMaker()
    x, y = ([make.tensor((4,)), make.tensor((5,))] for _ in range(2))
    make.op("WHILE", x, y, WhileOptions(cond_subgraph_index=1, body_subgraph_index=2))
    make.io(x, y)
    make.subgraph("condition")
    both, flag = make.tensor((4,), name="both"), make.tensor((1,), TensorType.BOOL)
    low = make.constant([0], np.int32, TensorType.INT32)
    make.op("LESS", [low, make.constant([1], np.int32, TensorType.INT32)], [flag])
    make.io([both, both], [flag])
    make.subgraph("body")
    inside = [make.tensor((4,)), make.tensor((5,))]
    make.io(inside, [increment(make, one) for one in inside])
    interpreter = Interpreter(model_content=make.model(), experimental_op_resolver_type=resolver)
    interpreter.allocate_tensors()
    with pytest.raises(gossamer.InvokeError) as failure:
        run(interpreter, np.zeros(4, np.float32), np.zeros(5, np.float32))
    assert 'subgraph 1 input "both" must have shape [5], which another value for it has, got [4]' in str(failure.value)
