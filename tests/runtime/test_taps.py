"""Taps: values of tensors while a model runs, and outputs that keep every bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer import Interpreter, InvokeError, OpResolverType
from gossamer.delegates.recording import RecordingDelegate
from gossamer.schema import ReducerOptions, SVDFOptions, TensorType
from tests.runtime.graphs import ModelMaker, adder
from tests.runtime.test_control_flow import increment, loop, nested, run, stateful_branch, while_with_unread_output

REFERENCE = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
BOTH = pytest.mark.parametrize("resolver", [OpResolverType.AUTO, REFERENCE], ids=["jit", "reference"])
X = np.arange(6, dtype=np.float32).reshape(2, 3)


class Told:
    """A callback that remembers what it was told."""

    def __init__(self) -> None:
        self.calls: list[tuple[int, Any]] = []

    def __call__(self, tensor: Any, value: np.ndarray[Any, Any]) -> None:
        assert value.shape == tensor.shape
        self.calls.append((tensor.index, value.tolist()))

    def of(self, index: int) -> list[Any]:
        return [value for number, value in self.calls if number == index]


def made(content: bytes, resolver: OpResolverType = OpResolverType.AUTO, **settings: Any) -> Interpreter:
    interpreter = Interpreter(model_content=content, experimental_op_resolver_type=resolver, **settings)
    interpreter.allocate_tensors()
    return interpreter


@BOTH
def test_all_tensors_in_their_order(resolver: OpResolverType) -> None:
    interpreter, told = made(adder(), resolver), Told()
    expected = run(interpreter, X)
    handle = interpreter.tap(told)
    assert run(interpreter, X) == expected
    assert told.calls == [(0, X.tolist()), (2, (X + 1).tolist()), (3, (X + 2).tolist())]
    handle.remove()
    handle.remove()
    assert run(interpreter, X) == expected
    assert len(told.calls) == 3


@BOTH
@pytest.mark.parametrize("chosen", [[2], ["middle"], (np.int64(2),)])
def test_chosen_tensors_by_index_and_name(chosen: Any, resolver: OpResolverType) -> None:
    interpreter, told = made(adder(), resolver), Told()
    with interpreter.tap(told, chosen):
        for number in range(3):
            run(interpreter, X + number)
    run(interpreter, X)
    assert told.calls == [(2, (X + 1 + number).tolist()) for number in range(3)]


@BOTH
def test_taps_before_allocation_and_after_a_resize(resolver: OpResolverType) -> None:
    interpreter = Interpreter(model_content=adder(), experimental_op_resolver_type=resolver)
    told = Told()
    interpreter.tap(told, ["middle"])
    for rows in (2, 4, 2):
        x = np.ones((rows, 3), np.float32)
        interpreter.resize_tensor_input(0, x.shape)
        interpreter.allocate_tensors()
        assert run(interpreter, x) == [(x + 2).tolist()]
    assert told.of(2) == [np.full((rows, 3), 2).tolist() for rows in (2, 4, 2)]


@BOTH
def test_several_taps_are_called_in_their_order(resolver: OpResolverType) -> None:
    interpreter = made(adder(), resolver)
    order: list[str] = []
    first = interpreter.tap(lambda tensor, value: order.append(f"first {tensor.name}"), ["y"])
    interpreter.tap(lambda tensor, value: order.append(f"second {tensor.name}"), ["middle", "y"])
    run(interpreter, X)
    assert order == ["second middle", "first y", "second y"]
    first.remove()
    run(interpreter, X)
    assert order[3:] == ["second middle", "second y"]


@BOTH
def test_each_iteration_of_loops_in_loops(resolver: OpResolverType) -> None:
    interpreter, inner, outer = made(nested(), resolver), Told(), Told()
    expected = run(interpreter, 0, [1, 5])
    (x_in, x_out) = (interpreter._subgraphs[4].inputs[1], interpreter._subgraphs[4].outputs[1])
    with interpreter.tap(inner, [x_in, x_out], subgraph_index=4), interpreter.tap(outer, None, 2):
        assert run(interpreter, 0, [1, 5]) == expected
        assert run(interpreter, 1, [1, 5]) == [3, [9, 13]]
    counts = [*range(12), *range(8)]
    assert inner.of(x_in) == [[1 + n, 5 + n] for n in counts]
    assert inner.of(x_out) == [[2 + n, 6 + n] for n in counts]
    assert outer.of(interpreter._subgraphs[2].inputs[0]) == [0, 1, 2, 1, 2]
    assert outer.of(interpreter._subgraphs[2].outputs[1]) == [[1 + n, 5 + n] for n in (4, 8, 12, 4, 8)]


@BOTH
def test_a_condition_is_told_once_more_than_the_body(resolver: OpResolverType) -> None:
    interpreter, told = made(loop(3, lambda make, x: [increment(make, x[0])], [(2,)]), resolver), Told()
    (verdict,) = interpreter._subgraphs[1].outputs
    interpreter.tap(told, [verdict], 1)
    run(interpreter, 0, [0, 0])
    assert told.of(verdict) == [True, True, True, False]


@BOTH
def test_an_output_that_is_left_out_has_the_value_of_its_input(resolver: OpResolverType) -> None:
    interpreter, told = made(while_with_unread_output(), resolver), Told()
    interpreter.tap(told, [3])
    run(interpreter, np.zeros(64), np.full(64, 2))
    assert told.of(3) == [[2.0] * 64]


def svdf() -> bytes:
    """y = -SVDF(x), whose state sums over the last three calls."""
    make = ModelMaker()
    x, s, y = (make.tensor((1, 2)) for _ in range(3))
    features = make.constant(np.eye(2), np.float32, TensorType.FLOAT32)
    times = make.constant(np.ones((2, 3)), np.float32, TensorType.FLOAT32)
    state = make.tensor((1, 6), is_variable=True, name="state")
    make.op("SVDF", [x, features, times, -1, state], [s], SVDFOptions(rank=1))
    make.op("NEG", [s], [y])
    make.io([x], [y])
    return make.model()


@BOTH
def test_variables_change_once_in_each_call(resolver: OpResolverType) -> None:
    interpreter, told = made(svdf(), resolver), Told()
    interpreter.tap(told, [1, "state", 2])
    for number in (1, 2, 3):
        assert run(interpreter, [[1, 2]]) == [[[-number, -2 * number]]]
    assert told.of(1) == [[[1, 2]], [[2, 4]], [[3, 6]]]
    assert told.of(5)[-1] == [[1, 1, 1, 2, 2, 2]]


@BOTH
def test_a_branch_with_variables(resolver: OpResolverType) -> None:
    interpreter, told = made(stateful_branch(), resolver), Told()
    interpreter.tap(told, [4, 5], 1)
    for _ in range(2):
        assert run(interpreter, True, [[1, 2]]) == [[[2, 8]]]
    assert told.calls == [(4, [[1, 2]]), (5, [[2, 4]])] * 2


def test_what_a_delegate_of_the_user_fuses() -> None:
    interpreter, told = made(adder(), experimental_delegates=[RecordingDelegate()]), Told()
    interpreter.tap(told, ["middle"])
    assert run(interpreter, X) == [(X + 2).tolist()]
    assert told.calls == [(2, (X + 1).tolist())]


@pytest.mark.filterwarnings("ignore:experimental_preserve_all_tensors")
@BOTH
def test_taps_and_preserved_tensors_agree(resolver: OpResolverType) -> None:
    interpreter, told = made(adder(), resolver, experimental_preserve_all_tensors=True), Told()
    interpreter.tap(told)
    run(interpreter, X)
    assert told.of(2) == [interpreter.get_tensor(2).tolist()]


@BOTH
def test_a_value_is_a_copy(resolver: OpResolverType) -> None:
    interpreter = made(adder(), resolver)
    values: list[np.ndarray[Any, Any]] = []

    def callback(tensor: Any, value: np.ndarray[Any, Any]) -> None:
        values.append(value.copy())
        value[...] = 100

    interpreter.tap(callback)
    assert run(interpreter, X) == [(X + 2).tolist()]
    assert [value.tolist() for value in values] == [(X + n).tolist() for n in range(3)]


@BOTH
def test_a_function_that_fails_ends_the_invocation(resolver: OpResolverType) -> None:
    interpreter = made(nested(), resolver)

    def callback(tensor: Any, value: Any) -> None:
        raise ZeroDivisionError("mine")

    with (
        interpreter.tap(callback, subgraph_index=4),
        pytest.raises(InvokeError, match=r'a tap of tensor \d+ "t\d+" of subgraph 4 raised ZeroDivisionError: mine'),
    ):
        run(interpreter, 0, [1, 5])
    assert run(interpreter, 0, [1, 5]) == [3, [13, 17]]


@pytest.mark.parametrize(
    ("tensor", "message"),
    [
        (1, r'tensor 1 "one" of subgraph 0 is not written when the model runs'),
        ("one", r'tensor 1 "one" of subgraph 0 is not written when the model runs'),
        (99, "Invalid tensor index 99"),
        ("nobody", 'subgraph 0 has no tensor "nobody"'),
    ],
)
def test_what_cannot_be_observed_is_refused(tensor: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        made(adder()).tap(print, [tensor])


def test_what_is_no_function_is_refused() -> None:
    with pytest.raises(ValueError, match="tap takes a function of a tensor and its value, got 3"):
        made(adder()).tap(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="Invalid subgraph index 7"):
        made(adder()).tap(print, subgraph_index=7)


def squeeze_and_excite() -> bytes:
    """swish(x), scaled by the swish of its means: reductions and maps that are fused."""
    make = ModelMaker()
    shape, pooled = (1, 14, 14, 24), (1, 1, 1, 24)
    x = make.tensor(shape)
    gate, swish, y = (make.tensor(shape) for _ in range(3))
    mean, mean_gate, scale = (make.tensor(pooled) for _ in range(3))
    make.op("LOGISTIC", [x], [gate])
    make.op("MUL", [x, gate], [swish])
    make.op("MEAN", [swish, make.constant([1, 2], np.int32, TensorType.INT32)], [mean], ReducerOptions(keep_dims=True))
    make.op("LOGISTIC", [mean], [mean_gate])
    make.op("MUL", [mean, mean_gate], [scale])
    make.op("MUL", [swish, scale], [y])
    make.io([x], [y])
    return make.model()


def test_outputs_keep_every_bit_where_operators_are_fused() -> None:
    interpreter = made(squeeze_and_excite())
    x = np.random.default_rng(0).normal(scale=5, size=(1, 14, 14, 24)).astype(np.float32)
    interpreter.set_tensor(0, x)
    interpreter.invoke()
    expected = interpreter.get_tensor(interpreter.get_output_details()[0]["index"]).tobytes()
    told: dict[int, Any] = {}
    with interpreter.tap(lambda tensor, value: told.update({tensor.index: value})):
        interpreter.invoke()
    assert interpreter.get_tensor(interpreter.get_output_details()[0]["index"]).tobytes() == expected
    assert sorted(told) == sorted(interpreter._subgraphs[0].observable)
    swish = x / (1 + np.exp(-x))
    np.testing.assert_allclose(told[2], swish, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(told[4], swish.mean((1, 2), keepdims=True), rtol=1e-4)


@BOTH
def test_what_is_lent_is_the_tensors_own_memory(resolver: OpResolverType) -> None:
    interpreter = made(adder(), resolver)
    lent: list[np.ndarray[Any, Any]] = []
    told: list[Any] = []

    def look(tensor: Any, value: np.ndarray[Any, Any]) -> None:
        assert not value.flags.writeable
        told.append(value.tolist())
        lent.append(value)

    with interpreter.tap(look, [0], copy=False):
        run(interpreter, X)
        run(interpreter, X + 1)
    assert told == [X.tolist(), (X + 1).tolist()]
    assert np.shares_memory(*lent)
