"""Elements at positions that are constant, computed or depend on values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.convert.tensorflow.one_node import Fixed, of_two, run_one

X = np.arange(2 * 3 * 4, dtype=np.float32).reshape(2, 3, 4)
WORDS = np.array([[b"a", b"bc", b""], [b"def", b"g", b"hi"]], object)


@pytest.mark.parametrize("dtype", [np.int16, np.int32, np.int64, np.uint8])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_gather(axis: int, dtype: Any, tmp_path: Path) -> None:
    places = np.array([[1, 0], [0, 1], [1, 1]], dtype)
    result = run_one("GatherV2", X, places, Fixed(axis), path=tmp_path, opened={0: [0], 1: [0]})
    np.testing.assert_array_equal(result.value, np.take(X, places, axis))


def test_the_first_version_has_no_axis(tmp_path: Path) -> None:
    result = run_one("Gather", X, [1, 1, 0], path=tmp_path)
    np.testing.assert_array_equal(result.value, X[[1, 1, 0]])


@pytest.mark.parametrize(("axis", "batch"), [(1, 1), (2, 1), (-1, 2), (1, -1)])
def test_gather_in_batches(axis: int, batch: int, tmp_path: Path) -> None:
    places = np.array([[1, 0], [0, 1]], np.int32) if batch != 2 else np.array([[1], [0], [3]] * 2).reshape(2, 3, 1)
    result = run_one("GatherV2", X, places, Fixed(axis), path=tmp_path, batch_dims=batch)
    if batch == 2:
        expected = np.take_along_axis(X, places, 2)
    else:
        expected = np.stack([np.take(x, p, axis % 3 - 1) for x, p in zip(X, places, strict=True)])
    np.testing.assert_array_equal(result.value, expected)


@pytest.mark.parametrize("opened", [{}, {1: [0]}])
def test_strings_are_gathered_along_any_axis(opened: dict[int, list[int]], tmp_path: Path) -> None:
    places = np.array([2, 0, 2, 1], np.int32)
    result = run_one("GatherV2", WORDS, places, Fixed(1), path=tmp_path, opened=opened)
    np.testing.assert_array_equal(result.value, WORDS[:, places])
    result = run_one("GatherV2", WORDS[0], places.reshape(2, 2), Fixed(0), path=tmp_path)
    np.testing.assert_array_equal(result.value, WORDS[0][places.reshape(2, 2)])


def test_gather_nd(tmp_path: Path) -> None:
    places = np.array([[[1, 2], [0, 0]], [[0, 1], [1, 1]]], np.int64)
    result = run_one("GatherNd", X, places, path=tmp_path, opened={1: [0]})
    np.testing.assert_array_equal(result.value, X[places[..., 0], places[..., 1]])
    result = run_one("GatherNd", X, places, path=tmp_path, batch_dims=1)
    np.testing.assert_array_equal(result.value, np.stack([X[n][p[:, 0], p[:, 1]] for n, p in enumerate(places)]))


@pytest.mark.parametrize("dtype", [np.bool_, np.float32, np.int64, np.int16, np.float64])
def test_where(dtype: Any, tmp_path: Path) -> None:
    mask = np.array([[1, 0, 1], [0, 0, 1]]).astype(dtype)
    result = run_one("Where", mask, path=tmp_path)
    np.testing.assert_array_equal(result.value, np.argwhere(mask))


def test_parts_by_number(tmp_path: Path) -> None:
    numbers = np.array([[0, 2, 2], [1, 0, 2]], np.int32)
    for operand in (numbers, Fixed(numbers)):
        found = run_one("DynamicPartition", X, operand, num_partitions=3, outputs=3, path=tmp_path).values
        for number, part in enumerate(found):
            np.testing.assert_array_equal(part, X[numbers == number])


@pytest.mark.parametrize("computed", [False, True])
def test_rows_are_put_in_their_places(computed: bool, tmp_path: Path) -> None:
    places = [np.array([[4, 0], [2, 1]], np.int32), np.array([3, 5], np.int32)]
    rows = [np.arange(12, dtype=np.float32).reshape(2, 2, 3), -np.arange(6, dtype=np.float32).reshape(2, 3)]
    operands = [place if computed else Fixed(place) for place in places]
    result = run_one("DynamicStitch", *operands, *rows, N=2, path=tmp_path)
    expected = np.zeros((6, 3), np.float32)
    for place, part in zip(places, rows, strict=True):
        expected[place] = part
    np.testing.assert_array_equal(result.value, expected)


def test_the_last_row_for_a_place_stays(tmp_path: Path) -> None:
    result = run_one("DynamicStitch", Fixed([0, 1]), Fixed([1]), X[0, :2], X[1, :1], N=2, path=tmp_path)
    np.testing.assert_array_equal(result.value, np.stack([X[0, 0], X[1, 0]]))


def test_coordinates_of_places(tmp_path: Path) -> None:
    places = np.array([[3, 23, 0], [7, 12, 5]], np.int64)
    result = run_one("UnravelIndex", places, Fixed(np.array([2, 3, 4], np.int64)), path=tmp_path, opened={0: [0]})
    np.testing.assert_array_equal(result.value, np.stack(np.unravel_index(places, (2, 3, 4))))


def test_batching_and_devices_change_nothing(tmp_path: Path) -> None:
    x = X[0]
    result = run_one("BatchFunction", x, x, f=of_two("AddV2"), path=tmp_path)
    np.testing.assert_array_equal(result.value, x + x)
    result = run_one("TPUPartitionedCall", x, x, Fixed(0), f=of_two("Mul"), path=tmp_path)
    np.testing.assert_array_equal(result.value, x * x)
    assert run_one("TPUReplicatedInput", x, N=1, path=tmp_path).operators == []
