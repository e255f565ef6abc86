"""Ragged and sparse tensors in parts, and sound."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gossamer.errors import ConvertError
from tests.convert.tensorflow.one_node import Array, Fixed, run_one
from tests.convert.tensorflow.test_convolution import random

LENGTHS = [2, 0, 3, 1]
SPLITS = np.cumsum([0, *LENGTHS])


def side_by_side(values: Array, width: int, default: Any) -> Array:
    made = np.empty((len(LENGTHS), width, *values.shape[1:]), values.dtype)
    made[:] = default
    for row, begin, length in zip(made, SPLITS, LENGTHS, strict=False):
        row[: min(length, width)] = values[begin : begin + min(length, width)]
    return made


@pytest.mark.parametrize("width", [-1, 2, 5])
@pytest.mark.parametrize("inner", [(), (3,)])
@pytest.mark.parametrize("dtype", [np.float32, np.int64])
@pytest.mark.parametrize("kind", ["splits", "rows"])
def test_rows_of_different_lengths(kind: str, dtype: Any, inner: tuple[int, ...], width: int, tmp_path: Path) -> None:
    values, default = random(6, *inner).astype(dtype), np.array(-9, dtype)
    if kind == "splits":
        parts, kinds = [SPLITS], ["ROW_SPLITS"]
    else:
        parts, kinds = [np.array(4), np.repeat(np.arange(4), LENGTHS)], ["FIRST_DIM_SIZE", "VALUE_ROWIDS"]
    result = run_one(
        "RaggedTensorToTensor",
        Fixed(np.array([-1, width, *inner], np.int64)),
        values,
        Fixed(default),
        *parts,
        path=tmp_path,
        opened={1: [0]},
        row_partition_types=kinds,
    )
    np.testing.assert_array_equal(result.value, side_by_side(values, max(LENGTHS) if width < 0 else width, default))


def test_rows_within_rows_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConvertError, match="only one dimension may be ragged"):
        run_one(
            "RaggedTensorToTensor",
            Fixed([-1, -1, -1]),
            random(6),
            Fixed(0.0),
            SPLITS,
            SPLITS,
            path=tmp_path,
            row_partition_types=["ROW_SPLITS", "ROW_SPLITS"],
        )


@pytest.mark.parametrize("shape", [[6, 4], [-1, 3, 2], [24]])
def test_sparse_reshape(shape: list[int], tmp_path: Path) -> None:
    places = np.array([[0, 1, 2], [1, 2, 3], [1, 0, 0]], np.int64)
    operands = [Fixed(np.array(vector, np.int64)) for vector in ((2, 3, 4), shape)]
    result = run_one("SparseReshape", places, *operands, outputs=2, path=tmp_path, opened={0: [0]})
    new = np.empty(24).reshape(shape).shape
    flat = np.ravel_multi_index(tuple(places.T), (2, 3, 4))
    np.testing.assert_array_equal(result.values[0], np.stack(np.unravel_index(flat, new), 1))
    assert result.values[1].tolist() == list(new)


def test_sound(tmp_path: Path) -> None:
    sound = np.sin(np.arange(200, dtype=np.float32) * 0.7)[:, None]
    result = run_one("AudioSpectrogram", sound, path=tmp_path, window_size=60, stride=30, magnitude_squared=True)
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(60) / 60)
    pieces = [sound[n : n + 60, 0] * window for n in range(0, 141, 30)]
    expected = np.abs(np.fft.rfft(pieces, 64)) ** 2
    np.testing.assert_allclose(result.value[0], expected, rtol=1e-4, atol=1e-4)
    coefficients = run_one("Mfcc", result.value, Fixed(16000), path=tmp_path, dct_coefficient_count=5)
    assert coefficients.operators == ["Mfcc"]
    assert coefficients.value.shape == (1, 5, 5)
