"""Reductions, windows, running results, order, Fourier transforms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.convert.report import RefusedError
from tests.convert.jax.jaxprs import Jaxpr, Literal, run, run_one

F32, I32 = np.float32, np.int32
X = np.random.default_rng(2).normal(size=(2, 6, 4)).astype(F32)


@pytest.mark.parametrize(
    ("name", "function"),
    [("reduce_sum", np.sum), ("reduce_max", np.max), ("reduce_min", np.min), ("reduce_prod", np.prod)],
)
def test_reductions(name: str, function: Any) -> None:
    for axes in ((1,), (0, 2), (0, 1, 2)):
        expected = np.asarray(function(X, axis=axes))
        np.testing.assert_allclose(run_one(name, X, gives=expected, axes=axes).value, expected, rtol=1e-5, atol=1e-6)


def test_truths_and_positions() -> None:
    truth = X > 1
    for name, function in (("reduce_or", np.any), ("reduce_and", np.all), ("reduce_max", np.any)):
        np.testing.assert_array_equal(
            run_one(name, truth, gives=function(truth, axis=1), axes=(1,)).value, function(truth, axis=1)
        )
    for name, function in (("argmax", np.argmax), ("argmin", np.argmin)):
        expected = function(X, axis=1).astype(I32)
        np.testing.assert_array_equal(run_one(name, X, gives=expected, axes=(1,), index_dtype=I32).value, expected)
    with pytest.raises(RefusedError, match="joins the bits of integers"):
        run_one("reduce_and", X.astype(I32), gives=X[0].astype(I32), axes=(0,))


def function_of_two(name: str) -> Jaxpr:
    jaxpr = Jaxpr(((), F32), ((), F32))
    return jaxpr.returns(jaxpr.add(name, *jaxpr.invars, gives=()))


def test_a_reduction_that_is_spelled_as_a_function() -> None:
    expected = X.sum(1) + 3
    result = run_one("reduce", X, Literal(F32(3)), gives=expected, jaxpr=function_of_two("add"), dimensions=(1,))
    np.testing.assert_allclose(result.value, expected, rtol=1e-5, atol=1e-5)
    with pytest.raises(RefusedError, match="no sum, product, maximum or minimum"):
        run_one("reduce", X, Literal(F32(3)), gives=expected, jaxpr=function_of_two("atan2"), dimensions=(1,))


def windows(x: np.ndarray, window: Any, strides: Any, padding: Any, function: Any, outside: float) -> np.ndarray:
    """By their definition."""
    padded = np.pad(x, padding, constant_values=outside)
    view = np.lib.stride_tricks.sliding_window_view(padded, window)
    view = view[tuple([slice(None, None, stride) for stride in strides])]
    return np.asarray(function(view, axis=tuple(range(x.ndim, 2 * x.ndim))))


@pytest.mark.parametrize("window", [(1, 3, 1), (2, 3, 1), (1, 3, 2), (2, 3, 4)])
def test_windows_over_any_axes(window: tuple[int, ...]) -> None:
    strides, padding = (1, 2, 1), ((0, 0), (1, 1), (0, 0))
    common = {"window_dimensions": window, "window_strides": strides, "padding": padding}
    for name, function, outside in (
        ("reduce_window_max", np.max, -np.inf),
        ("reduce_window_min", np.min, np.inf),
        ("reduce_window_sum", np.sum, 0),
    ):
        expected = windows(X, window, strides, padding, function, outside)
        np.testing.assert_allclose(run_one(name, X, gives=expected, **common).value, expected, rtol=1e-5, atol=1e-5)


def test_pictures_are_pooled_by_one_operator() -> None:
    x = np.random.default_rng(3).normal(size=(2, 8, 8, 3)).astype(F32)
    params = {"window_dimensions": (1, 2, 2, 1), "window_strides": (1, 2, 2, 1), "padding": ((0, 0),) * 4}
    expected = windows(x, (1, 2, 2, 1), (1, 2, 2, 1), ((0, 0),) * 4, np.max, 0)
    result = run_one("reduce_window_max", x, gives=expected, **params)
    np.testing.assert_array_equal(result.value, expected)
    assert result.operators == ["MAX_POOL_2D"]
    spelled = run_one("reduce_window", x, Literal(F32(-np.inf)), gives=expected, jaxpr=function_of_two("max"), **params)
    np.testing.assert_array_equal(spelled.value, expected)
    with pytest.raises(RefusedError, match="start with another number"):
        run_one("reduce_window", x, Literal(F32(1)), gives=expected, jaxpr=function_of_two("max"), **params)


@pytest.mark.parametrize("reverse", [False, True])
def test_running_results(reverse: bool) -> None:
    turned = X[:, ::-1] if reverse else X
    for name, function in (
        ("cumsum", np.add),
        ("cumprod", np.multiply),
        ("cummax", np.maximum),
        ("cummin", np.minimum),
        ("cumlogsumexp", np.logaddexp),
    ):
        expected = function.accumulate(turned, axis=1)
        expected = expected[:, ::-1] if reverse else expected
        result = run_one(name, X, gives=expected, axis=1, reverse=reverse)
        np.testing.assert_allclose(result.value, expected, rtol=1e-5, atol=1e-5)


def test_sorting_by_one_key_and_by_two() -> None:
    np.testing.assert_array_equal(
        run_one("sort", X, gives=X, dimension=1, num_keys=1, is_stable=True).value, np.sort(X, 1)
    )
    first, second = np.array([2, 1, 2, 1, 0], I32), np.array([5, 9, 4, 9, 1], I32)
    order = np.lexsort((second, first))
    jaxpr = Jaxpr(((5,), I32), ((5,), I32))
    count = jaxpr.add("iota", gives=(5,), dtype=I32, dimension=0, shape=(5,))
    made = jaxpr.many("sort", *jaxpr.invars, count, gives=[((5,), I32)] * 3, dimension=0, num_keys=2, is_stable=True)
    for value, expected in zip(
        run(jaxpr.returns(*made), first, second).values, (first, second, np.arange(5)), strict=True
    ):
        np.testing.assert_array_equal(value, expected[order])


def test_the_largest() -> None:
    jaxpr = Jaxpr((X.shape, F32))
    made = jaxpr.many("top_k", jaxpr.invars[0], gives=[((2, 2, 4), F32), ((2, 2, 4), I32)], k=2, axis=1)
    values, places = run(jaxpr.returns(*made), X).values
    np.testing.assert_array_equal(values, np.sort(X, 1)[:, :-3:-1])
    np.testing.assert_array_equal(np.take_along_axis(X, places, 1), values)


@pytest.mark.parametrize("length", [4, 6])
def test_fourier_transforms(length: int) -> None:
    x = X[..., 0][:, :length]
    half = np.fft.rfft(x).astype(np.complex64)
    np.testing.assert_allclose(
        run_one("fft", x, gives=half, fft_type=2, fft_lengths=(length,)).value, half, rtol=1e-4, atol=1e-5
    )
    whole = np.fft.fft(x).astype(np.complex64)
    np.testing.assert_allclose(
        run_one("fft", x.astype(np.complex64), gives=whole, fft_type=0, fft_lengths=(length,)).value,
        whole,
        rtol=1e-4,
        atol=1e-5,
    )
    np.testing.assert_allclose(
        run_one("fft", half, gives=x, fft_type=3, fft_lengths=(length,)).value, x, rtol=1e-4, atol=1e-5
    )
