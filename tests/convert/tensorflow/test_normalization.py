"""Softmax and its losses, and normalizations, against NumPy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.convert.tensorflow.one_node import Array, Fixed, run_one

NEAR = {"rtol": 2e-5, "atol": 2e-6}


def normal(*shape: int, dtype: Any = np.float32) -> Array:
    return np.random.default_rng(len(shape)).normal(size=shape).astype(dtype)


def softmax(x: Array) -> Array:
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64])
def test_softmax(dtype: Any, tmp_path: Path) -> None:
    x = normal(2, 3, 5, dtype=dtype)
    near = {"rtol": 4e-3, "atol": 2e-3} if dtype == np.float16 else NEAR
    for op, expected in {"Softmax": softmax(x), "LogSoftmax": np.log(softmax(x))}.items():
        found = run_one(op, x, path=tmp_path, opened={0: [0]}).value
        assert found.dtype == dtype
        np.testing.assert_allclose(found, expected, **near)
    assert run_one("Softmax", normal(2, 3), path=tmp_path).operators == ["SOFTMAX"]


def test_cross_entropies(tmp_path: Path) -> None:
    x, labels = normal(4, 5), softmax(normal(4, 5, 1)[..., 0])
    expected = [-(labels * np.log(softmax(x))).sum(-1), softmax(x) - labels]
    for found, one in zip(
        run_one("SoftmaxCrossEntropyWithLogits", x, labels, path=tmp_path, outputs=2).values, expected, strict=True
    ):
        np.testing.assert_allclose(found, one, **NEAR)
    numbers = np.array([0, 4, 2, 2], np.int64)
    labels = np.eye(5, dtype=np.float32)[numbers]
    expected = [-(labels * np.log(softmax(x))).sum(-1), softmax(x) - labels]
    found = run_one(
        "SparseSoftmaxCrossEntropyWithLogits", x, numbers, path=tmp_path, outputs=2, opened={0: [0], 1: [0]}
    )
    for value, one in zip(found.values, expected, strict=True):
        np.testing.assert_allclose(value, one, **NEAR)


def test_loss_and_targets(tmp_path: Path) -> None:
    x = normal(3, 4)
    np.testing.assert_allclose(run_one("L2Loss", x, path=tmp_path).value, (x * x).sum() / 2, **NEAR)
    scores = np.array([[0.1, 0.5, 0.4], [0.3, 0.3, 0.2], [np.inf, 1, 2]], np.float32)
    targets = np.array([2, 1, 0], np.int32)
    expected = [False, True, False]
    np.testing.assert_array_equal(run_one("InTopK", scores, targets, path=tmp_path, k=1).value, expected)
    found = run_one("InTopKV2", scores, targets, Fixed(np.array(2, np.int32)), path=tmp_path).value
    np.testing.assert_array_equal(found, [True, True, False])


def test_local_response(tmp_path: Path) -> None:
    x = normal(1, 2, 2, 8)
    options = {"depth_radius": 2, "bias": 1.5, "alpha": 0.2, "beta": 0.75}
    found = run_one("LRN", x, path=tmp_path, **options)
    sums = np.stack([(x[..., max(0, n - 2) : n + 3] ** 2).sum(-1) for n in range(8)], -1)
    np.testing.assert_allclose(found.value, x / (1.5 + 0.2 * sums) ** 0.75, **NEAR)
    assert found.operators == ["LOCAL_RESPONSE_NORMALIZATION"]


@pytest.mark.parametrize("layout", ["NHWC", "NCHW", "NDHWC"])
@pytest.mark.parametrize("training", [False, True])
def test_batch_normalization(training: bool, layout: str, tmp_path: Path) -> None:
    shape = {"NHWC": (2, 3, 4, 5), "NCHW": (2, 5, 3, 4), "NDHWC": (2, 1, 3, 4, 5)}[layout]
    x = normal(*shape)
    scale, offset, mean = (np.linspace(low, 1, 5).astype(np.float32) for low in (0.5, -1, 0))
    variance = np.linspace(0.5, 2, 5).astype(np.float32)
    options = {"is_training": training, "epsilon": 0.001, "data_format": layout}
    constants = [Fixed(value) for value in (scale, offset, mean, variance)]
    found = run_one("FusedBatchNormV3", x, *constants, path=tmp_path, outputs=3, **options)
    axis = 1 if layout == "NCHW" else len(shape) - 1
    others = tuple(n for n in range(len(shape)) if n != axis)
    if training:
        mean, variance = x.mean(others), x.var(others)
    along = (-1, *[1] * (len(shape) - 1 - axis))
    y = (x - mean.reshape(along)) / np.sqrt(variance + 0.001).reshape(along) * scale.reshape(along) + offset.reshape(
        along
    )
    np.testing.assert_allclose(found.values[0], y, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found.values[1], mean, **NEAR)
    shown = x.var(others, ddof=1) if training else variance
    np.testing.assert_allclose(found.values[2], shown, **NEAR)
    if not training:
        only = run_one("FusedBatchNormV3", x, *constants, path=tmp_path, **options)
        assert only.operators == ["MUL", "ADD"]


def test_global_normalization(tmp_path: Path) -> None:
    x, vectors = normal(1, 2, 2, 3), [np.array([1, 2, 3], np.float32) + n for n in range(4)]
    options = {"variance_epsilon": 0.01, "scale_after_normalization": True}
    found = run_one("BatchNormWithGlobalNormalization", x, *vectors, path=tmp_path, **options).value
    mean, variance, beta, gamma = vectors
    np.testing.assert_allclose(found, (x - mean) / np.sqrt(variance + 0.01) * gamma + beta, **NEAR)
