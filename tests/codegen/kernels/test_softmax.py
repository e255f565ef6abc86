from __future__ import annotations

import numpy as np
import pytest

from gossamer.codegen.compiler import assembly
from gossamer.codegen.kernels.softmax import Softmax
from gossamer.targets import Target
from tests.codegen.kernels.harness import PLAIN, block, filled, guarded, normal, on_every_target, run


def softmax(
    target: Target, x: np.ndarray, y: np.ndarray, beta: float = 1.0, log: bool = False, threads: int = 1
) -> None:
    spec = Softmax(target.name, log)
    scale = np.array([beta], np.float32)
    rows, count = x.shape
    arguments = block(
        spec.arguments, x=x, y=y, beta=scale, rows=rows, count=count, x_row=x.strides[0], y_row=y.strides[0]
    )
    run(spec, arguments, threads)


def expected(x: np.ndarray, beta: float, log: bool) -> np.ndarray:
    shifted = (x - x.max(1, keepdims=True)).astype(np.float64) * beta
    power = np.exp(shifted)
    total = power.sum(1, keepdims=True)
    return shifted - np.log(total) if log else power / total


@on_every_target
@pytest.mark.parametrize("log", [False, True])
def test_rows(target: Target, log: bool) -> None:
    rng = np.random.default_rng(0)
    lanes = target.lanes()
    for count in (1, 2, lanes - 1, lanes, lanes + 1, 4 * lanes, 1001):
        x = normal(rng, 6, count + 3)[:, :count] * 5
        for beta in (1.0,) if log else (1.0, 0.25, 3.0):
            results = []
            for threads in (1, 2, 3):
                y = filled((6, count))
                softmax(target, x, y, beta, log, threads)
                results.append(y.tobytes())
            np.testing.assert_allclose(y, expected(x, beta, log), rtol=2e-6, atol=2e-6 if log else 1e-12)
            assert len(set(results)) == 1


@on_every_target
def test_masked_and_large_numbers(target: Target) -> None:
    x = guarded(np.array([[1e4, 1e4, -1e4, -np.inf, 0.0], [-1e9, -1e9, -1e9, -1e9, -1e9]], np.float32))
    y = filled(x.shape)
    softmax(target, x, y)
    np.testing.assert_allclose(y, [[0.5, 0.5, 0, 0, 0], [0.2] * 5], rtol=1e-6)


@on_every_target
@pytest.mark.parametrize("log", [False, True])
def test_in_place(target: Target, log: bool) -> None:
    x = normal(np.random.default_rng(1), 3, 37)
    want = expected(x, 1.0, log)
    softmax(target, x, x, log=log)
    np.testing.assert_allclose(x, want, rtol=2e-6, atol=2e-6)


def test_names() -> None:
    assert Softmax("avx2").name == "f32_softmax__avx2"
    assert Softmax("avx2", True).name == "f32_logsoftmax__avx2"


@pytest.mark.parametrize("target", PLAIN, ids=lambda target: target.name)
@pytest.mark.parametrize("log", [False, True])
def test_it_compiles(target: Target, log: bool) -> None:
    assembly(Softmax(target.name, log), target)
