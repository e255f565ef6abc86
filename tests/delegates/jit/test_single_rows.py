"""Fully connected layers of one or two rows: which kernels multiply them, and what comes out."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer.codegen.kernels.contract24 import narrowed
from gossamer.schema import ActivationFunctionType, FullyConnectedOptions, TensorType
from gossamer.targets import Target
from tests.delegates.jit.running import TARGETS, check, machine_code, outputs
from tests.runtime.graphs import ModelMaker

FLOAT = TensorType.FLOAT32


def _narrow(otherwise: str) -> str:
    return "i24w_gemm" if min(map(narrowed, TARGETS)) <= 4 * 128 * 256 else otherwise


@pytest.mark.parametrize(
    ("rows", "depth", "channels", "kernel"),
    [
        (1, 256, 128, _narrow("f32_gemm")),
        (1, 256, 127, "f32_gemm"),  # they stay in the first-level cache
        (2, 256, 128, "f32_gemm"),
        (2, 512, 512, "f32_gemm"),
        (1, 512, 512, _narrow("f32_gemm")),
        (1, 4096, 8, "f32_dot"),  # a single sum, or two
        (1, 2048, 16, "f32_"),
        (1, 2048, 17, "f32_"),  # hardly more than half of two vectors
        (1, 1024, 32, _narrow("f32_")),
        (1, 1024, 70, _narrow("f32_gemm")),  # 5 vectors take 4 lines
    ],
)
def test_how_few_rows_are_multiplied(rows: int, depth: int, channels: int, kernel: str) -> None:
    make, rng = ModelMaker(), np.random.default_rng(0)
    x, y = make.tensor((rows, depth)), make.tensor((rows, channels))
    weights = make.constant(rng.uniform(-1, 1, (channels, depth)) / depth, np.float32, FLOAT)
    bias = make.constant(rng.uniform(-1, 1, channels), np.float32, FLOAT)
    options = FullyConnectedOptions(fused_activation_function=ActivationFunctionType.RELU)
    make.op("FULLY_CONNECTED", [x, weights, bias], [y], options)
    make.io([x], [y])
    check(make.model(), {x: rng.uniform(-1, 1, (rows, depth)).astype(np.float32)}, within=3e-6)
    _, delegated = machine_code(make.model())
    assert delegated.program is not None
    products = [name for name in delegated.program.plan.kernels if "gemm" in name or "dot" in name]
    assert products
    assert all(kernel in name for name in products)


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_what_comes_from_memory_has_24_bits_with_small_registers_too(target: Target) -> None:
    make, rng = ModelMaker(), np.random.default_rng(0)
    x, y = make.tensor((1, 1024)), make.tensor((1, 768))
    weights = rng.uniform(-1, 1, (768, 1024)).astype(np.float32)
    stored = make.constant(weights, np.float32, FLOAT)
    make.op("FULLY_CONNECTED", [x, stored, -1], [y], FullyConnectedOptions())
    make.io([x], [y])
    interpreter, delegated = machine_code(make.model(), target=target)
    assert delegated.program is not None
    narrow = any("i24w_gemm" in name for name in delegated.program.plan.kernels)
    assert narrow is (target.vector_bits == 256 or target.has("avx512vbmi2"))
    row = rng.uniform(-1, 1, (1, 1024)).astype(np.float32)
    (got,) = outputs(interpreter, {x: row})
    np.testing.assert_allclose(got, row.astype(np.float64) @ weights.T, atol=3e-5)
