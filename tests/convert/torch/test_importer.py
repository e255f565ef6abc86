"""Programs as wholes: names, types, symbolic sizes, changes in place, state, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer import Interpreter
from gossamer.convert.importers.torch import _can_be_seen_as
from gossamer.convert.sources.symbolic import Expression, Symbol
from gossamer.errors import ConvertError
from tests.convert.torch.programs import Program, check_one, same

X = np.linspace(-2, 3, 12, dtype=np.float32).reshape(3, 4)
N = Symbol("n")


def test_inputs_and_outputs_have_the_names_of_the_program() -> None:
    p = Program()
    x, y = p.input("x", X), p.input("y", X + 1)
    p.output(p.call("aten.sub.Tensor", X - (X + 1) * 2, self=x, other=y, alpha=2), X - (X + 1) * 2)
    p.output(x, X)
    content, _ = p.convert()
    signature = Interpreter(model_content=content).get_signature_list()["serving_default"]
    assert signature == {"inputs": ["x", "y"], "outputs": ["v0_0", "x"]}
    p.check()


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_floats_are_float32_within(dtype: Any) -> None:
    x = X.astype(dtype)
    assert check_one("aten.add.Tensor", x + 1, self=x, other=1, rtol=1e-3) == ["CAST", "ADD", "CAST"]


def test_what_an_operator_does_not_know_is_refused() -> None:
    p = Program()
    x = p.input("x", X)
    p.call("aten.relu.default", X, self=x, speed=3)
    y = p.call("strange.thing.default", X, x=x)
    p.output(p.call("aten.relu.default", X, self=y), X)
    with pytest.raises(ConvertError, match=r"2 of 2 operators(.|\n)*argument speed(.|\n)*strange") as error:
        p.convert()
    assert "v2_0" not in str(error.value)  # what needs it is no cause


def test_a_result_that_nobody_computes_is_refused_where_it_is_needed() -> None:
    p = Program()
    weight = np.ones(4, np.float32)
    found = p.call("aten._fused_rms_norm.default", [X, X[:, :1]], input=p.input("x", X), normalized_shape=[4],
                   weight=p.stored("w", weight), eps=0.0)  # fmt: skip
    p.output(found[1], X[:, :1])
    with pytest.raises(ConvertError, match="needed cannot be computed"):
        p.convert()


# -- changes in place


def test_a_change_shows_in_all_that_shows_the_same() -> None:
    p = Program()
    x = p.call("aten.clone.default", X, self=p.input("x", X))
    row = p.call("aten.select.int", X[1], self=x, dim=0, index=1)
    flat = p.call("aten.view.default", X.reshape(-1), self=x, size=[12])
    part = p.call("aten.slice.Tensor", X[:, 1:3], self=x, dim=1, start=1, end=3)
    p.call("aten.add_.Tensor", X[1] + 10, self=row, other=10)
    p.call("aten.mul_.Tensor", X[:, 1:3] * 2, self=part, other=2)
    wanted = X.copy()
    wanted[1] += 10
    wanted[:, 1:3] *= 2
    for value, expected in ((x, wanted), (row, wanted[1]), (flat, wanted.reshape(-1)), (part, wanted[:, 1:3])):
        p.output(value, expected)
    p.check()


@pytest.mark.parametrize(
    ("target", "shown", "arguments"),
    [
        ("aten.transpose.int", X.T, {"dim0": 0, "dim1": 1}),
        ("aten.permute.default", X.T, {"dims": [1, 0]}),
        ("aten.t.default", X.T, {}),
        ("aten.unsqueeze.default", X[:, None], {"dim": 1}),
        ("aten.select.int", X[:, 2], {"dim": 1, "index": 2}),
        ("aten.narrow.default", X[:, 1:3], {"dim": 1, "start": 1, "length": 2}),
        ("aten.slice.Tensor", X[:, ::2], {"dim": 1, "step": 2}),
        ("aten.slice.Tensor", X[-2:], {"start": -2}),
        ("aten.diagonal.default", np.diagonal(X), {}),
        ("aten.detach.default", X, {}),
    ],
)
def test_views_hand_changes_back(target: str, shown: Any, arguments: dict[str, Any]) -> None:
    p = Program()
    x = p.call("aten.clone.default", X, self=p.input("x", X))
    view = p.call(target, np.array(shown), self=x, **arguments)
    p.call("aten.neg_.default", -shown, self=view)
    wanted = X.copy()
    {
        "aten.transpose.int": lambda a: a.T,
        "aten.permute.default": lambda a: a.T,
        "aten.t.default": lambda a: a.T,
        "aten.unsqueeze.default": lambda a: a[:, None],
        "aten.select.int": lambda a: a[:, 2],
        "aten.narrow.default": lambda a: a[:, 1:3],
        "aten.slice.Tensor": lambda a: a[-2:] if arguments.get("start") else a[:, ::2],
        "aten.diagonal.default": lambda a: a.reshape(-1)[::5],
        "aten.detach.default": lambda a: a,
    }[target](wanted)[...] *= -1
    p.output(x, wanted)
    p.check()


def test_parts_hand_changes_back() -> None:
    p = Program()
    x = p.call("aten.clone.default", X, self=p.input("x", X))
    _, right = p.call("aten.chunk.default", [X[:, :2], X[:, 2:]], self=x, chunks=2, dim=1)
    p.call("aten.zero_.default", X[:, 2:] * 0, self=right)
    rows = p.call("aten.unbind.int", [X[0], X[1], X[2]], self=x)
    p.call("aten.fill_.Scalar", X[0] * 0 + 7, self=rows[1], value=7)
    wanted = X.copy()
    wanted[:, 2:] = 0
    wanted[1] = 7
    p.output(x, wanted)
    p.check()


def test_a_reshape_is_a_view_only_where_the_memory_is() -> None:
    p = Program()
    x = p.call("aten.clone.default", X, self=p.input("x", X))
    turned = p.call("aten.t.default", X.T, self=x)
    copied = p.call("aten.reshape.default", X.T.reshape(-1), self=turned, shape=[12])
    p.call("aten.zero_.default", X.reshape(-1) * 0, self=copied)
    p.output(x, X)
    p.check()
    assert _can_be_seen_as((2, 3, 4), (12, 4, 1), (6, 4))
    assert _can_be_seen_as((2, 3, 4), (24, 4, 1), (2, 12))
    assert not _can_be_seen_as((2, 3, 4), (24, 4, 1), (6, 4))
    assert _can_be_seen_as((2, 1, 4), (4, 99, 1), (8,))
    assert not _can_be_seen_as((3, 4), (1, 3), (12,))


def test_a_buffer_that_changes_keeps_its_value_from_call_to_call() -> None:
    p = Program()
    count = p.stored("total", np.zeros(4, np.float32), "buffer")
    x = p.input("x", X[0])
    p.output(p.call("aten.add_.Tensor", X[0], self=count, other=x), X[0])
    result = p.check({"x": X[1]})
    same(result.outputs["v0_0"], X[0] + X[1])
    assert "VAR_HANDLE" in result.operators


def test_a_new_value_of_a_buffer_is_kept() -> None:
    p = Program()
    count = p.stored("total", np.zeros(4, np.float32), "buffer")
    new = p.call("aten.add.Tensor", X[0], self=count, other=p.input("x", X[0]))
    p.changed("buffer_mutation", new, "total")
    p.output(p.call("aten.mul.Tensor", X[0] * 2, self=new, other=2), X[0] * 2)
    same(p.check({"x": X[1]}).outputs["v1_0"], (X[0] + X[1]) * 2)


# -- symbolic sizes


def dynamic() -> Program:
    p = Program({"n": (2, None)})
    x = p.input("x", X, (N, 4))
    size = p.call("aten.sym_size.int", N, self=x, dim=0)
    twice = p.call("_operator.mul", Expression("Mul", (2, N)), size, 2)
    y = p.call("aten.view.default", (X.reshape(6, 2), (Expression("Mul", (2, N)), 2)), self=x, size=[twice, 2])
    p.output(y, X.reshape(6, 2))
    places = p.call("aten.arange.default", (np.arange(6), (Expression("Mul", (2, N)),)), end=twice)
    p.output(places, np.arange(6))
    return p


def test_sizes_are_open() -> None:
    result = dynamic().check({"x": np.concatenate([X, X])})
    same(result.outputs["v2_0"], np.concatenate([X, X]).reshape(12, 2))
    same(result.outputs["v3_0"], np.arange(12))


def test_sizes_can_be_given() -> None:
    content, operators = dynamic().convert(batch=3)
    assert operators == ["RESHAPE"]
    found = Interpreter(model_content=content).get_signature_runner()(x=X)
    same(found["v3_0"], np.arange(6))
    with pytest.raises(ConvertError, match="is for 2 to None"):
        dynamic().convert(shapes={"x": (1, 4)})
    with pytest.raises(ConvertError, match="axis 1"):
        dynamic().convert(shapes={"x": (3, 5)})


# -- graphs that operators call


def branch(name: str, target: str, array: Any) -> Any:
    p = Program()
    value = p.input("a", array)
    p.output(p.call(target, array, self=value), array)
    return p.graph(name)


def test_cond() -> None:
    p = Program()
    condition, x = p.input("c", np.array(True)), p.input("x", X)
    branches = [branch("then", "aten.relu.default", X), branch("otherwise", "aten.neg.default", X)]
    (y,) = p.call("higher_order.cond", [np.maximum(X, 0)], condition, *branches, [x])
    p.output(y, np.maximum(X, 0))
    result = p.check({"c": np.array(False), "x": X})
    same(result.outputs[y.name], -X)
    assert result.operators[0] == "IF"


def test_while_loop() -> None:
    step, test = Program(), Program()
    i, x = step.input("i", np.array(0)), step.input("x", X)
    step.output(step.call("aten.add.Tensor", np.array(0), self=i, other=1), np.array(0))
    step.output(step.call("aten.mul.Tensor", X, self=x, other=2), X)
    i = test.input("i", np.array(0))
    test.input("x", X)
    test.output(test.call("aten.lt.Scalar", np.array(True), self=i, other=4), np.array(True))
    p = Program()
    given = [p.input("i", np.array(1)), p.input("x", X)]
    found = p.call("higher_order.while_loop", [np.array(4), X * 8], test.graph("test"), step.graph("step"), given, [])
    p.output(found[0], np.array(4))
    p.output(found[1], X * 8)
    assert p.check().operators[0] == "WHILE"


def test_map_and_scan() -> None:
    body = Program()
    a, b = body.input("a", X[0]), body.input("b", X[0])
    body.output(body.call("aten.add.Tensor", X[0], self=a, other=b), X[0])
    p = Program()
    x, y = p.input("x", X), p.input("y", X[0])
    (z,) = p.call("higher_order.map_impl", [X + X[0]], body.graph("body"), [x], [y])
    p.output(z, X + X[0])
    step = Program()
    a, b = step.input("a", X[0]), step.input("b", X[0])
    step.output(step.call("aten.add.Tensor", X[0], self=a, other=b), X[0])
    step.output(step.call("aten.mul.Tensor", X[0], self=a, other=b), X[0])
    sums = np.cumsum(X, 0) + X[0]
    before = np.concatenate([X[:1], sums[:-1]])
    last, every = p.call("higher_order.scan", [sums[-1], before * X], step.graph("step"), [y], [x], [])
    p.output(last, sums[-1])
    p.output(every, before * X)
    p.check()
