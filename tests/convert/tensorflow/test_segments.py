"""Segments, counts and sets, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gossamer.convert.messages.tensorflow import DataType
from gossamer.errors import ConvertError
from tests.convert.tensorflow.one_node import Array, Fixed, run_one

Function = Callable[..., Any]

DATA = np.array([[1, 2], [3, -4], [5, 6], [7, 8]], np.float32)


def segments(data: Array, ids: Array, count: int, function: Function, empty: float) -> Array:
    rows = [data[ids == n] for n in range(count)]
    return np.stack([function(row, axis=0) if len(row) else np.full(data.shape[1:], empty) for row in rows]).astype(
        data.dtype
    )


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int64, np.float64])
@pytest.mark.parametrize(
    ("op", "function", "empty"),
    [("Sum", np.sum, 0), ("Prod", np.prod, 1), ("Max", np.max, None), ("Min", np.min, None)],
)
def test_segments(op: str, function: Function, empty: int | None, dtype: Any, tmp_path: Path) -> None:
    data, ids = DATA.astype(dtype), np.array([0, 2, 1, 0], np.int64)
    expected = segments(data, ids, 3, function, 0)
    for count in (Fixed(np.array(3, np.int32)), np.array(3, np.int32)):
        np.testing.assert_array_equal(run_one(f"UnsortedSegment{op}", data, ids, count, path=tmp_path).value, expected)
    ordered = np.array([0, 0, 2, 3], np.int32)
    found = run_one(f"Segment{op}", data, ordered, path=tmp_path, opened={0: [0], 1: [0]}).value
    np.testing.assert_array_equal(found, segments(data, ordered, 4, function, 1 if op == "Prod" else 0))


def test_segments_of_several_axes(tmp_path: Path) -> None:
    ids = np.array([[0, 1], [1, 1], [0, 2], [2, 2]], np.int32)
    found = run_one(
        "UnsortedSegmentSum", DATA, ids, Fixed(np.array(3, np.int32)), path=tmp_path, opened={0: [0], 1: [0]}
    ).value
    np.testing.assert_array_equal(found, np.bincount(ids.reshape(-1), DATA.reshape(-1)))


@pytest.mark.parametrize(
    ("op", "function"),
    [
        ("Sum", np.sum),
        ("Mean", np.mean),
        ("SqrtN", lambda rows, axis: rows.sum(axis) / np.sqrt(len(rows))),
    ],
)
def test_chosen_rows(op: str, function: Function, tmp_path: Path) -> None:
    rows, ids = np.array([3, 0, 1, 1], np.int32), np.array([0, 0, 2, 2], np.int32)
    found = run_one(f"SparseSegment{op}", DATA, rows, ids, path=tmp_path).value
    np.testing.assert_allclose(found, segments(DATA[rows], ids, 3, function, 0), rtol=1e-6)
    count = Fixed(np.array(5, np.int32))
    found = run_one(f"SparseSegment{op}WithNumSegments", DATA, rows, ids, count, path=tmp_path).value
    np.testing.assert_allclose(found, segments(DATA[rows], ids, 5, function, 0), rtol=1e-6)
    found = run_one("SegmentMean", DATA, ids, path=tmp_path).value
    np.testing.assert_allclose(found, segments(DATA, ids, 3, np.mean, 0), rtol=1e-6)


def test_counts(tmp_path: Path) -> None:
    numbers, none = np.array([0, 3, 3, 1, 9], np.int32), Fixed(np.zeros(0, np.int32))
    size = Fixed(np.array(5, np.int32))
    expected = np.bincount(numbers, minlength=5)[:5]
    for op in ("Bincount", "DenseBincount"):
        found = run_one(op, numbers, size, none, path=tmp_path).value
        np.testing.assert_array_equal(found, expected)
    found = run_one("DenseBincount", numbers, np.array(5, np.int32), none, path=tmp_path, opened={0: [0]}).value
    np.testing.assert_array_equal(found, expected)
    weights = np.array([1, 2, 0.5, 4, 8], np.float32)
    found = run_one("DenseBincount", numbers, size, weights, path=tmp_path).value
    np.testing.assert_array_equal(found, np.bincount(numbers, weights)[:5])
    found = run_one("DenseBincount", numbers, size, none, path=tmp_path, binary_output=True).value
    np.testing.assert_array_equal(found, expected > 0)
    rows = np.array([[0, 1, 1], [4, 4, 7]], np.int64)
    counted = [np.bincount(row, minlength=5)[:5] for row in rows]
    found = run_one("DenseBincount", rows, size, none, path=tmp_path).value
    np.testing.assert_array_equal(found, counted)
    found = run_one("DenseBincount", rows, size, none, path=tmp_path, binary_output=True).value
    np.testing.assert_array_equal(found, np.array(counted) > 0)


def test_histogram(tmp_path: Path) -> None:
    values = np.array([-1, 0, 1.5, 2, 5, 15], np.float32)
    for bins in (Fixed(np.array(5, np.int32)), np.array(5, np.int32)):
        found = run_one("HistogramFixedWidth", values, np.array([0, 5], np.float32), bins, path=tmp_path).value
        np.testing.assert_array_equal(found, [2, 1, 1, 0, 2])  # the example of TensorFlow's documentation


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int64, np.float64])
def test_buckets(dtype: Any, tmp_path: Path) -> None:
    x = np.array([[-5, 10000], [150, 10], [5, 100]], dtype)
    found = run_one("Bucketize", x, path=tmp_path, boundaries=[0.0, 10.0, 100.0]).value
    np.testing.assert_array_equal(found, [[0, 3], [3, 2], [1, 3]])


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int64, np.uint8, np.uint16])
def test_different_elements(dtype: Any, tmp_path: Path) -> None:
    x = np.array([1, 1, 2, 4, 4, 4, 7, 2, 8], dtype)
    expected = [[1, 2, 4, 7, 8], [0, 0, 1, 2, 2, 2, 3, 1, 4], [2, 2, 3, 1, 1]]
    found = run_one("UniqueWithCounts", x, path=tmp_path, outputs=3).values
    for value, one in zip(found, expected, strict=True):
        np.testing.assert_array_equal(value, one)
    values, places = run_one("Unique", x, path=tmp_path, outputs=2, out_idx=DataType.DT_INT64, opened={0: [0]}).values
    assert places.dtype == np.int64
    assert values.dtype == dtype
    np.testing.assert_array_equal(values[places], x)


def test_inverted_permutation(tmp_path: Path) -> None:
    x = np.array([3, 4, 0, 2, 1], np.int32)
    np.testing.assert_array_equal(run_one("InvertPermutation", x, path=tmp_path, opened={0: [0]}).value, np.argsort(x))


def test_what_only_one_has(tmp_path: Path) -> None:
    x, y = np.array([1, 2, 3, 4, 5, 6], np.int32), np.array([1, 3, 5], np.int32)
    values, places = run_one("ListDiff", x, y, path=tmp_path, outputs=2).values
    np.testing.assert_array_equal(values, [2, 4, 6])
    np.testing.assert_array_equal(places, [1, 3, 5])


def test_different_rows_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConvertError, match="only vectors"):
        run_one("UniqueV2", np.zeros((2, 2), np.int32), Fixed(np.array([0])), path=tmp_path, outputs=2)
