"""Custom operators as machine code are compared with their functions, and give way where they differ."""

from __future__ import annotations

import logging
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import gossamer
from gossamer.delegates.jit import checking
from gossamer.delegates.jit.checking import difference
from gossamer.delegates.jit.delegate import JitKernel
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import OpDef
from gossamer.schema import TensorType
from gossamer.schema.options import IfOptions, SVDFOptions
from tests.ops.cases import tensor
from tests.ops.traced import interpreter_of, refusals, run
from tests.programs.kernels import target_here
from tests.runtime.graphs import ModelMaker

X = np.arange(6, dtype=np.float32).reshape(2, 3) - 2


@pytest.fixture(autouse=True)
def _machine_code() -> None:
    target_here()


def between(name: str) -> bytes:
    """x -> NEG -> the operator -> NEG -> the operator -> NEG."""
    make = ModelMaker()
    values = [make.tensor((2, 3)) for _ in range(6)]
    for number, (before, after) in enumerate(pairwise(values)):
        make.op(name if number % 2 else "NEG", [before], [after], custom=bool(number % 2))
    make.io(values[:1], values[-1:])
    return make.model()


def interpreter(op: OpDef) -> gossamer.Interpreter:
    made = gossamer.Interpreter(model_content=between(op.name), custom_ops=[op])
    made.allocate_tensors()
    return made


def kernel_of(interpreter: gossamer.Interpreter) -> JitKernel:
    (kernel,) = interpreter.delegate_kernels()
    assert isinstance(kernel, JitKernel)
    return kernel


class Fickle:
    """x times a number that may change after it was traced."""

    def __init__(self) -> None:
        self.number = 2.0
        self.op = gossamer.custom_op("Fickle", shape="x")(self.times)

    def times(self, x: Any) -> Any:
        return x * np.float32(self.number)


def test_what_differs_runs_in_numpy_and_says_so_once(caplog: pytest.LogCaptureFixture) -> None:
    fickle = Fickle()
    made = interpreter(fickle.op)
    assert refusals(made) == []
    fickle.number = 3.0
    with caplog.at_level(logging.WARNING, "gossamer"):
        for number in (3.0, 3.0, 5.0):
            fickle.number = number
            np.testing.assert_array_equal(run(made, [X])[0], -X * number * number)
    assert [record.getMessage() for record in caplog.records] == [
        "Fickle (node 1): machine code differs from the function by up to 3: -6.0 instead of -9.0 at [1, 2]. It runs "
        "in NumPy from now on; custom_op(..., trace=False) says so from the beginning"
    ]
    # What is around it is still machine code, and another interpreter knows.
    kernel = kernel_of(made)
    assert kernel.program is not None
    assert not kernel.is_checked
    other = interpreter(fickle.op)
    assert (
        refusals(other) == ["its machine code differs from the function by up to 3: -6.0 instead of -9.0 at [1, 2]"] * 2
    )
    np.testing.assert_array_equal(run(other, [X])[0], -X * 25)


def test_what_has_been_compared_is_not_compared_again(monkeypatch: pytest.MonkeyPatch) -> None:
    checked = []
    check = checking.check

    def counted(ctx: Any, nodes: Any, *how: Any) -> None:
        checked.append([node.node_index for node in nodes])
        check(ctx, nodes, *how)

    monkeypatch.setattr(checking, "check", counted)
    op = gossamer.custom_op("Double")(lambda x: x * 2)
    made = interpreter(op)
    for _ in range(3):
        np.testing.assert_array_equal(run(made, [X])[0], -X * 4)
    clone = made.clone()
    np.testing.assert_array_equal(run(clone, [X])[0], -X * 4)
    assert checked == [[1, 3]]
    assert kernel_of(made).again is not None
    clone.resize_tensor_input(0, [4, 3])
    clone.allocate_tensors()
    np.testing.assert_array_equal(run(clone, [np.vstack([X, X])])[0], -np.vstack([X, X]) * 4)
    assert checked == [[1, 3], [1, 3]]
    assert kernel_of(clone).is_checked


def test_what_the_function_raises_is_raised() -> None:
    def careless(x: Any) -> Any:
        x += 1
        return x

    op = gossamer.custom_op("Careless", shape="x")(careless)
    made = interpreter(op)
    assert all("an array is changed that shares its elements with another" in reason for reason in refusals(made))

    def odd(x: Any) -> Any:
        if isinstance(x, np.ndarray):
            raise ValueError("odd")
        return x

    made = interpreter(gossamer.custom_op("Odd", shape="x")(odd))
    assert refusals(made) == []
    with pytest.raises(gossamer.InvokeError, match="ValueError: odd"):
        run(made, [X])


def test_variables_and_what_operators_keep_are_as_if_nobody_had_looked() -> None:
    make = ModelMaker()
    x, y, z, state = (
        make.tensor((1, 3)),
        make.tensor((1, 3)),
        make.tensor((1, 3)),
        make.tensor((1, 6), is_variable=True),
    )
    features, time = (make.constant(one, np.float32, TensorType.FLOAT32) for one in (np.eye(3), np.ones((3, 2))))
    make.op("SVDF", [x, features, time, -1, state], [y], SVDFOptions(rank=1))
    make.op("Double", [y], [z], custom=True)
    make.io([x], [z])
    op = gossamer.custom_op("Double", shape="x")(lambda x: x * 2)
    made = gossamer.Interpreter(model_content=make.model(), custom_ops=[op])
    made.allocate_tensors()
    assert refusals(made) == []
    value = np.float32([[1, 2, 3]])
    np.testing.assert_array_equal(run(made, [value])[0], value * 2)
    np.testing.assert_array_equal(run(made, [value])[0], value * 4)


# Lowerings of the user's own


def test_an_operator_states_itself() -> None:
    def lower(graph: Lowering) -> None:
        x = graph.value(0)
        graph.result(graph.map("mul", x, graph.scalar(graph.data["factor"], x)))

    @gossamer.custom_op("Scale", lower=lower)
    def scale(x: Any, *, factor: float = 2.0) -> Any:
        return x * np.float32(factor)

    made = interpreter_of(scale, [tensor(X)], [X])
    assert refusals(made) == []
    np.testing.assert_array_equal(run(made, [X])[0], X * 2)
    assert kernel_of(made).is_checked


def test_an_operator_that_states_itself_wrongly_is_found_out() -> None:
    op = gossamer.custom_op("Scale")(lambda x: x * 2)

    @op.lower
    def lower(graph: Lowering) -> None:
        graph.result(graph.map("abs", graph.value(0)))

    made = interpreter_of(op, [tensor(X)], [X])
    assert refusals(made) == []
    np.testing.assert_array_equal(run(made, [X])[0], X * 2)
    assert not kernel_of(made).is_checked


def test_a_lowering_may_refuse() -> None:
    def lower(graph: Lowering) -> None:
        graph.refuse("not on a Monday")

    op = gossamer.custom_op("Scale", lower=lower)(lambda x: x * 2)
    made = interpreter_of(op, [tensor(X)], [X])
    assert refusals(made) == ["not on a Monday"]
    np.testing.assert_array_equal(run(made, [X])[0], X * 2)


def test_a_class_states_itself() -> None:
    class Scale:
        def __init__(self, *, factor: float = 3.0) -> None:
            self.factor = factor

        def prepare(self, ctx: Any) -> None:
            ctx.set_shape(0, ctx.input(0).shape)

        def invoke(self, ctx: Any) -> Any:
            return ctx.value(0) * np.float32(self.factor)

        def lower(self, graph: Lowering) -> None:
            x = graph.value(0)
            graph.result(graph.map("mul", x, graph.scalar(self.factor, x)))

    op = gossamer.custom_op("Scale")(Scale)
    made = interpreter_of(op, [tensor(X)], [X])
    assert refusals(made) == []
    np.testing.assert_array_equal(run(made, [X])[0], X * 3)


# What is alike


@pytest.mark.parametrize(
    ("got", "expected", "found"),
    [
        (np.float32([1, 2]), np.float32([1, 2]), ""),
        (np.float32([1, 2 + 1e-5]), np.float32([1, 2]), ""),
        (np.float32([1, 2.001]), np.float32([1, 2]), "by up to 0.00099"),
        (np.float32([np.nan, np.inf]), np.float32([np.nan, np.inf]), ""),
        (np.float32([np.nan, 1]), np.float32([0, 1]), "by up to inf: nan instead of 0.0 at [0]"),
        (np.float32([np.inf, 1]), np.float32([-np.inf, 1]), "by up to inf: inf instead of -inf at [0]"),
        (np.int32([1, 5]), np.int32([1, 3]), "by up to 2: 5 instead of 3 at [1]"),
        (np.bool_([True]), np.bool_([False]), "by up to 1: True instead of False at [0]"),
        (np.float32(3), np.float32(4), "by up to 1: 3.0 instead of 4.0"),
        (np.float32([3]), np.float64([3]), "float64 [1] is float32 [1]"),
        (np.zeros((0, 2), np.float32), np.zeros((0, 2), np.float32), ""),
    ],
)
def test_differences(got: Any, expected: Any, found: str) -> None:
    assert difference(np.asarray(got), np.asarray(expected)).startswith(found)
    assert bool(difference(np.asarray(got), np.asarray(expected))) == bool(found)


def test_called_subgraphs_keep_their_own_programs() -> None:
    """In what an operator calls, a custom operator is compared where it runs by itself."""
    make = ModelMaker()
    flag, x, y = make.tensor((), TensorType.BOOL), make.tensor((2, 3)), make.tensor((2, 3))
    make.op("IF", [flag, x], [y], IfOptions(then_subgraph_index=1, else_subgraph_index=2))
    make.io([flag, x], [y])
    for name in ("Double", "NEG"):
        make.subgraph(name)
        a, b = make.tensor((2, 3)), make.tensor((2, 3))
        make.op(name, [a], [b], custom=name == "Double")
        make.io([a], [b])
    op = gossamer.custom_op("Double", shape="x")(lambda x: x * 2)
    made = gossamer.Interpreter(model_content=make.model(), custom_ops=[op])
    made.allocate_tensors()
    (reason,) = refusals(made)
    assert reason.endswith("a custom operator is compared with its function, for which it must run by itself")
    assert made.delegate_claims(1)[0].refusals == {}
    for value, result in ((True, X * 2), (False, -X), (True, X * 2)):
        np.testing.assert_array_equal(run(made, [np.bool_(value), X])[0], result)
