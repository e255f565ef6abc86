"""Shapes, and the same elements in other shapes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gossamer.errors import ConvertError
from tests.convert.tensorflow.one_node import DataType, Fixed, run_one

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
OPEN = {0: [0, 1]}


@pytest.mark.parametrize("out", [DataType.DT_INT32, DataType.DT_INT64, DataType.DT_INT16])
def test_shape(out: DataType, tmp_path: Path) -> None:
    result = run_one("Shape", X, path=tmp_path, out_type=out)
    assert result.operators == []
    assert result.value.tolist() == [2, 3, 4]
    result = run_one("Shape", X, path=tmp_path, out_type=out, opened=OPEN)
    assert result.value.tolist() == [2, 3, 4]
    assert result.operators[0] == "SHAPE"


def test_shapes_of_several(tmp_path: Path) -> None:
    result = run_one(
        "ShapeN", X, X[0], path=tmp_path, N=2, out_type=DataType.DT_INT64, opened={0: [0], 1: [1]}, outputs=2
    )
    assert [value.tolist() for value in result.values] == [[2, 3, 4], [3, 4]]
    assert result.operators == ["SHAPE", "SHAPE"]


@pytest.mark.parametrize("opened", [{}, OPEN])
def test_size_and_rank(opened: dict[int, list[int]], tmp_path: Path) -> None:
    for out in (DataType.DT_INT32, DataType.DT_INT64):
        assert run_one("Size", X, path=tmp_path, out_type=out, opened=opened).value == 24
    assert run_one("Rank", X, path=tmp_path, opened=opened).value == 3


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("computed", [False, True])
@pytest.mark.parametrize("shape", [[4, 6], [-1, 6], [2, 3, 2, 2], [24], [-1]])
@pytest.mark.parametrize("opened", [{}, {0: [0]}, OPEN])
def test_reshape(shape: list[int], computed: bool, dtype: Any, opened: dict[int, list[int]], tmp_path: Path) -> None:
    vector = np.array(shape, dtype)
    if opened and -1 not in shape and not computed:
        return  # a shape that is fixed says what was open
    result = run_one("Reshape", X, vector if computed else Fixed(vector), path=tmp_path, opened=opened)
    np.testing.assert_array_equal(result.value, X.reshape(shape))
    assert result.operators.count("RESHAPE") == 1


@pytest.mark.parametrize("axes", [(), (0,), (-2,), (0, 2)])
@pytest.mark.parametrize("opened", [{}, {0: [1]}, {0: [1, 3]}])
def test_squeeze(axes: Sequence[int], opened: dict[int, list[int]], tmp_path: Path) -> None:
    x = X.reshape(1, 6, 1, 4)
    result = run_one("Squeeze", x, path=tmp_path, squeeze_dims=axes, opened=opened)
    np.testing.assert_array_equal(result.value, np.squeeze(x, tuple(axes) or None))


@pytest.mark.parametrize("axis", [0, 1, -1, -4])
@pytest.mark.parametrize("opened", [{}, {0: [1]}, OPEN])
def test_expand_dims(axis: int, opened: dict[int, list[int]], tmp_path: Path) -> None:
    result = run_one("ExpandDims", X, Fixed(axis), path=tmp_path, opened=opened)
    np.testing.assert_array_equal(result.value, np.expand_dims(X, axis))
    assert result.operators == ["EXPAND_DIMS" if opened == OPEN else "RESHAPE"]


@pytest.mark.parametrize("perm", [[2, 0, 1], [0, 2, 1], [-1, 0, -2]])
@pytest.mark.parametrize("computed", [False, True])
def test_transpose(perm: list[int], computed: bool, tmp_path: Path) -> None:
    result = run_one("Transpose", X, perm if computed else Fixed(perm), path=tmp_path, opened={0: [1]})
    np.testing.assert_array_equal(result.value, X.transpose(perm))


def test_transpose_of_many_dimensions(tmp_path: Path) -> None:
    x = np.arange(3 * 2**8, dtype=np.int32).reshape(2, 2, 3, 2, 2, 2, 1, 2, 2, 2)
    perm = [2, 3, 4, 7, 6, 8, 9, 0, 1, 5]
    np.testing.assert_array_equal(run_one("Transpose", x, Fixed(perm), path=tmp_path).value, x.transpose(perm))
    with pytest.raises(ConvertError, match="8 dimensions that move apart; TFLite can have 6"):
        run_one("Transpose", x.reshape(2, 2, 3, 2, 2, 2, 2, 4), Fixed([7, 6, 5, 4, 3, 2, 1, 0]), path=tmp_path)


def test_strings_are_transposed(tmp_path: Path) -> None:
    x = np.array([[b"a", b"bc", b""], [b"d", b"e", b"fgh"]], object)
    np.testing.assert_array_equal(run_one("Transpose", x, Fixed([1, 0]), path=tmp_path).value, x.T)


def test_conjugate_transpose(tmp_path: Path) -> None:
    x = (X[0] + 1j * X[1]).astype(np.complex64)
    result = run_one("ConjugateTranspose", x, Fixed([1, 0]), path=tmp_path)
    np.testing.assert_array_equal(result.value, x.conj().T)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("computed", [False, True])
def test_repeated(dtype: Any, computed: bool, tmp_path: Path) -> None:
    def operand(numbers: list[int]) -> Any:
        return np.array(numbers, dtype) if computed else Fixed(np.array(numbers, dtype))

    result = run_one("BroadcastTo", X[:, :1], operand([5, 2, 3, 4]), path=tmp_path)
    np.testing.assert_array_equal(result.value, np.broadcast_to(X[:, :1], (5, 2, 3, 4)))
    result = run_one("Tile", X, operand([1, 2, 3]), path=tmp_path, opened={0: [0]})
    np.testing.assert_array_equal(result.value, np.tile(X, (1, 2, 3)))
    result = run_one("Fill", operand([2, 3]), np.int64(7), path=tmp_path)
    np.testing.assert_array_equal(result.value, np.full((2, 3), 7))
    result = run_one("BroadcastArgs", operand([2, 1]), operand([3, 1, 5]), path=tmp_path)
    assert result.value.tolist() == [3, 2, 5]


def test_empty(tmp_path: Path) -> None:
    result = run_one("Empty", Fixed([2, 3]), path=tmp_path, dtype=DataType.DT_INT64)
    np.testing.assert_array_equal(result.value, np.zeros((2, 3), np.int64))


def test_sizes_in_another_layout(tmp_path: Path) -> None:
    layouts = {"src_format": "NHWC", "dst_format": "NCHW"}
    assert run_one("DataFormatVecPermute", [1, 2, 3, 4], path=tmp_path, **layouts).value.tolist() == [1, 4, 2, 3]
    assert run_one("DataFormatVecPermute", [5, 6], path=tmp_path, **layouts).value.tolist() == [5, 6]
    pairs = np.arange(8, dtype=np.int64).reshape(4, 2)
    result = run_one("DataFormatVecPermute", pairs, path=tmp_path, **layouts)
    np.testing.assert_array_equal(result.value, pairs[[0, 3, 1, 2]])
    assert run_one("DataFormatDimMap", [0, 1, -1, 2], path=tmp_path, **layouts).value.tolist() == [0, 2, 1, 3]


def test_where_parts_begin(tmp_path: Path) -> None:
    shapes = [np.array([2, n, 4], np.int32) for n in (3, 1, 5)]
    result = run_one("ConcatOffset", Fixed(1), *shapes, N=3, outputs=3, path=tmp_path)
    assert [value.tolist() for value in result.values] == [[0, 0, 0], [0, 3, 0], [0, 4, 0]]
