"""Functions of JAX: names, sizes, types, calls of other jaxprs, and what is refused."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from gossamer import ConvertError, Interpreter, TFLiteConverter
from gossamer.convert.report import RefusedError
from gossamer.convert.request import Request
from tests.convert.jax.jaxprs import Jaxpr, Literal, converted, run

F32, I32 = np.float32, np.int32
X = np.arange(6, dtype=F32).reshape(2, 3)


def perceptron(rows: object = 2) -> Jaxpr:
    """relu(x @ w + b)."""
    jaxpr = Jaxpr(((rows, 3), F32))
    weights = jaxpr.const(np.arange(12, dtype=F32).reshape(3, 4) - 5)
    bias = jaxpr.const(np.arange(4, dtype=F32))
    dims = (((1,), (0,)), ((), ()))
    product = jaxpr.add("dot_general", jaxpr.invars[0], weights, gives=(rows, 4), dimension_numbers=dims)
    row = jaxpr.add("broadcast_in_dim", bias, gives=(1, 4), shape=(1, 4), broadcast_dimensions=(1,))
    added = jaxpr.add("add", product, row, gives=(rows, 4))
    return jaxpr.returns(jaxpr.add("max", added, 0.0, gives=(rows, 4)))


def expected(x: np.ndarray) -> np.ndarray:
    return np.maximum(x @ (np.arange(12, dtype=F32).reshape(3, 4) - 5) + np.arange(4, dtype=F32), 0)


def test_a_layer_is_one_operator() -> None:
    result = run(perceptron(), X)
    np.testing.assert_allclose(result.value, expected(X), rtol=1e-6)
    assert result.operators == ["FULLY_CONNECTED"]


def test_sizes_that_are_symbols_are_open() -> None:
    """JAX prints them so; nothing else of its symbols is used."""
    interpreter = Interpreter(model_content=converted(perceptron("b")).to_bytes())
    assert interpreter.get_input_details()[0]["shape_signature"].tolist() == [-1, 3]
    for rows in (1, 5):
        x = np.ones((rows, 3), F32) * np.arange(rows, dtype=F32)[:, None]
        np.testing.assert_allclose(interpreter.get_signature_runner()(x0=x)["y0"], expected(x), rtol=1e-6)


def test_an_open_size_is_fixed_by_its_name_or_as_the_batch() -> None:
    for request in (Request(batch=7), Request(shapes={"x0": [7, 3]})):
        interpreter = Interpreter(model_content=converted(perceptron("b"), request).to_bytes())
        assert interpreter.get_input_details()[0]["shape"].tolist() == [7, 3]
        assert interpreter.get_input_details()[0]["shape_signature"].tolist() == [7, 3]
    with pytest.raises(ConvertError, match="has 3 elements along axis 1: trace another example"):
        converted(perceptron("b"), Request(shapes={"x0": [7, 4]}))


@pytest.mark.parametrize(
    ("size", "number"),
    [("2*b", 8), ("b + 1", 5), ("floordiv(b, 2)", 2), ("mod(b, 3)", 1), ("3*b - 2", 10), ("max(b, 2)", 4), ("b^2", 16)],
)
def test_sizes_are_computed_as_jax_writes_them(size: str, number: int) -> None:
    jaxpr = Jaxpr((("b",), F32))
    result = run(jaxpr.returns(jaxpr.add("dim_as_value", gives=(), dtype=I32, dim=size)), np.zeros(4, F32))
    assert result.value == number


def test_a_size_that_cannot_be_read_is_an_error() -> None:
    with pytest.raises(ConvertError, match="cannot be read"):
        converted(Jaxpr((("b if a else c",), F32)))


def test_numbers_along_an_open_axis() -> None:
    jaxpr = Jaxpr((("b", 3), F32))
    count = jaxpr.add("iota", gives=("2*b", 3), dtype=I32, dimension=0, shape=("2*b", 3))
    result = run(jaxpr.returns(count), np.zeros((4, 3), F32))
    np.testing.assert_array_equal(result.value, np.indices((8, 3))[0])


def test_what_is_called_takes_the_place_of_the_call() -> None:
    """Whatever the primitive is called: jit, remat2, custom_jvp_call …, if its one jaxpr takes the same operands."""
    inner = Jaxpr(((2, 3), F32))
    inner.returns(inner.add("sin", inner.invars[0], gives=(2, 3)))
    for name, parameter in (("jit", "jaxpr"), ("custom_vjp_call", "call_jaxpr"), ("what_comes_next", "fun_jaxpr")):
        outer = Jaxpr(((2, 3), F32))
        (made,) = outer.many(name, outer.invars[0], gives=[((2, 3), F32)], **{parameter: inner})
        np.testing.assert_allclose(run(outer.returns(made), X).value, np.sin(X), rtol=1e-6)


def test_floats_are_float32_between_inputs_and_outputs() -> None:
    jaxpr = Jaxpr(((3,), np.float16))
    tripled = jaxpr.add("mul", jaxpr.invars[0], np.array(3, np.float16), gives=(3,), dtype=np.float16)
    x = np.array([0.5, 1000, -3], np.float16)
    result = run(jaxpr.returns(tripled), x)
    assert result.value.dtype == np.float16
    np.testing.assert_array_equal(result.value, x * 3)


def test_an_input_that_is_a_result_and_a_result_that_is_a_constant() -> None:
    jaxpr = Jaxpr(((2, 3), F32))
    result = run(jaxpr.returns(jaxpr.invars[0], Literal(np.arange(3, dtype=I32))), X)
    np.testing.assert_array_equal(result.values[0], X)
    np.testing.assert_array_equal(result.values[1], np.arange(3))


def test_all_that_cannot_be_converted_is_named_at_once() -> None:
    jaxpr = Jaxpr(((2, 3), F32))
    odd = jaxpr.add("igamma", jaxpr.invars[0], jaxpr.invars[0], gives=(2, 3))
    drawn = jaxpr.add("random_bits", jaxpr.invars[0], gives=(2, 3))
    after = jaxpr.add("add", odd, drawn, gives=(2, 3))
    unused = jaxpr.add("zeta", jaxpr.invars[0], jaxpr.invars[0], gives=(2, 3))
    assert unused is not None
    with pytest.raises(RefusedError, match="2 of 2 operators") as caught:
        converted(jaxpr.returns(after))
    assert "igamma is no primitive that can be converted" in str(caught.value)
    assert "pass random numbers as an input, or use a fixed key" in str(caught.value)


def test_a_refusal_says_where_the_operator_was_written() -> None:
    jaxpr = Jaxpr(((2, 3), F32))
    made = jaxpr.add("igamma", jaxpr.invars[0], jaxpr.invars[0], gives=(2, 3))
    frames = [
        SimpleNamespace(file_name="/site-packages/jax/numpy.py", line_num=3),
        SimpleNamespace(file_name="/home/me/model.py", line_num=42),
    ]
    jaxpr.eqns[0].source_info = SimpleNamespace(name_stack="Dense_0", traceback=SimpleNamespace(frames=frames))
    with pytest.raises(RefusedError, match=r"'Dense_0/igamma_1': .* \(model.py, line 42\)"):
        converted(jaxpr.returns(made))


def test_what_only_constants_go_into_jax_computes_itself() -> None:
    """Here random bits of a key, which no tensor holds."""
    key = SimpleNamespace(name="key<fry>")
    jaxpr = Jaxpr(((2,), F32))
    seeded = jaxpr.add("random_seed", np.array(7, I32), gives=(), dtype=key)
    bits = jaxpr.add("random_bits", seeded, gives=(2,), dtype=np.uint32, shape=(2,))
    number = jaxpr.add("convert_element_type", bits, gives=(2,), new_dtype=F32)
    jaxpr.eqns[0].primitive.bind = lambda seed: ("key", int(seed))
    jaxpr.eqns[1].primitive.bind = lambda key, shape: np.full(shape, key[1] * 10, np.uint32)
    for equation in jaxpr.eqns[:2]:
        equation.primitive.multiple_results = False
    result = run(jaxpr.returns(jaxpr.add("add", number, jaxpr.invars[0], gives=(2,))), np.ones(2, F32))
    assert result.value.tolist() == [71, 71]
    with pytest.raises(ConvertError, match="which no tensor holds"):
        converted(jaxpr.returns(seeded))
    with pytest.raises(ConvertError, match="which no tensor has"):
        converted(Jaxpr(((), key)))


class Key(SimpleNamespace):
    """A part of a path through lists and dictionaries."""


def test_names_of_inputs_and_results(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for JAX gives the jaxpr and the paths."""
    jaxpr = Jaxpr(((2, 3), F32), ((2, 3), F32))
    total = jaxpr.add("add", *jaxpr.invars, gives=(2, 3))
    jaxpr.returns(total, jaxpr.invars[0])
    inputs = [([Key(idx=0)], X), ([Key(idx=1), Key(key="left"), Key(idx=0)], X)]
    results = [([Key(key="sum")], X), ([Key(idx=1)], X)]
    paths = iter([])
    tree_util = SimpleNamespace(tree_flatten_with_path=lambda tree: (next(paths), None))
    jax = SimpleNamespace(make_jaxpr=lambda f, return_shape: lambda *examples: (jaxpr, None), tree_util=tree_util)
    monkeypatch.delitem(sys.modules, "jax", raising=False)

    def function(x: object, state: object) -> None:
        """Is never called."""

    with pytest.raises(ConvertError, match="need jax, which this process has not imported"):
        TFLiteConverter.from_jax(function, X, X).convert()
    monkeypatch.setitem(sys.modules, "jax", jax)
    paths = iter([inputs, results])
    converter = TFLiteConverter.from_jax(function, X, {"left": [X]})
    runner = Interpreter(model_content=converter.convert()).get_signature_runner()
    assert set(runner.get_input_details()) == {"x", "state_left_0"}
    assert set(runner(x=X, state_left_0=X)) == {"sum", "output_1"}
    assert [entry.origin.op for entry in converter.report] == ["add"]
    paths = iter([inputs, results])
    converter = TFLiteConverter.experimental_from_jax([function], [[("a", X), ("b", X)]])
    runner = Interpreter(model_content=converter.convert()).get_signature_runner()
    np.testing.assert_array_equal(runner(a=X, b=X)["sum"], 2 * X)
    paths = iter([inputs, results])
    with pytest.raises(ConvertError, match="there are 2 results, and 1 names for them"):
        TFLiteConverter.from_jax(function, X, X, outputs=["y"]).convert()
    paths = iter([inputs, results])
    with pytest.raises(ConvertError, match="several inputs have the same name: a, a"):
        TFLiteConverter.from_jax(function, X, X, names=["a", "a"]).convert()
    with pytest.raises(ConvertError, match="one function with its inputs"):
        TFLiteConverter.experimental_from_jax([function, function], [[], []])
