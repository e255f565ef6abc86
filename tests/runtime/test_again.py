"""Calls that take the short way: the same as those before them, until something changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer import Interpreter, OpResolverType
from gossamer.errors import CancelledError
from gossamer.schema import GatherOptions, PackOptions, ReshapeOptions, ShapeOptions, SVDFOptions, TensorType
from tests.ops.variables import accumulator
from tests.runtime.graphs import ModelMaker, adder

X = np.arange(6, dtype=np.float32).reshape(2, 3)


class Counting:
    """Stands for what a kernel does again, and counts."""

    def __init__(self, again: Any) -> None:
        self.again, self.calls = again, 0

    def __call__(self) -> Any:
        self.calls += 1
        return self.again()


class Recording:
    """Is told what runs, and keeps the nodes."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.open = 0

    def begin(self, graph: Any, node: Any) -> None:
        self.open += 1
        if node is not None:
            self.nodes.append(node)

    def end(self) -> None:
        self.open -= 1


@pytest.fixture
def interpreter() -> Interpreter:
    made = Interpreter(model_content=adder())
    made.resize_tensor_input(made.get_input_details()[0]["index"], X.shape)
    made.allocate_tensors()
    return made


def run(interpreter: Interpreter, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


def counting(interpreter: Interpreter) -> Counting:
    """For calls after the second, which is the first to find every tensor where it was."""
    run(interpreter, X)
    (kernel,) = interpreter.delegate_kernels()
    if kernel.again is None:
        pytest.skip("no machine code for this CPU")
    kernel.again = counter = Counting(kernel.again)
    return counter


def test_later_calls_are_short_and_right(interpreter: Interpreter) -> None:
    assert np.array_equal(run(interpreter, X), X + 2)
    counter = counting(interpreter)
    for number in range(3):
        assert np.array_equal(run(interpreter, X * number), X * number + 2)
    assert counter.calls == 3


def test_what_is_given_out_is_a_copy(interpreter: Interpreter) -> None:
    results = [run(interpreter, X * number) for number in range(4)]
    for number, result in enumerate(results):
        assert np.array_equal(result, X * number + 2)


def test_other_shapes_take_the_long_way(interpreter: Interpreter) -> None:
    run(interpreter, X)
    counter = counting(interpreter)
    interpreter.resize_tensor_input(interpreter.get_input_details()[0]["index"], (5, 3))
    with pytest.raises(RuntimeError, match="not ready"):
        interpreter.invoke()
    interpreter.allocate_tensors()
    x = np.arange(15, dtype=np.float32).reshape(5, 3)
    assert np.array_equal(run(interpreter, x), x + 2)
    assert np.array_equal(run(interpreter, 2 * x), 2 * x + 2)
    assert counter.calls == 0


def test_a_view_that_is_held_refuses_the_short_way_too(interpreter: Interpreter) -> None:
    run(interpreter, X)
    counter = counting(interpreter)
    view = interpreter.tensor(interpreter.get_output_details()[0]["index"])()
    with pytest.raises(RuntimeError, match="reference to internal data"):
        interpreter.invoke()
    del view
    interpreter.invoke()
    assert counter.calls == 1


def test_a_call_inside_a_call_is_refused(interpreter: Interpreter) -> None:
    run(interpreter, X)
    run(interpreter, X)
    (kernel,) = interpreter.delegate_kernels()
    if kernel.again is None:
        pytest.skip("no machine code for this CPU")
    kernel.again = interpreter.invoke
    with pytest.raises(RuntimeError, match="already running"):
        interpreter.invoke()
    kernel.again = None
    assert np.array_equal(run(interpreter, X), X + 2)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (X.astype(np.float64), "Got value of type FLOAT64 but expected type FLOAT32"),
        (X.reshape(3, 2), "Got 3 but expected 2 for dimension 0"),
        (X.reshape(-1), "Got 1 but expected 2"),
    ],
)
def test_what_does_not_fit_is_refused_after_what_did(
    interpreter: Interpreter, value: np.ndarray[Any, Any], message: str
) -> None:
    run(interpreter, X)
    with pytest.raises(ValueError, match=message):
        run(interpreter, value)
    assert np.array_equal(run(interpreter, X), X + 2)


def test_values_of_any_layout_are_set(interpreter: Interpreter) -> None:
    run(interpreter, X)
    assert np.array_equal(run(interpreter, np.asfortranarray(X)), X + 2)
    assert np.array_equal(run(interpreter, X[::-1, ::-1]), X[::-1, ::-1] + 2)
    assert np.array_equal(run(interpreter, X.astype(">f4")), X + 2)


def test_a_profile_of_a_model_that_has_run(interpreter: Interpreter) -> None:
    run(interpreter, X)
    kernel: Any = interpreter.delegate_kernels()[0]
    counting(interpreter)
    seen: list[Any] = []
    kernel.observe(seen.append)
    assert np.array_equal(run(interpreter, X), X + 2)
    assert len(seen) == 1
    kernel.observe(None)
    assert np.array_equal(run(interpreter, X), X + 2)
    assert len(seen) == 1


def test_indices_are_numbers(interpreter: Interpreter) -> None:
    run(interpreter, X)
    (output,) = (detail["index"] for detail in interpreter.get_output_details())
    assert np.array_equal(interpreter.get_tensor(np.int64(output)), X + 2)
    with pytest.raises(TypeError):
        interpreter.get_tensor(float(output))


def test_an_index_out_of_range_is_told_and_the_next_call_is_short() -> None:
    from gossamer.ops.gather import op
    from tests.ops.cases import Case, model_of, tensor

    x = tensor(np.arange(12).reshape(3, 4))
    interpreter = Interpreter(
        model_content=model_of(op, Case("", [x, tensor([2, 0], np.int32)], [tensor(x.value[:2])]))
    )
    interpreter.allocate_tensors()
    table, positions = (details["index"] for details in interpreter.get_input_details())
    interpreter.set_tensor(table, x.value)
    (y,) = interpreter.get_output_details()

    def rows(*numbers: int) -> np.ndarray[Any, Any]:
        interpreter.set_tensor(positions, np.array(numbers, np.int32))
        interpreter.invoke()
        return interpreter.get_tensor(y["index"])

    for numbers in ((2, 0), (1, 1), (0, 2)):
        assert np.array_equal(rows(*numbers), x.value[list(numbers)])
    (kernel,) = interpreter.delegate_kernels()
    if kernel.again is None:
        pytest.skip("no machine code for this CPU")
    kernel.again = counter = Counting(kernel.again)
    with pytest.raises(RuntimeError, match=r"position 3 is out of range \[0, 3\)"):
        rows(0, 3)
    assert counter.calls == 1
    for numbers in ((2, 0), (1, 1), (0, 2)):
        assert np.array_equal(rows(*numbers), x.value[list(numbers)])
    assert kernel.again is not None


def allocated(content: bytes, **settings: Any) -> Interpreter:
    made = Interpreter(model_content=content, **settings)
    made.allocate_tensors()
    return made


def test_machine_code_between_other_nodes_takes_the_short_way_too() -> None:
    interpreter = allocated(accumulator())
    for total in (11, 12):
        assert run(interpreter, np.ones(1, np.float32)) == total
    kernel = interpreter.delegate_kernels()[-1]  # after that of VAR_HANDLE
    if kernel.again is None:
        pytest.skip("no machine code for this CPU")
    kernel.again = counter = Counting(kernel.again)
    for total in (13, 14):
        assert run(interpreter, np.ones(1, np.float32)) == total
    assert counter.calls == 2
    kernel.again = lambda: True  # it cannot: nodes before it do not run a second time
    assert run(interpreter, np.ones(1, np.float32)) == 15
    interpreter.invoke(timeout=100)
    assert run(interpreter, np.ones(1, np.float32)) == 17


def test_profilers_see_nodes_that_take_the_short_way() -> None:
    interpreter = allocated(accumulator())
    for _ in range(3):
        interpreter.invoke()
    graph = interpreter._subgraphs[0]
    interpreter._engine.recorder = seen = Recording()
    interpreter.invoke()
    assert seen.nodes == graph.planned_nodes
    assert seen.open == 0


def in_words() -> tuple[Interpreter, int, int, int]:
    """Words chosen by position, in two rows of two; the first positions are 0."""
    make = ModelMaker()
    words, positions = make.tensor((3,), TensorType.STRING), make.tensor((4,), TensorType.INT32)
    chosen, rows = make.tensor((4,), TensorType.STRING), make.tensor((2, 2), TensorType.STRING)
    make.op("GATHER", [words, positions], [chosen], GatherOptions())
    make.op("RESHAPE", [chosen], [rows], ReshapeOptions(new_shape=(2, 2)))
    make.io([words, positions], [rows])
    interpreter = allocated(make.model())
    interpreter.set_tensor(words, np.array([b"a", "\u00e9".encode(), b""], object))
    interpreter.invoke()
    return interpreter, words, positions, rows


def test_nodes_without_machine_code_are_the_whole_of_the_short_way(monkeypatch: pytest.MonkeyPatch) -> None:
    interpreter, words, positions, rows = in_words()
    graph: Any = interpreter._subgraphs[0]
    monkeypatch.setattr(graph, "invoke", lambda *_: pytest.fail("the long way"))
    for numbers in ((0, 1, 2, 1), (2, 2, 2, 0)):
        interpreter.set_tensor(positions, np.array(numbers, np.int32))
        interpreter.invoke()
        given = interpreter.get_tensor(words)
        assert np.array_equal(interpreter.get_tensor(rows), given[list(numbers)].reshape(2, 2))
    interpreter.set_tensor(positions, np.array((0, 3, 0, 0), np.int32))
    with pytest.raises(RuntimeError, match=r"GATHER .*position 3 is out of range \[0, 3\)"):
        interpreter.invoke()
    monkeypatch.undo()
    interpreter.set_tensor(positions, np.zeros(4, np.int32))
    interpreter.invoke()
    assert (interpreter.get_tensor(rows) == b"a").all()


def test_the_short_way_through_all_nodes_is_refused_cancelled_and_watched_like_the_long_one() -> None:
    interpreter, words, _, rows = in_words()
    graph, seen = interpreter._subgraphs[0], list[Any]()

    def inside(*_: Any) -> None:
        with pytest.raises(RuntimeError, match="already running"):
            interpreter.invoke()
        interpreter.cancel()
        seen.append("cancelled")

    gather = graph._contexts[0]
    kernel, gather.kernel = gather.kernel, lambda ctx: inside() or kernel(ctx)
    assert graph.sole is not None
    with pytest.raises(CancelledError):
        interpreter.invoke()
    gather.kernel = kernel
    assert seen == ["cancelled"]
    with interpreter.tap(lambda tensor, value: seen.append(tensor.index), [words, rows]):
        interpreter.invoke()
    interpreter.set_cancellation_function(lambda: True)
    for _ in range(2):
        with pytest.raises(CancelledError):
            interpreter.invoke()
    interpreter.set_cancellation_function(None)
    interpreter.invoke()
    assert seen == ["cancelled", words, rows]


def test_numbers_that_trip_numpy_are_no_warnings_on_the_short_way() -> None:
    make = ModelMaker()
    x, y = make.tensor((2,)), make.tensor((2,))
    make.op("DIV", [x, x], [y])
    make.io([x], [y])
    interpreter = allocated(
        make.model(), experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    )
    with np.errstate(all="raise"):
        for _ in range(3):
            assert np.isnan(run(interpreter, np.zeros(2, np.float32))).all()
    assert interpreter._subgraphs[0].sole is not None


def test_a_graph_without_nodes_has_nothing_to_do() -> None:
    make = ModelMaker()
    x = make.tensor((2,))
    make.io([x], [x])
    interpreter = allocated(make.model())
    for number in range(3):
        assert np.array_equal(run(interpreter, np.full(2, number, np.float32)), np.full(2, number))
    sole = interpreter._subgraphs[0].sole
    assert sole is not None
    assert sole.again is not None
    assert not sole.again()
    seen: list[Any] = []
    with interpreter.tap(lambda tensor, value: seen.append(value)):
        interpreter.invoke()
    assert np.array_equal(seen, [np.full(2, 2)])


@pytest.mark.parametrize("resolver", [OpResolverType.AUTO, OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES])
def test_what_prepare_has_computed_is_not_computed_again(resolver: OpResolverType) -> None:
    make = ModelMaker()
    x, sizes = make.tensor((2, 3), TensorType.STRING), make.tensor((2,), TensorType.INT32)
    make.op("SHAPE", [x], [sizes], ShapeOptions(out_type=TensorType.INT32))
    make.io([x], [sizes])
    interpreter = allocated(make.model(), experimental_op_resolver_type=resolver)
    for _ in range(2):
        interpreter.set_tensor(x, np.full((2, 3), b"x", object))
        interpreter.invoke()
        assert np.array_equal(interpreter.get_tensor(sizes), [2, 3])
    assert interpreter._subgraphs[0].sole is not None


@pytest.mark.parametrize("resolver", [OpResolverType.AUTO, OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES])
def test_a_variable_is_read_as_it_is_before_later_nodes_change_it(resolver: OpResolverType) -> None:
    make = ModelMaker()
    x, s, before, y = make.tensor((1, 2)), make.tensor((1, 2)), make.tensor((6, 1)), make.tensor((6, 2))
    features = make.constant(np.eye(2), np.float32, TensorType.FLOAT32)
    times = make.constant(np.ones((2, 3)), np.float32, TensorType.FLOAT32)
    state = make.tensor((1, 6), is_variable=True)
    make.op("RESHAPE", [state], [before], ReshapeOptions(new_shape=(6, 1)))
    make.op("SVDF", [x, features, times, -1, state], [s], SVDFOptions(rank=1))
    make.op("ADD", [before, s], [y])
    make.io([x], [y])
    interpreter = allocated(make.model(), experimental_op_resolver_type=resolver)
    if resolver is OpResolverType.AUTO:
        assert [len(one.nodes) for one in interpreter.delegate_claims()[0].partitions] == [3]
    states = np.zeros((2, 3), np.float32)
    for turn in range(4):
        expected = states.reshape(6, 1)
        states = np.concatenate([states[:, 1:], np.full((2, 1), turn + 1)], 1)
        outputs = run(interpreter, np.full((1, 2), turn + 1, np.float32))
        assert np.array_equal(outputs, expected + states.sum(1))


@pytest.mark.parametrize("resolver", [OpResolverType.AUTO, OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES])
def test_nodes_behind_a_computed_shape_are_prepared_when_it_changes(
    resolver: OpResolverType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOSSAMER_TARGET", "none")  # machine code would take them all together
    make = ModelMaker()
    dims, value = make.tensor((1,), TensorType.INT32), make.tensor(())
    filled, pairs, y = make.tensor((1,)), make.tensor((2, 1)), make.tensor((1,))
    make.op("FILL", [dims, value], [filled])
    make.op("PACK", [filled, filled], [pairs], PackOptions(values_count=2))
    make.op("SUM", [pairs, make.constant([0], np.int32, TensorType.INT32)], [y])
    make.io([dims, value], [y, filled])
    interpreter = allocated(make.model(), experimental_op_resolver_type=resolver)
    generations: dict[int, set[tuple[int, ...]]] = {}
    graph, engine, seen = interpreter._subgraphs[0], interpreter._engine, Recording()
    for size in (3, 3, 3, 5, 5, 0, 0, 5, 3, 3):
        interpreter.set_tensor(dims, np.array([size], np.int32))
        engine.recorder = seen if engine.recorder is None else None
        for number in (1, 2):
            interpreter.set_tensor(value, np.float32(number))
            interpreter.invoke()
            assert np.array_equal(interpreter.get_tensor(y), np.full(size, 2 * number, np.float32))
            assert np.array_equal(interpreter.get_tensor(filled), np.full(size, number, np.float32))
        prepared = tuple(node.generation for node in interpreter._subgraphs[0].planned_nodes[1:])
        generations.setdefault(size, set()).add(prepared)
    # Once for each time that the size is another one than before.
    assert {size: len(times) for size, times in generations.items()} == {3: 2, 5: 2, 0: 1}
    assert len(seen.nodes) == 5 * 2 * len(graph.planned_nodes)
