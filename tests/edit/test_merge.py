"""Models behind each other and side by side."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gossamer
from gossamer import Builder, EditError, edit
from gossamer.model import Model, verify_model
from tests.edit.models import integer_net, loop_net, picture_net, reread, run, weights


def affine(factor: float, name: str = "x", result: str = "y", shape: Any = (2,), **settings: Any) -> Model:
    b = Builder(**settings)
    x = b.input(name, shape)
    b.output(result, b.add("MUL", x, float(factor)))
    return reread(b.finish())


X = np.float32([1, -3])


def test_by_name_by_order_by_word() -> None:
    assert np.array_equal(run(edit.merge(affine(2), affine(3, "y", "z")), X)[0], 6 * X)
    assert np.array_equal(run(edit.merge(affine(2), affine(3, "a", "b")), X)[0], 6 * X)
    assert np.array_equal(run(edit.merge(affine(2), affine(3), affine(5)), X)[0], 30 * X)
    assert np.array_equal(run(edit.merge(affine(2), affine(3), connect={"y": "x"}), X)[0], 6 * X)


def test_what_is_not_connected_stays_outside() -> None:
    b = Builder()
    x, y = b.input("x", (2,)), b.input("y", (2,))
    b.output("sum", b.add("ADD", x, y))
    b.output("difference", b.add("SUB", x, y))
    merged = reread(edit.merge(affine(2, "a", "x"), b.finish()))
    assert [merged.subgraphs[0].tensors[n].name for n in merged.subgraphs[0].inputs] == ["a", "y"]
    total, difference = run(merged, X, np.float32([10, 10]))
    assert np.array_equal(total, 2 * X + 10)
    assert np.array_equal(difference, 2 * X - 10)
    (signature,) = merged.signature_defs
    assert [entry.name for entry in signature.inputs] == ["a", "y"]
    kept = edit.merge(affine(2, "a", "x"), b.finish(), keep=True)
    assert [kept.subgraphs[0].tensors[n].name for n in kept.subgraphs[0].outputs] == ["x", "sum", "difference"]


def test_names_that_both_have_get_a_number() -> None:
    merged = edit.merge(affine(2), affine(3))
    names = [tensor.name for tensor in merged.subgraphs[0].tensors]
    assert len(set(names)) == len(names)
    assert verify_model(merged) == ()


def test_loops_are_called_by_their_new_numbers() -> None:
    x, i = np.float32([1, 5]), np.int32(0)
    merged = reread(edit.merge(loop_net(), loop_net(), connect={"y": "x"}))
    assert len(merged.subgraphs) == 5
    once = run(loop_net(), x, i)[0]
    assert np.array_equal(run(merged, x, i, i)[0], run(loop_net(), once, i)[0])


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        (affine(2), affine(2, shape=(3,)), r"output 'y' does not fit input 'x': its shape is \[2\], not \[3\]"),
        (affine(2), affine(2, shape=(2, 1)), r"its shape is \[2\], not \[2, 1\]"),
        (integer_net(), loop_net(), "it is not clear what goes where: the outputs are 'y', the inputs 'x', 'i'"),
        (affine(2), edit.retype(affine(2), ("int8", 0.5, 0)), "it is float32, not int8; retype one of them"),
    ],
)
def test_what_does_not_fit(first: Model, second: Model, message: str) -> None:
    with pytest.raises(EditError, match=message):
        edit.merge(first, second)


def test_scales_must_be_the_same() -> None:
    first = edit.retype(affine(2), outputs=("int8", 0.5, 0))
    with pytest.raises(EditError, match=r"its scale and zero point are 0.5 and 0, not 0.25 and 1"):
        edit.merge(first, edit.retype(affine(3), ("int8", 0.25, 1)))
    assert np.array_equal(run(edit.merge(first, edit.retype(affine(3), ("int8", 0.5, 0))), X)[0], 6 * X)


def test_open_sizes_fit_any() -> None:
    merged = edit.merge(affine(2, shape=(None,)), affine(3, shape=(2,)))
    assert np.array_equal(run(merged, X)[0], 6 * X)


def test_side_by_side() -> None:
    models = [picture_net(signature="a"), loop_net(), affine(2, signature=None)]
    merged = reread(edit.side_by_side(*models))
    assert list(merged.signatures) == ["a", "serving_default", "main"]
    interpreter = gossamer.Interpreter(model_content=bytes(merged))
    x = weights(1, 8, 8, 3)
    alone = gossamer.Interpreter(model_content=bytes(models[0])).get_signature_runner("a")(x=x)
    assert np.array_equal(interpreter.get_signature_runner("a")(x=x)["scores"], alone["scores"])
    loop = interpreter.get_signature_runner("serving_default")(x=X, i=np.int32(0))
    assert np.array_equal(loop["y"], run(models[1], X, np.int32(0))[0])
    assert np.array_equal(interpreter.get_signature_runner("main")(x=X)["y"], 2 * X)


def test_side_by_side_equal_constants_are_stored_once() -> None:
    model = picture_net()
    twice = edit.side_by_side(model, reread(model), keys=["one", "two"])
    assert list(twice.signatures) == ["one", "two"]
    assert len(bytes(twice)) < 1.5 * len(bytes(model))
    with pytest.raises(EditError, match="2 models have 1 keys"):
        edit.side_by_side(model, model, keys=["one"])


def test_one_model_is_no_merge() -> None:
    with pytest.raises(EditError, match="a merge needs two models or more"):
        edit.merge(affine(2))
