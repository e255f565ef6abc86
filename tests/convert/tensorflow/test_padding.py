"""Paddings, and space exchanged for batches and depth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.convert.tensorflow.one_node import Array, Fixed, run_one

X = np.arange(48, dtype=np.float32).reshape(1, 4, 6, 2)
AROUND = [(0, 0), (1, 2), (3, 0), (0, 1)]


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("how", ["known", "computed", "open"])
def test_pad(how: str, dtype: Any, tmp_path: Path) -> None:
    around = np.array(AROUND, dtype)
    operand = around if how == "computed" else Fixed(around)
    opened = {0: [0, 1]} if how == "open" else {}
    result = run_one("Pad", X, operand, path=tmp_path, opened=opened)
    np.testing.assert_array_equal(result.value, np.pad(X, AROUND))
    result = run_one("PadV2", X, operand, Fixed(-1.5), path=tmp_path, opened=opened)
    np.testing.assert_array_equal(result.value, np.pad(X, AROUND, constant_values=-1.5))
    for mode in ("REFLECT", "SYMMETRIC"):
        result = run_one("MirrorPad", X, operand, mode=mode, path=tmp_path, opened=opened)
        np.testing.assert_array_equal(result.value, np.pad(X, AROUND, mode=mode.lower()))  # type: ignore[call-overload]


def test_no_padding_is_nothing(tmp_path: Path) -> None:
    assert run_one("Pad", X, Fixed([[0, 0]] * 4), path=tmp_path).operators == []
    assert run_one("PadV2", X, Fixed(AROUND), Fixed(0.0), path=tmp_path).operators == ["PAD"]


def test_more_dimensions_than_kernels_have(tmp_path: Path) -> None:
    x = X.reshape(1, 2, 2, 3, 2, 2)
    around = [(0, 0), (1, 0), (0, 0), (0, 0), (0, 2), (0, 0)]
    result = run_one("PadV2", x, Fixed(around), Fixed(7.0), path=tmp_path)
    np.testing.assert_array_equal(result.value, np.pad(x, around, constant_values=7))


@pytest.mark.parametrize("mode", ["REFLECT", "SYMMETRIC"])
def test_what_was_mirrored_is_added_up(mode: str, tmp_path: Path) -> None:
    x = X[0, :, :, 0]
    result = run_one("MirrorPadGrad", x, Fixed([[1, 0], [1, 2]]), mode=mode, path=tmp_path)
    places = np.pad(np.arange(9).reshape(3, 3), [(1, 0), (1, 2)], mode=mode.lower())  # type: ignore[call-overload]
    expected = np.bincount(places.reshape(-1), x.reshape(-1), 9).reshape(3, 3)
    np.testing.assert_array_equal(result.value, expected)


def to_batch(x: Array, block: list[int], around: Any) -> Array:
    """As TensorFlow's manual has it."""
    m = len(block)
    x = np.pad(x, [(0, 0), *around, *[(0, 0)] * (x.ndim - 1 - m)])
    (
        batch,
        *space,
    ) = x.shape[: m + 1]
    rest = x.shape[m + 1 :]
    split = [n for s, b in zip(space, block, strict=True) for n in (s // b, b)]
    order = [*range(2, 2 * m + 1, 2), 0, *range(1, 2 * m, 2), *range(2 * m + 1, 2 * m + 1 + len(rest))]
    return x.reshape(batch, *split, *rest).transpose(order).reshape(-1, *split[::2], *rest)


@pytest.mark.parametrize(
    ("shape", "block", "around"),
    [
        ((2, 4, 6, 3), [2, 3], [(0, 0), (1, 2)]),
        ((2, 5, 3), [3], [(1, 0)]),
        ((1, 4, 6, 3), [2], [(0, 2)]),
        ((1, 4, 4, 6, 2), [2, 2, 3], [(0, 0), (1, 1), (0, 0)]),
    ],
)
def test_space_and_batches(shape: Any, block: list[int], around: Any, tmp_path: Path) -> None:
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    batches = to_batch(x, block, around)
    opened = {0: [0]} if len(shape) < 5 else {}
    result = run_one("SpaceToBatchND", x, Fixed(np.array(block, np.int64)), Fixed(around), path=tmp_path, opened=opened)
    np.testing.assert_array_equal(result.value, batches)
    result = run_one("BatchToSpaceND", batches, Fixed(block), Fixed(around), path=tmp_path)
    np.testing.assert_array_equal(result.value, x)


def test_the_first_versions_have_one_size(tmp_path: Path) -> None:
    around = [(1, 1), (0, 2)]
    batches = to_batch(X, [2, 2], around)
    result = run_one("SpaceToBatch", X, Fixed(around), block_size=2, path=tmp_path)
    np.testing.assert_array_equal(result.value, batches)
    result = run_one("BatchToSpace", batches, Fixed(around), block_size=2, path=tmp_path)
    np.testing.assert_array_equal(result.value, X)


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_space_and_depth(layout: str, tmp_path: Path) -> None:
    deep = X.reshape(1, 2, 2, 3, 2, 2).transpose(0, 1, 3, 2, 4, 5).reshape(1, 2, 3, 8)
    first = layout == "NCHW"
    wide, deep = (np.moveaxis(x, -1, 1) if first else x for x in (X, deep))
    result = run_one("SpaceToDepth", wide, block_size=2, data_format=layout, path=tmp_path)
    np.testing.assert_array_equal(result.value, deep)
    result = run_one("DepthToSpace", deep, block_size=2, data_format=layout, path=tmp_path)
    np.testing.assert_array_equal(result.value, wide)
