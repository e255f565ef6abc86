"""Operators replaced, put in, taken out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gossamer
from gossamer import Builder, EditError, edit
from gossamer.model import Model
from gossamer.schema import flexbuffers
from tests.edit.models import loop_net, picture_net, reread, run, weights

X = weights(1, 8, 8, 3)


def names(model: Model) -> list[str]:
    return [model.operator_name(one) for one in model.subgraphs[0].operators]


def test_other_options() -> None:
    model = picture_net()
    plain = reread(edit.replace(model, "sum", options={"activation": "NONE"}))
    first, second = (run(reread(edit.cut(model, outputs=name)), X)[0] for name in ("first", "second"))
    assert np.array_equal(run(edit.cut(plain, outputs="sum"), X)[0], first + second)
    assert plain.subgraphs[0].operators[2].builtin_options != model.subgraphs[0].operators[2].builtin_options
    assert edit.replace(model, "sum", options={"activation": "RELU"}) is model


def test_another_builtin() -> None:
    model = picture_net()
    other = reread(edit.replace(model, "node:2", "MAXIMUM"))
    assert names(other)[2] == "MAXIMUM"
    first, second = (run(reread(edit.cut(model, outputs=name)), X)[0] for name in ("first", "second"))
    assert np.array_equal(run(edit.cut(other, outputs="sum"), X)[0], np.maximum(first, second))
    assert "ADD" not in [code.builtin_code.name for code in other.operator_codes]


def test_a_custom_operator_and_back() -> None:
    model = picture_net()
    custom = reread(edit.replace(model, "sum", "Mine", custom=True, options={"factor": 2.0}))
    assert flexbuffers.loads(custom.custom_options(custom.subgraphs[0].operators[2]).tobytes()) == {"factor": 2.0}
    more = edit.replace(custom, "sum", options={"bias": 1})
    assert flexbuffers.loads(more.custom_options(more.subgraphs[0].operators[2]).tobytes()) == {
        "factor": 2.0,
        "bias": 1,
    }

    @gossamer.custom_op("Mine", shape="a")
    def mine(a: Any, b: Any, *, factor: float = 1.0) -> Any:
        return np.maximum(a + b, 0)

    interpreter = gossamer.Interpreter(model_content=bytes(custom), custom_ops=[mine])
    assert np.array_equal(interpreter.get_signature_runner()(x=X)["scores"], run(model, X)[0])
    back = reread(edit.replace(custom, "sum", "ADD", options={"activation": "RELU"}))
    assert np.array_equal(run(back, X)[0], run(model, X)[0])
    assert names(back) == names(model)


def test_other_operands_leave_what_nobody_needs_behind() -> None:
    other = reread(edit.replace(picture_net(), "sum", inputs=["first", "first"]))
    assert names(other) == ["CONV_2D", "ADD", "MEAN", "RESHAPE", "FULLY_CONNECTED"]
    assert "second" not in [tensor.name for tensor in other.subgraphs[0].tensors]


def test_one_more_operator() -> None:
    model = picture_net()
    double = reread(edit.insert(model, "sum", "MUL", 2.0))
    assert names(double) == ["CONV_2D", "CONV_2D", "ADD", "MUL", "MEAN", "RESHAPE", "FULLY_CONNECTED"]
    assert np.array_equal(run(edit.cut(double, outputs="mean"), X)[0], 2 * run(edit.cut(model, outputs="mean"), X)[0])
    behind = reread(edit.insert(model, "scores", "NEG", name="negative"))
    assert np.array_equal(run(behind, X)[0], -run(model, X)[0])
    assert behind.signature_defs[0].outputs[0].name == "scores"
    before = reread(edit.insert(model, "x", "RELU"))
    assert np.array_equal(run(before, X)[0], run(model, np.maximum(X, 0))[0])
    mine = edit.insert(model, "first", "Mine", custom=True, options={"a": 1})
    assert names(mine)[1] == "Mine"


def test_one_operator_less() -> None:
    model = picture_net()
    less = reread(edit.delete(edit.insert(model, "sum", "MUL", 2.0), "node:3"))
    assert names(less) == names(model)
    assert np.array_equal(run(less, X)[0], run(model, X)[0])
    assert names(edit.delete(model, "second")) == ["CONV_2D", "ADD", "MEAN", "RESHAPE", "FULLY_CONNECTED"]
    last = edit.delete(edit.insert(model, "scores", "NEG", name="negative"), "negative")
    assert np.array_equal(run(reread(last), X)[0], run(model, X)[0])
    assert last.subgraphs[0].tensors[last.subgraphs[0].outputs[0]].name == "negative"


def test_operators_of_subgraphs() -> None:
    model = edit.replace(loop_net(), "more", "MUL", subgraph=2)
    x, i = np.float32([1, 2]), np.int32(1)
    assert np.array_equal(run(reread(model), x, i)[0], np.square(np.square(2 * x)) + 1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: edit.replace(m, "sum", "ADDD"), "there is no operator 'ADDD'; did you mean 'ADD'"),
        (lambda m: edit.replace(m, "sum", options={"alpha": 1}), "ADD has no option 'alpha'"),
        (lambda m: edit.replace(m, "sum", "EQUAL"), "EQUAL: .*bool|EQUAL would give"),
        (lambda m: edit.replace(m, "sum", "CONCATENATION", options={"axis": 3}), "CONCATENATION would give"),
        (lambda m: edit.replace(m, "sum", "RELU"), r"RELU: needs 1 inputs? .* \(in the place of node 2\)"),
        (lambda m: edit.replace(m, "x", "RELU"), "no operator gives the tensor 'x'"),
        (lambda m: edit.insert(m, "sum", "ARG_MAX", 0), "ARG_MAX"),
        (lambda m: edit.delete(m, "flat"), r"RESHAPE .* cannot be left out: nothing that it takes is float32"),
    ],
)  # fmt: skip
def test_what_does_not_fit(change: Any, message: str) -> None:
    with pytest.raises(EditError, match=message):
        change(picture_net())


def test_what_gives_two_is_not_left_out() -> None:
    b = Builder()
    one, two = b.add("SPLIT", 0, b.input("x", (4, 2)), num_splits=2)
    b.output("y", b.add("ADD", one, two))
    with pytest.raises(EditError, match=r"SPLIT .node 0. gives 'split', 'split:1': it cannot be left out"):
        edit.delete(b.finish(), 0)
