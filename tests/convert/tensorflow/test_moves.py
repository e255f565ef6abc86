"""Operators that move elements do so with every type, in whatever type TFLite's kernels carry them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.convert.tensorflow.one_node import Array, Fixed, Result, run_one

TYPES = [
    np.float32,
    np.float64,
    ml_dtypes.bfloat16,
    np.uint16,
    np.bool_,
    np.complex64,
]

Case = tuple[Callable[..., Result], Callable[[Array], Any]]


def cube(dtype: Any) -> Array:
    """[2, 2, 4], with elements that no narrower type holds."""
    numbers = np.arange(16).reshape(2, 2, 4)
    array = (
        (numbers % 3 == 1) if dtype == np.bool_ else (numbers - 5 * (np.dtype(dtype).kind not in "ub")).astype(dtype)
    )
    if np.dtype(dtype).itemsize >= 8 and dtype not in (np.bool_, np.complex64):
        array[0, 0, 0] = array.dtype.type(np.pi) if np.dtype(dtype).kind == "f" else array.dtype.type(1 << 40)
    return array


def gathered_nd(x: Array) -> Array:
    return x[[1, 0], [0, 1]]


CASES: dict[str, Case] = {
    "Reshape": (lambda run, x: run("Reshape", x, Fixed([4, -1])), lambda x: x.reshape(4, -1)),
    "Transpose": (lambda run, x: run("Transpose", x, Fixed([2, 0, 1])), lambda x: x.transpose(2, 0, 1)),
    "ExpandDims": (lambda run, x: run("ExpandDims", x, Fixed(1)), lambda x: x[:, None]),
    "ConcatV2": (lambda run, x: run("ConcatV2", x, x, Fixed(1), N=2), lambda x: np.concatenate([x, x], 1)),
    "Pack": (lambda run, x: run("Pack", x, x, N=2, axis=-1), lambda x: np.stack([x, x], -1)),
    "Unpack": (lambda run, x: run("Unpack", x, num=2, axis=1, outputs=2), lambda x: [x[:, 0], x[:, 1]]),
    "Split": (lambda run, x: run("Split", Fixed(2), x, num_split=2, outputs=2), lambda x: [x[..., :2], x[..., 2:]]),
    "SplitV": (
        lambda run, x: run("SplitV", x, Fixed([1, -1]), Fixed(2), num_split=2, outputs=2),
        lambda x: [x[..., :1], x[..., 1:]],
    ),
    "Slice": (lambda run, x: run("Slice", x, Fixed([0, 1, 1]), Fixed([2, 1, -1])), lambda x: x[:, 1:2, 1:]),
    "StridedSlice": (
        lambda run, x: run("StridedSlice", x, Fixed([0, 0, 3]), Fixed([2, 1, 0]), Fixed([1, 1, -2])),
        lambda x: x[:, :1, 3:0:-2],
    ),
    "Tile": (lambda run, x: run("Tile", x, Fixed([1, 2, 1])), lambda x: np.tile(x, (1, 2, 1))),
    "Fill": (lambda run, x: run("Fill", Fixed([2, 3]), x[0, 0, 0]), lambda x: np.full((2, 3), x[0, 0, 0], x.dtype)),
    "BroadcastTo": (
        lambda run, x: run("BroadcastTo", x, Fixed([3, 2, 2, 4])),
        lambda x: np.broadcast_to(x, (3, 2, 2, 4)),
    ),
    "ZerosLike": (lambda run, x: run("ZerosLike", x), np.zeros_like),
    "OnesLike": (lambda run, x: run("OnesLike", x), np.ones_like),
    "GatherV2": (lambda run, x: run("GatherV2", x, [1, 0, 1], Fixed(2)), lambda x: x[:, :, [1, 0, 1]]),
    "GatherNd": (lambda run, x: run("GatherNd", x, [[1, 0], [0, 1]]), gathered_nd),
    "ReverseV2": (lambda run, x: run("ReverseV2", x, Fixed([0, -1])), lambda x: x[::-1, :, ::-1]),
    "ReverseSequence": (
        lambda run, x: run("ReverseSequence", x, [4, 4], seq_dim=2, batch_dim=0),
        lambda x: x[..., ::-1],
    ),
    "Roll": (lambda run, x: run("Roll", x, Fixed([1, 3]), Fixed([0, 2])), lambda x: np.roll(x, (1, 3), (0, 2))),
    "Pad": (
        lambda run, x: run("Pad", x, Fixed([[0, 1], [1, 0], [2, 2]])),
        lambda x: np.pad(x, [(0, 1), (1, 0), (2, 2)]),
    ),
    "PadV2": (
        lambda run, x: run("PadV2", x, Fixed([[0, 1], [0, 0], [2, 0]]), Fixed(x[1, 1, 3])),
        lambda x: np.pad(x, [(0, 1), (0, 0), (2, 0)], constant_values=x[1, 1, 3]),
    ),
    "MirrorPad": (
        lambda run, x: run("MirrorPad", x, Fixed([[0, 1], [1, 0], [2, 2]]), mode="REFLECT"),
        lambda x: np.pad(x, [(0, 1), (1, 0), (2, 2)], mode="reflect"),
    ),
    "SpaceToBatchND": (
        lambda run, x: run("SpaceToBatchND", x, Fixed([2]), Fixed([[0, 0]])),
        lambda x: x.transpose(1, 0, 2).reshape(4, 1, 4),
    ),
    "DepthToSpace": (
        lambda run, x: run("DepthToSpace", x[None], block_size=2),
        lambda x: x[None].reshape(1, 2, 2, 2, 2, 1).transpose(0, 1, 3, 2, 4, 5).reshape(1, 4, 4, 1),
    ),
    "SpaceToDepth": (
        lambda run, x: run("SpaceToDepth", x[None], block_size=2),
        lambda x: x.reshape(1, 1, 1, 16),
    ),
    "DynamicPartition": (
        lambda run, x: run("DynamicPartition", x, [1, 0], num_partitions=2, outputs=2),
        lambda x: [x[1:], x[:1]],
    ),
    "DynamicStitch": (
        lambda run, x: run("DynamicStitch", [1, 0], [2], x, x[:1], N=2),
        lambda x: np.concatenate([x[::-1], x[:1]]),
    ),
    "TensorScatterUpdate": (
        lambda run, x: run("TensorScatterUpdate", x, Fixed([[1], [1]]), x),
        lambda x: np.stack([x[0], x[1]]),
    ),
    "TensorStridedSliceUpdate": (
        lambda run, x: run("TensorStridedSliceUpdate", x, Fixed([0, 0]), Fixed([2, 1]), Fixed([1, 1]), x[:, 1:]),
        lambda x: x[:, [1, 1]],
    ),
    "MatrixDiagPart": (lambda run, x: run("MatrixDiagPart", x), lambda x: x[:, [0, 1], [0, 1]]),
    "XlaDynamicUpdateSlice": (
        lambda run, x: run("XlaDynamicUpdateSlice", x, x[:, :1, :1], [0, 1, 2]),
        lambda x: np.concatenate([x[:, :1], np.concatenate([x[:, 1:, :2], x[:, :1, :1], x[:, 1:, 3:]], 2)], 1),
    ),
}


@pytest.mark.parametrize("dtype", TYPES, ids=lambda dtype: np.dtype(dtype).name)
@pytest.mark.parametrize("op", CASES)
def test_every_type(op: str, dtype: Any, tmp_path: Path) -> None:
    lower, expected = CASES[op]
    x = cube(dtype)
    result = lower(lambda *operands, **options: run_one(*operands, path=tmp_path, **options), x)
    wanted = expected(x)
    for found, one in zip(result.values, wanted if isinstance(wanted, list) else [wanted], strict=True):
        assert found.dtype == x.dtype
        np.testing.assert_array_equal(found, one)
