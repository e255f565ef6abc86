"""Reductions, running results, order and ranges, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gossamer.convert.messages.tensorflow import DataType
from tests.convert.tensorflow.one_node import Array, Fixed, run_one

Function = Callable[..., Any]

REDUCTIONS: dict[str, Function] = {
    "Max": np.max,
    "Mean": np.mean,
    "Min": np.min,
    "Prod": np.prod,
    "Sum": np.sum,
    "EuclideanNorm": lambda x, axis=None, keepdims=False: np.sqrt(np.sum(x * x, axis, keepdims=keepdims)),
}


def cube(dtype: Any) -> Array:
    return (np.random.default_rng(3).integers(0, 5, (2, 3, 4)) + 1).astype(dtype)


def axes(*numbers: int) -> Fixed:
    return Fixed(np.array(numbers, np.int32))


@pytest.mark.parametrize("op", REDUCTIONS)
def test_reductions(op: str, tmp_path: Path) -> None:
    x, function = cube(np.float32), REDUCTIONS[op]
    for given, keep in (((1,), False), ((0, -1), True), ((0, 1, 2), False)):
        found = run_one(op, x, axes(*given), path=tmp_path, opened={0: [0]}, keep_dims=keep).value
        np.testing.assert_allclose(found, function(x, axis=given, keepdims=keep), rtol=1e-6)
    assert run_one(op, x, axes(), path=tmp_path).value.shape == x.shape
    computed = run_one(op, x, np.array([2], np.int32), path=tmp_path).value
    np.testing.assert_allclose(computed, function(x, axis=2), rtol=1e-6)
    kept = run_one(op, x, np.array(1, np.int32), path=tmp_path, keep_dims=True).value
    np.testing.assert_allclose(kept, function(x, axis=1, keepdims=True), rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int32, np.int64, np.float16, np.float64])
def test_reductions_of_other_types(dtype: Any, tmp_path: Path) -> None:
    x = cube(dtype)
    for op in ("Max", "Min", "Sum", "Prod"):
        found = run_one(op, x, Fixed(np.array([1], np.int64)), path=tmp_path).value
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, REDUCTIONS[op](x, axis=1).astype(dtype))


@pytest.mark.parametrize(("op", "function"), [("All", np.all), ("Any", np.any)])
def test_truth(op: str, function: Function, tmp_path: Path) -> None:
    x = cube(np.int32) > 2
    np.testing.assert_array_equal(run_one(op, x, axes(1), path=tmp_path).value, function(x, axis=1))
    np.testing.assert_array_equal(run_one(op, x, np.array([1, 2]), path=tmp_path).value, function(x, axis=(1, 2)))


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int64])
def test_running_results(dtype: Any, reverse: bool, exclusive: bool, tmp_path: Path) -> None:
    x = cube(dtype)

    def running(function: Function, first: int) -> Array:
        y = np.flip(x, 1) if reverse else x
        total = function(y, axis=1)
        if exclusive:
            total = np.concatenate([np.full_like(total[:, :1], first), total[:, :-1]], 1)
        return np.flip(total, 1) if reverse else total

    options = {"exclusive": exclusive, "reverse": reverse}
    found = run_one("Cumsum", x, Fixed(np.array(1, np.int32)), path=tmp_path, opened={0: [0]}, **options).value
    np.testing.assert_array_equal(found, running(np.cumsum, 0))
    found = run_one("Cumprod", x, Fixed(np.array(1, np.int32)), path=tmp_path, **options).value
    np.testing.assert_array_equal(found, running(np.cumprod, 1))


def test_running_log_sum(tmp_path: Path) -> None:
    x = np.linspace(80, 95, 6).astype(np.float32)
    found = run_one("CumulativeLogsumexp", x, Fixed(np.array(0, np.int32)), path=tmp_path).value
    np.testing.assert_allclose(found, np.logaddexp.accumulate(x), rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32, np.int64, np.int8, np.uint8, np.int16, np.bool_])
def test_positions_of_extremes(dtype: Any, tmp_path: Path) -> None:
    x = np.random.default_rng(1).permutation(24).reshape(2, 3, 4).astype(dtype)
    axis = Fixed(np.array(-1, np.int32))
    for op, function in {"ArgMax": np.argmax, "ArgMin": np.argmin}.items():
        found = run_one(op, x, axis, path=tmp_path, opened={0: [0]}).value
        assert found.dtype == np.int64
        np.testing.assert_array_equal(found, function(x, axis=-1))
    found = run_one("ArgMax", x, np.array(1, np.int32), path=tmp_path, output_type=DataType.DT_INT32).value
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, np.argmax(x, axis=1))


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32, np.int64, np.uint8])
def test_largest_elements(dtype: Any, tmp_path: Path) -> None:
    x = np.random.default_rng(1).permutation(30).reshape(3, 10).astype(dtype)
    expected = -np.sort(-x.astype(np.int64), axis=1)[:, :4]
    for k in (Fixed(np.array(4, np.int32)), np.array(4, np.int32)):
        values, places = run_one("TopKV2", x, k, path=tmp_path, outputs=2).values
        np.testing.assert_array_equal(values, expected.astype(dtype))
        np.testing.assert_array_equal(np.take_along_axis(x, places, 1), values)
    values, _ = run_one("TopK", x, path=tmp_path, outputs=2, k=4).values
    np.testing.assert_array_equal(values, expected.astype(dtype))
    values, _ = run_one("ApproxTopK", x, path=tmp_path, outputs=2, k=2, reduction_dimension=0, is_max_k=False).values
    np.testing.assert_array_equal(values, np.sort(x, axis=0)[:2])
    for reverse in (False, True):
        found = run_one("NthElement", x, Fixed(np.array(2, np.int32)), path=tmp_path, reverse=reverse).value
        np.testing.assert_array_equal(found, np.sort(x, axis=1)[:, -3 if reverse else 2])


@pytest.mark.parametrize(("op", "side"), [("LowerBound", "left"), ("UpperBound", "right")])
def test_bounds(op: str, side: Any, tmp_path: Path) -> None:
    rows, values = np.array([[1, 3, 3, 8], [0, 2, 4, 6]], np.float32), np.array([[3, 9, 0], [4, -1, 5]], np.float32)
    expected = [np.searchsorted(row, value, side) for row, value in zip(rows, values, strict=True)]
    np.testing.assert_array_equal(run_one(op, rows, values, path=tmp_path).value, expected)


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int64, np.float64])
def test_ranges(dtype: Any, tmp_path: Path) -> None:
    ends = [np.array(number, dtype) for number in (1, 12, 3)]
    found = run_one("Range", *ends, path=tmp_path).value
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, np.arange(*ends))
    assert run_one("Range", *ends, path=tmp_path, fixed=True).operators == []


@pytest.mark.parametrize("count", [1, 2, 7])
def test_evenly_spaced_numbers(count: int, tmp_path: Path) -> None:
    start, stop = np.array(-1, np.float32), np.array(0.3, np.float32)
    expected = np.linspace(start, stop, count)
    for number in (Fixed(np.array(count, np.int32)), np.array(count, np.int32)):
        found = run_one("LinSpace", start, stop, number, path=tmp_path).value
        np.testing.assert_allclose(found, expected, atol=1e-7)
        assert count == 1 or found[-1] == stop
