"""Slices with all masks, bounds that are computed, and values with slices changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.convert.tensorflow.one_node import Fixed, run_one

X = np.arange(2 * 3 * 4 * 5, dtype=np.float32).reshape(2, 3, 4, 5)
ELL, NEW = Ellipsis, None

SLICES: dict[str, tuple[Any, ...]] = {
    "ends": (slice(None), slice(1, None), slice(None, -1)),
    "strides": (slice(None, None, -1), slice(None, None, 2), slice(3, 0, -2)),
    "shrinks": (1, slice(None), -1),
    "ellipsis": (ELL, slice(1, 3)),
    "ellipsis in the middle": (0, ELL, slice(None, None, 2)),
    "ellipsis for nothing": (slice(None), slice(None), ELL, slice(1, 2), slice(None)),
    "new": (NEW, slice(0, 1), NEW, 2),
    "new after an ellipsis": (ELL, NEW),
    "everything": (1, NEW, ELL, slice(None, None, -1), 2),
    "more than there is": (slice(-9, 99), slice(5, 1)),
    "all": (slice(None),),
}


def operands(parts: tuple[Any, ...]) -> tuple[list[list[int]], dict[str, int]]:
    """Begin, end and strides, with the masks, of a slice as Python has it."""
    bounds: list[list[int]] = [[], [], []]
    masks = dict.fromkeys(("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"), 0)
    for number, part in enumerate(parts):
        begin, end, stride = 0, 0, 1
        if part is ELL:
            masks["ellipsis_mask"] |= 1 << number
        elif part is NEW:
            masks["new_axis_mask"] |= 1 << number
        elif isinstance(part, slice):
            begin, end, stride = part.start or 0, part.stop or 0, part.step or 1
            masks["begin_mask"] |= (part.start is None) << number
            masks["end_mask"] |= (part.stop is None) << number
        else:
            begin, end = part, part + 1
            masks["shrink_axis_mask"] |= 1 << number
        for vector, value in zip(bounds, (begin, end, stride), strict=True):
            vector.append(value)
    return bounds, masks


@pytest.mark.parametrize("how", ["known", "open", "computed", "int64"])
@pytest.mark.parametrize("name", SLICES)
def test_strided_slice(name: str, how: str, tmp_path: Path) -> None:
    (begin, end, strides), masks = operands(SLICES[name])
    dtype = np.int64 if how == "int64" else np.int32
    bounds = [np.array(bound, dtype) for bound in (begin, end)]
    result = run_one(
        "StridedSlice",
        X,
        *(bounds if how == "computed" else [Fixed(bound) for bound in bounds]),
        Fixed(np.array(strides, dtype)),
        path=tmp_path,
        opened={0: [0, 2]} if how == "open" else {},
        **masks,
    )
    np.testing.assert_array_equal(result.value, X[SLICES[name]])


@pytest.mark.parametrize("parts", [(slice(None), 1, NEW, slice(1, 3)), (ELL, slice(None, None, -1), 0)])
def test_more_dimensions_than_kernels_have(parts: tuple[Any, ...], tmp_path: Path) -> None:
    x = np.arange(2 * 3 * 4 * 2 * 2 * 3).reshape(2, 3, 4, 2, 2, 3).astype(np.int32)
    (begin, end, strides), masks = operands(parts)
    result = run_one("StridedSlice", x, Fixed(begin), Fixed(end), Fixed(strides), path=tmp_path, **masks)
    np.testing.assert_array_equal(result.value, x[parts])


def test_what_is_all_is_nothing(tmp_path: Path) -> None:
    (begin, end, strides), masks = operands((slice(None), slice(0, 3), ELL))
    result = run_one("StridedSlice", X, Fixed(begin), Fixed(end), Fixed(strides), path=tmp_path, **masks)
    assert result.operators == []
    (begin, end, strides), masks = operands((NEW, slice(None), ELL, NEW))
    result = run_one("StridedSlice", X, Fixed(begin), Fixed(end), Fixed(strides), path=tmp_path, **masks)
    assert result.operators == ["RESHAPE"]
    assert result.value.shape == (1, *X.shape, 1)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("computed", [False, True])
def test_slice(dtype: Any, computed: bool, tmp_path: Path) -> None:
    begin, size = np.array([0, 1, 0, 2], dtype), np.array([-1, 2, 4, -1], dtype)
    operands = [begin, size] if computed else [Fixed(begin), Fixed(size)]
    result = run_one("Slice", X, *operands, path=tmp_path, opened={0: [0]})
    np.testing.assert_array_equal(result.value, X[:, 1:3, :, 2:])


def test_slice_of_many_dimensions(tmp_path: Path) -> None:
    x = np.arange(64, dtype=np.float32).reshape(2, 2, 2, 2, 2, 2)
    result = run_one("Slice", x, Fixed([0, 1, 0, 0, 1, 0]), Fixed([2, 1, -1, 1, 1, 2]), path=tmp_path)
    np.testing.assert_array_equal(result.value, x[:, 1:, :, :1, 1:, :])


def test_a_part_is_replaced(tmp_path: Path) -> None:
    parts = (slice(None), slice(0, 3, 2), 1)
    (begin, end, strides), masks = operands(parts)
    update = -np.arange(5, dtype=np.float32)
    bounds = [Fixed(begin), Fixed(end), Fixed(strides)]
    result = run_one("TensorStridedSliceUpdate", X, *bounds, np.tile(update, (2, 2, 1)), path=tmp_path, **masks)
    expected = X.copy()
    expected[parts] = update
    np.testing.assert_array_equal(result.value, expected)


def test_gradient_of_a_slice(tmp_path: Path) -> None:
    parts = (slice(None), slice(0, 3, 2), -1)
    (begin, end, strides), masks = operands(parts)
    dy = X[parts]
    bounds = [Fixed(begin), Fixed(end), Fixed(strides)]
    result = run_one("StridedSliceGrad", Fixed(X.shape), *bounds, dy, path=tmp_path, **masks)
    expected = np.zeros_like(X)
    expected[parts] = dy
    np.testing.assert_array_equal(result.value, expected)


@pytest.mark.parametrize("begin", [[0, 1, 2, 3], [9, -4, 2, 0]])
def test_dynamic_slice_stays_inside(begin: list[int], tmp_path: Path) -> None:
    result = run_one("XlaDynamicSlice", X, begin, Fixed([1, 2, 2, 5]), path=tmp_path)
    inside = np.clip(begin, 0, np.array(X.shape) - [1, 2, 2, 5])
    box = tuple(slice(b, b + n) for b, n in zip(inside, [1, 2, 2, 5], strict=True))
    np.testing.assert_array_equal(result.value, X[box])


@pytest.mark.parametrize("begin", [0, 2, -1])
def test_a_row_is_replaced_where_a_number_says(begin: int, tmp_path: Path) -> None:
    """As a cache of a language model is written."""
    row = -np.arange(2 * 4 * 5, dtype=np.float32).reshape(2, 1, 4, 5)
    bounds = [np.array([0, begin], np.int32), np.array([0, begin + 1], np.int32), Fixed([1, 1])]
    for shrinks in (0, 2):
        update = row[:, 0] if shrinks else row
        result = run_one(
            "TensorStridedSliceUpdate",
            X,
            *bounds,
            update,
            path=tmp_path,
            begin_mask=1,
            end_mask=1,
            shrink_axis_mask=shrinks,
        )
        expected = X.copy()
        expected[:, begin] = row[:, 0]
        np.testing.assert_array_equal(result.value, expected)
        assert result.operators[-1] == "DYNAMIC_UPDATE_SLICE"
