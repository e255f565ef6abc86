"""Comparisons, logic, choices and bits, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.convert.tensorflow.one_node import Fixed, run_one

COMPARISONS: dict[str, Callable[..., Any]] = {
    "Equal": np.equal,
    "Greater": np.greater,
    "GreaterEqual": np.greater_equal,
    "Less": np.less,
    "LessEqual": np.less_equal,
    "NotEqual": np.not_equal,
}

TYPES = [np.float32, np.float16, np.float64, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32]


@pytest.mark.parametrize(
    ("op", "dtype"),
    [("Greater", dtype) for dtype in TYPES]
    + [("Equal", dtype) for dtype in [*TYPES, np.bool_, np.complex64]]
    + [(op, np.float32) for op in COMPARISONS if op not in ("Greater", "Equal")],
)
def test_comparisons(op: str, dtype: Any, tmp_path: Path) -> None:
    x, y = np.arange(12).reshape(3, 4).astype(dtype), np.array([0, 5, 2, 11], dtype)
    found = run_one(op, x, y, path=tmp_path, opened={0: [0]}).value
    assert found.dtype == np.bool_
    np.testing.assert_array_equal(found, COMPARISONS[op](x, y))


def test_strings_are_equal_or_not(tmp_path: Path) -> None:
    words = np.array([b"one", b"two", b""], object)
    for other in (Fixed(np.array(b"two", object)), np.array([b"two"], object)):
        np.testing.assert_array_equal(run_one("Equal", words, other, path=tmp_path).value, [False, True, False])


def test_shapes_that_do_not_fit(tmp_path: Path) -> None:
    x, y = np.zeros(3, np.float32), np.zeros(4, np.float32)
    assert run_one("Equal", x, y, path=tmp_path, incompatible_shape_error=False).value == np.False_
    assert run_one("NotEqual", x, y, path=tmp_path, incompatible_shape_error=False).value == np.True_


@pytest.mark.parametrize(
    ("op", "function"),
    [("LogicalAnd", np.logical_and), ("LogicalOr", np.logical_or), ("LogicalXor", np.logical_xor)],
)
def test_logic(op: str, function: Callable[..., Any], tmp_path: Path) -> None:
    x, y = np.array([[True], [False]]), np.array([True, False, True])
    np.testing.assert_array_equal(run_one(op, x, y, path=tmp_path).value, function(x, y))


def test_kinds_of_numbers(tmp_path: Path) -> None:
    x = np.array([[1, np.nan], [np.inf, -np.inf]], np.float32)
    for op, function in {"IsNan": np.isnan, "IsInf": np.isinf, "IsFinite": np.isfinite}.items():
        for dtype in (np.float32, np.float16):
            np.testing.assert_array_equal(run_one(op, x.astype(dtype), path=tmp_path).value, function(x))
    np.testing.assert_array_equal(run_one("LogicalNot", x > 0, path=tmp_path).value, ~(x > 0))


def test_approximately_equal(tmp_path: Path) -> None:
    x, y = np.array([1, 2], np.float32), np.array([1.05, 2.2], np.float32)
    np.testing.assert_array_equal(run_one("ApproximateEqual", x, y, path=tmp_path, tolerance=0.1).value, [True, False])


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.int8, np.uint16, np.bool_, np.complex64])
def test_choices(dtype: Any, tmp_path: Path) -> None:
    x, y = np.arange(1, 7).reshape(2, 3).astype(dtype), np.zeros((2, 3), dtype)
    condition = np.array([[True, False, True], [False, False, True]])
    alike = run_one("SelectV2", condition, x, y, path=tmp_path)
    np.testing.assert_array_equal(alike.value, np.where(condition, x, y))
    assert "SELECT" in alike.operators
    wide = run_one("SelectV2", condition, x, y[0, :1], path=tmp_path).value
    np.testing.assert_array_equal(wide, np.where(condition, x, y))
    all_ = run_one("Select", np.array(True), x, y, path=tmp_path).value
    np.testing.assert_array_equal(all_, x)
    rows = run_one("Select", condition[:, 2] & condition[:, 0], x, y, path=tmp_path).value
    np.testing.assert_array_equal(rows, np.where((condition[:, 2] & condition[:, 0])[:, None], x, y))


BITS: dict[str, Callable[..., Any]] = {
    "BitwiseAnd": np.bitwise_and,
    "BitwiseOr": np.bitwise_or,
    "BitwiseXor": np.bitwise_xor,
}
INTEGERS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_bits(dtype: Any, tmp_path: Path) -> None:
    x = np.array([[0, 1, 77, 100], [3, 127, 64, 5]]).astype(dtype)
    x[0, 0] = np.iinfo(dtype).max
    if np.dtype(dtype).kind == "i":
        x[1, 0] = -3
    y = np.array([5, 3, 90, 1], dtype)
    for op, function in BITS.items():
        np.testing.assert_array_equal(run_one(op, x, y, path=tmp_path).value, function(x, y))
    np.testing.assert_array_equal(run_one("Invert", x, path=tmp_path).value, ~x)
    by = np.array([1, 3, 0, 2], dtype)
    np.testing.assert_array_equal(run_one("LeftShift", x, by, path=tmp_path).value, x << by)
    if np.dtype(dtype).itemsize < 8:
        np.testing.assert_array_equal(run_one("RightShift", x, by, path=tmp_path).value, x >> by)


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int32, np.int64])
def test_counts_of_bits(dtype: Any, tmp_path: Path) -> None:
    x = np.array([[0, 1, 127], [-1, 64, 5]]).astype(dtype)
    found = run_one("PopulationCount", x, path=tmp_path).value
    mask = (1 << 8 * np.dtype(dtype).itemsize) - 1
    expected = [[(int(number) & mask).bit_count() for number in row] for row in x]
    assert found.dtype == np.uint8
    np.testing.assert_array_equal(found, expected)
