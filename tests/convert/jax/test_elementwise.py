"""Arithmetic, comparisons, bits and types."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer.convert.report import RefusedError
from tests.convert.jax.jaxprs import Jaxpr, Literal, converted, run, run_one

F32, I32 = np.float32, np.int32
X = np.array([[-2.5, -0.5, 0.0], [0.5, 1.5, 3.25]], F32)
K = np.array([-7, -1, 0, 5, 9], I32)


@pytest.mark.parametrize(
    ("name", "params", "expected"),
    [
        ("abs", {}, np.abs(X)),
        ("floor", {}, np.floor(X)),
        ("is_finite", {}, np.isfinite(X)),
        ("exp2", {}, np.exp2(X)),
        ("cbrt", {}, np.cbrt(X)),
        ("square", {}, X * X),
        ("round", {"rounding_method": 1}, np.round(X)),
        ("round", {"rounding_method": 0}, np.trunc(X + np.copysign(F32(0.5), X))),
        ("integer_pow", {"y": 5}, X**5),
        ("integer_pow", {"y": 0}, X**0),
        ("convert_element_type", {"new_dtype": np.dtype(I32)}, X.astype(I32)),
        ("convert_element_type", {"new_dtype": np.dtype(bool)}, X != 0),
        ("reduce_precision", {"exponent_bits": 5, "mantissa_bits": 10}, X),
        ("bitcast_convert_type", {"new_dtype": np.dtype(I32)}, X.view(I32)),
    ],
)
def test_functions_of_one_value(name: str, params: dict[str, object], expected: np.ndarray) -> None:
    result = run_one(name, X, gives=expected, **params)
    assert result.value.dtype == expected.dtype
    np.testing.assert_allclose(result.value, expected, rtol=1e-6, atol=1e-6)


def test_a_negative_power_divides() -> None:
    np.testing.assert_allclose(run_one("integer_pow", X[1], gives=X[1], y=-3).value, X[1] ** -3, rtol=1e-6)


@pytest.mark.parametrize("divisor", [2.0, -0.75])
def test_what_is_left_of_floats_is_exact(divisor: float) -> None:
    x = np.array([5.5, -5.5, 1e7, -3, 0.1], F32)
    result = run_one("rem", x, np.full(5, divisor, F32), gives=x)
    np.testing.assert_array_equal(result.value, np.fmod(x, F32(divisor)))


def test_integers_are_divided_towards_zero_and_by_nothing_without_an_error() -> None:
    by = np.array([2, 3, 0, -2, 0], I32)
    assert run_one("div", K, by, gives=K).value.tolist() == [-3, 0, -1, -2, -1]
    assert run_one("rem", K, by, gives=K).value.tolist() == [-1, -1, 0, 1, 9]
    assert run_one("div", K, Literal(I32(2)), gives=K).operators == ["DIV"]


def test_bounds_that_bound_nothing_are_gone() -> None:
    """jax.nn.softmax takes the maximum of the maximum and -inf."""
    assert run_one("max", Literal(F32(-np.inf)), X, gives=X).operators == []
    assert run_one("min", X, Literal(F32(np.inf)), gives=X).operators == []


def test_clamp() -> None:
    result = run_one("clamp", Literal(F32(-1)), X, Literal(F32(2)), gives=X)
    np.testing.assert_array_equal(result.value, np.clip(X, -1, 2))


def test_select_by_truth_and_by_number() -> None:
    positive = X > 0
    np.testing.assert_array_equal(run_one("select_n", positive, -X, X, gives=X).value, np.abs(X))
    which = np.array([[0, 1, 2], [2, 1, 0]], I32)
    cases = [X, X + 10, X + 20]
    np.testing.assert_array_equal(run_one("select_n", which, *cases, gives=X).value, np.choose(which, cases))


def test_logic_and_bits() -> None:
    other = np.array([3, 6, 5, 12, -1], I32)
    for name, function in (("and", np.bitwise_and), ("or", np.bitwise_or), ("xor", np.bitwise_xor)):
        np.testing.assert_array_equal(run_one(name, K, other, gives=K).value, function(K, other))
        truths = [K > 0, other > 4]
        np.testing.assert_array_equal(run_one(name, *truths, gives=truths[0]).value, function(*truths))
    np.testing.assert_array_equal(run_one("not", K, gives=K).value, ~K)
    two = Literal(I32(2))
    np.testing.assert_array_equal(run_one("shift_left", K, two, gives=K).value, K << 2)
    np.testing.assert_array_equal(run_one("shift_right_arithmetic", K, two, gives=K).value, K >> 2)
    logical = (K.view(np.uint32) >> 2).view(I32)
    np.testing.assert_array_equal(run_one("shift_right_logical", K, two, gives=K).value, logical)
    with pytest.raises(RefusedError, match="as only values tell"):
        run_one("shift_right_logical", K, other, gives=K)


def test_small_integers_are_numbers_and_wrap() -> None:
    small = np.array([100, -100, 3], np.int8)
    np.testing.assert_array_equal(run_one("add", small, small, gives=small).value, small + small)


def test_complex_numbers() -> None:
    z = np.array([1 + 2j, -3 + 0.5j], np.complex64)
    np.testing.assert_allclose(run_one("mul", z, z, gives=z).value, z * z, rtol=1e-6)
    np.testing.assert_allclose(run_one("abs", z, gives=z.real).value, np.abs(z), rtol=1e-6)
    np.testing.assert_array_equal(run_one("complex", z.real, z.imag, gives=z).value, z)
    np.testing.assert_array_equal(run_one("conj", z, gives=z).value, z.conj())
    np.testing.assert_array_equal(run_one("ne", z, z[::-1].copy(), gives=z == z).value, [True, True])


def test_constants_that_repeat_their_elements_take_no_memory() -> None:
    """A mask of a million elements is made of two vectors; neither is stored in its whole shape."""
    jaxpr = Jaxpr(((1000, 1000), F32))
    rows, columns = [
        jaxpr.add("iota", gives=(1000, 1000), dtype=I32, dimension=axis, shape=(1000, 1000)) for axis in (0, 1)
    ]
    seen = jaxpr.add("ge", rows, columns, gives=(1000, 1000), dtype=bool)
    none = jaxpr.add("broadcast_in_dim", -1.0, gives=(1000, 1000), broadcast_dimensions=())
    jaxpr.returns(jaxpr.add("select_n", seen, none, jaxpr.invars[0], gives=(1000, 1000)))
    assert len(converted(jaxpr).to_bytes()) < 20_000
    x = np.arange(10**6, dtype=F32).reshape(1000, 1000)
    np.testing.assert_array_equal(run(jaxpr, x).value, np.where(np.tri(1000, dtype=bool), x, -1))


def test_a_large_constant_that_must_be_whole_is_repeated_when_the_model_runs() -> None:
    jaxpr = Jaxpr(((1, 600), F32))
    zeros = jaxpr.add("broadcast_in_dim", 0.0, gives=(600, 600), broadcast_dimensions=())
    joined = jaxpr.add("concatenate", zeros, jaxpr.invars[0], gives=(601, 600), dimension=0)
    assert len(converted(jaxpr.returns(joined)).to_bytes()) < 5_000
    assert run(jaxpr, np.ones((1, 600), F32)).value.sum() == 600
