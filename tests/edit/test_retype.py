"""Types of inputs and outputs: what goes in and comes out stands for the same numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer import Builder, EditError, edit
from gossamer.model import Model
from gossamer.schema import TensorType
from tests.edit.models import integer_net, picture_net, reread, run, weights

X = np.float32([[1.25, -1, 0.5, 2]])


def ends(model: Model) -> list[tuple[str, str]]:
    main = model.subgraphs[0]
    return [(main.tensors[n].name, main.tensors[n].type.name) for n in (*main.inputs, *main.outputs)]


def quantized(value: Any, dtype: Any = np.int8) -> Any:
    scaled = np.float32(value) / np.float32(0.1)
    return (np.trunc(scaled + np.copysign(np.float32(0.5), scaled)) - 3).astype(dtype)


def test_what_quantizes_is_left_out() -> None:
    model = integer_net()
    inner = reread(edit.retype(model, "int8", "int8"))
    assert ends(inner) == [("x", "INT8"), ("y", "INT8")]
    assert [inner.operator_name(one) for one in inner.subgraphs[0].operators] == ["FULLY_CONNECTED", "SOFTMAX"]
    (y,) = run(inner, quantized(X))
    assert np.array_equal(np.float32(1 / 256) * (y.astype(np.int32) + 128).astype(np.float32), run(model, X)[0])


def test_and_put_there_again() -> None:
    model = integer_net()
    again = reread(edit.retype(edit.retype(model, "int8", "int8"), "float32", "float32"))
    assert ends(again) == ends(model) == [("x", "FLOAT32"), ("y", "FLOAT32")]
    assert np.array_equal(run(again, X)[0], run(model, X)[0])


def test_uint8_is_int8_and_128() -> None:
    inner = edit.retype(integer_net(), "int8", "int8")
    unsigned = reread(edit.retype(inner, "uint8", "uint8"))
    x = quantized(X)
    assert np.array_equal(run(unsigned, (x.astype(int) + 128).astype(np.uint8))[0].astype(int) - 128, run(inner, x)[0])
    back = edit.retype(unsigned, "int8", "int8")
    assert np.array_equal(run(back, x)[0], run(inner, x)[0])
    assert len(back.subgraphs[0].operators) == 2


def test_floats_by_a_scale_that_is_said() -> None:
    model = picture_net()
    small = reread(edit.retype(model, {"x": ("uint8", 1 / 255, 0)}, {"scores": ("int8", 0.5, 0)}))
    pixels = np.random.default_rng(0).integers(0, 256, (1, 8, 8, 3)).astype(np.uint8)
    floats = np.float32(1 / 255) * pixels.astype(np.float32)
    expected = run(model, floats)[0] / np.float32(0.5)
    rounded = np.clip(np.trunc(expected + np.copysign(np.float32(0.5), expected)), -128, 127)
    assert np.array_equal(run(small, pixels)[0], rounded.astype(np.int8))
    with pytest.raises(EditError, match="input 'x' is float32: say scale and zero point of int8"):
        edit.retype(model, "int8")
    with pytest.raises(EditError, match="a scale is a number above 0"):
        edit.retype(model, ("int8", 0, 0))


def index_net(type: str) -> Model:
    b = Builder()
    x, i = b.input("x", (5, 2)), b.input("i", (3,), type)
    b.output("y", b.add("GATHER", x, i))
    b.output("most", b.add("ARG_MAX", x, 0, type=type, output_type=type))
    return reread(b.finish())


def test_indices_are_cast() -> None:
    model, x, i = index_net("int64"), weights(5, 2), [4, 0, 2]
    small = reread(edit.retype(model, {"i": "int32"}, {"most": "int32"}))
    expected = run(model, x, np.int64(i))
    found = run(small, x, np.int32(i))
    assert np.array_equal(found[0], expected[0])
    assert found[1].dtype == np.int32
    assert np.array_equal(found[1], expected[1])
    back = edit.retype(small, {"i": "int64"}, {"most": "int64"})
    assert [back.operator_name(one) for one in back.subgraphs[0].operators] == ["GATHER", "ARG_MAX"]
    assert back.subgraphs[0].tensors[back.subgraphs[0].inputs[1]].type == TensorType.INT64


def test_signatures_follow() -> None:
    inner = edit.retype(integer_net(), "int8", "int8")
    (signature,) = inner.signature_defs
    assert signature.inputs[0].tensor_index == inner.subgraphs[0].inputs[0]
    assert signature.outputs[0].tensor_index == inner.subgraphs[0].outputs[0]


def test_what_it_is_already_leaves_the_file_as_it_is() -> None:
    model = integer_net()
    assert edit.retype(model, "float32", "float32") is model


def test_types_that_one_cannot_have() -> None:
    b = Builder()
    b.output("y", b.add("EQUAL", b.input("x", (2,), "string"), b.input("z", (2,), "string")))
    with pytest.raises(EditError, match="input 'x' is string, it cannot be int32"):
        edit.retype(b.finish(), {"x": "int32"})
    with pytest.raises(EditError, match="there is no type 'int9'"):
        edit.retype(picture_net(), "int9")
    with pytest.raises(EditError, match="'sum' is no input; the inputs are 'x'"):
        edit.retype(picture_net(), {"sum": "int8"})
    with pytest.raises(EditError, match="no input can be int64"):
        edit.retype(picture_net(), "int64")
