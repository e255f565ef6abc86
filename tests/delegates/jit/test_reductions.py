"""Reductions over any axes of tensors of any rank, against the reference kernels."""

from __future__ import annotations

import random

import numpy as np
import pytest

from gossamer.schema import ReducerOptions, SoftmaxOptions, TensorType, TransposeOptions
from tests.delegates.jit.running import TARGETS, check
from tests.runtime.graphs import ModelMaker

pytestmark = pytest.mark.skipif(not TARGETS, reason="no machine code for this CPU")

FLOAT = TensorType.FLOAT32


@pytest.mark.parametrize("seed", range(16))
@pytest.mark.parametrize("name", ["SUM", "MEAN", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD"])
def test_reduction(name: str, seed: int) -> None:
    choose = random.Random(seed)
    make = ModelMaker()
    shape = [choose.choice([1, 1, 2, 3, 5]) for _ in range(choose.randint(1, 6))]
    if choose.random() < 0.5:
        shape[choose.randrange(len(shape))] = choose.choice([8, 17, 70, 130])
    order = list(range(len(shape)))
    axes = [axis for axis in order if choose.random() < 0.5] or [0]
    keep = choose.random() < 0.5
    x = fed = make.tensor(shape)
    if choose.random() < 0.3:  # of elements that do not follow each other
        choose.shuffle(order)
        shape = [shape[axis] for axis in order]
        x = make.tensor(shape)
        make.op("TRANSPOSE", [fed, make.constant(order, np.int32, TensorType.INT32)], [x], TransposeOptions())
    reduced = [1 if axis in axes else size for axis, size in enumerate(shape) if keep or axis not in axes]
    y = make.tensor(reduced)
    make.op(name, [x, make.constant(axes, np.int32, TensorType.INT32)], [y], ReducerOptions(keep_dims=keep))
    make.io([fed], [y])
    value = np.random.default_rng(seed).integers(1, 5, make.graphs[0].tensors[fed].shape).astype(np.float32)
    within = 1e-6 if name in ("MEAN", "REDUCE_PROD") else 0
    check(make.model(), {fed: value}, within=within, target=choose.choice(TARGETS))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("type", [TensorType.INT32, TensorType.INT64])
@pytest.mark.parametrize("name", ["SUM", "MEAN", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD"])
def test_integers(name: str, type: TensorType, seed: int) -> None:
    """They wrap."""
    rng = np.random.default_rng(seed)
    make = ModelMaker()
    shape = rng.choice([1, 2, 5, 16, 31], rng.integers(1, 4)).tolist()
    axes = np.flatnonzero(rng.integers(0, 2, len(shape)))
    axes = axes if axes.size else np.array([0])
    x, y = make.tensor(shape, type), make.tensor(np.delete(shape, axes).tolist(), type)
    make.op(name, [x, make.constant(axes, np.int32, TensorType.INT32)], [y], ReducerOptions())
    make.io([x], [y])
    dtype = {TensorType.INT32: np.int32, TensorType.INT64: np.int64}[type]
    limits = np.iinfo(dtype)
    value = rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    check(make.model(), {x: value}, target=TARGETS[seed % len(TARGETS)])


@pytest.mark.parametrize("name", ["SOFTMAX", "LOG_SOFTMAX"])
@pytest.mark.parametrize("shape", [(1,), (3, 1), (2, 3, 7), (5, 16), (2, 33), (1, 1001)])
@pytest.mark.parametrize("beta", [1.0, 0.25, 0.0, -2.0])
def test_softmax(name: str, shape: tuple[int, ...], beta: float) -> None:
    make = ModelMaker()
    x, y = make.tensor(shape), make.tensor(shape)
    make.op(name, [x], [y], SoftmaxOptions(beta=beta) if name == "SOFTMAX" else None)
    make.io([x], [y])
    value = np.random.default_rng(0).normal(size=shape).astype(np.float32) * 4
    for target in TARGETS:
        check(make.model(), {x: value}, within=1e-6, target=target)
