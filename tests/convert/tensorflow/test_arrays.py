"""Arrays put together, taken apart and turned round."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gossamer.errors import ConvertError
from tests.convert.tensorflow.one_node import Fixed, run_one

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def test_concat(tmp_path: Path) -> None:
    for op, operands in {"ConcatV2": (X, X + 1, Fixed(-2)), "Concat": (Fixed(1), X, X + 1)}.items():
        result = run_one(op, *operands, N=2, path=tmp_path, opened={0: [1]} if op == "ConcatV2" else {})
        np.testing.assert_array_equal(result.value, np.concatenate([X, X + 1], 1))
        assert result.operators == ["CONCATENATION"]


def test_what_is_empty_is_left_out(tmp_path: Path) -> None:
    result = run_one("ConcatV2", X, Fixed(X[:, :0]), Fixed(1), N=2, path=tmp_path)
    np.testing.assert_array_equal(result.value, X)
    assert result.operators == []


def test_strings_are_put_together_only_where_they_are_known(tmp_path: Path) -> None:
    x = np.array([b"a", b"bc"], object)
    assert run_one("ConcatV2", x, x, Fixed(0), N=2, path=tmp_path, fixed=True).value.tolist() == [b"a", b"bc"] * 2
    with pytest.raises(ConvertError, match="SELECT_TF_OPS"):
        run_one("ConcatV2", x, x, Fixed(0), N=2, path=tmp_path)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_pack_and_unpack(axis: int, tmp_path: Path) -> None:
    result = run_one("Pack", X, X + 1, X, N=3, axis=axis, path=tmp_path, opened={0: [0], 1: [0], 2: [0]})
    np.testing.assert_array_equal(result.value, np.stack([X, X + 1, X], axis))
    assert result.operators == ["PACK"]
    count = X.shape[axis]
    result = run_one("Unpack", X, num=count, axis=axis, outputs=count, path=tmp_path)
    np.testing.assert_array_equal(np.stack(result.values, axis), X)
    assert result.operators == ["UNPACK"]


def test_single_parts_are_reshaped(tmp_path: Path) -> None:
    assert run_one("Pack", X, N=1, axis=1, path=tmp_path).operators == ["RESHAPE"]
    assert run_one("Unpack", X[:, :1], num=1, axis=1, path=tmp_path).operators == ["RESHAPE"]
    assert run_one("Split", Fixed(0), X, num_split=1, path=tmp_path).operators == []


def test_strings_are_unpacked(tmp_path: Path) -> None:
    x = np.array([[b"a", b"bc"], [b"", b"d"]], object)
    found = run_one("Unpack", x, num=2, axis=1, outputs=2, path=tmp_path).values
    assert [value.tolist() for value in found] == [[b"a", b""], [b"bc", b"d"]]


@pytest.mark.parametrize("axis", [1, -2])
def test_split(axis: int, tmp_path: Path) -> None:
    result = run_one("Split", Fixed(axis), X, num_split=3, outputs=3, path=tmp_path, opened={1: [0]})
    for found, expected in zip(result.values, np.split(X, 3, 1), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("lengths", [[1, 3], [1, -1]])
@pytest.mark.parametrize("how", ["known", "computed", "open"])
def test_split_v(lengths: list[int], how: str, tmp_path: Path) -> None:
    operand = np.array(lengths, np.int64)
    result = run_one(
        "SplitV",
        X,
        operand if how == "computed" else Fixed(operand),
        Fixed(-1),
        num_split=2,
        outputs=2,
        path=tmp_path,
        opened={0: [2]} if how == "open" and -1 in lengths else {},
    )
    np.testing.assert_array_equal(result.values[0], X[..., :1])
    np.testing.assert_array_equal(result.values[1], X[..., 1:])


@pytest.mark.parametrize(("axes", "operators"), [([1], 1), ([0, 1], 1), ([2, 0], 2), ([-1, -2, -3], 1)])
def test_reverse(axes: list[int], operators: int, tmp_path: Path) -> None:
    result = run_one("ReverseV2", X, Fixed(axes), path=tmp_path, opened={0: [0]})
    np.testing.assert_array_equal(result.value, np.flip(X, axes))
    assert result.operators == ["REVERSE_V2"] * operators


def test_reverse_sequence(tmp_path: Path) -> None:
    result = run_one("ReverseSequence", X, [1, 3], seq_dim=1, batch_dim=0, path=tmp_path)
    np.testing.assert_array_equal(result.value, np.stack([X[0], X[1, ::-1]]))


@pytest.mark.parametrize(("shift", "axis"), [(1, 0), (-2, 1), ([5, 1], [2, 1]), ([1, 1], [1, 1]), (0, 0)])
@pytest.mark.parametrize("how", ["known", "computed", "open"])
def test_roll(shift: Any, axis: Any, how: str, tmp_path: Path) -> None:
    operand = np.array(shift, np.int32)
    opened = {0: [0, 1]} if how == "open" else {}
    result = run_one(
        "Roll", X, operand if how == "computed" else Fixed(operand), Fixed(axis), path=tmp_path, opened=opened
    )
    np.testing.assert_array_equal(result.value, np.roll(X, shift, axis))


def test_parallel_concat(tmp_path: Path) -> None:
    result = run_one("ParallelConcat", X[:1], X[1:], N=2, path=tmp_path)
    np.testing.assert_array_equal(result.value, X)


def test_strings_are_split_and_turned(tmp_path: Path) -> None:
    x = np.array([[b"a", b"bc", b""], [b"d", b"e", b"fgh"]], object)
    found = run_one("Split", Fixed(1), x, num_split=3, outputs=3, path=tmp_path).values
    np.testing.assert_array_equal(np.concatenate(found, 1), x)
    found = run_one("SplitV", x, Fixed([2, -1]), Fixed(1), num_split=2, outputs=2, path=tmp_path).values
    np.testing.assert_array_equal(found[0], x[:, :2])
    np.testing.assert_array_equal(found[1], x[:, 2:])
    np.testing.assert_array_equal(run_one("ReverseV2", x, Fixed([0, 1]), path=tmp_path).value, x[::-1, ::-1])
