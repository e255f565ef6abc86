"""float16 weights: read where the file has them, and widened on the way."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer.schema import Conv2DOptions, FullyConnectedOptions, Padding, TensorType
from tests.delegates.jit.running import TARGETS, check, machine_code
from tests.runtime.graphs import ModelMaker

pytestmark = pytest.mark.skipif(not TARGETS, reason="no machine code for this CPU")


def widened(make: ModelMaker, rng: np.random.Generator, *shape: int) -> int:
    """The float32 tensor that DEQUANTIZE makes of a float16 constant, as converters write it."""
    stored = make.constant(rng.standard_normal(shape) / 4, np.float16, TensorType.FLOAT16)
    y = make.tensor(shape)
    make.op("DEQUANTIZE", [stored], [y], version=3)
    return y


@pytest.mark.parametrize(("size", "kernel", "channels"), [(5, 1, 40), (9, 3, 24), (12, 3, 64)])
def test_convolution(size: int, kernel: int, channels: int) -> None:
    make, rng = ModelMaker(), np.random.default_rng(0)
    x, y = make.tensor((1, size, size, 32)), make.tensor((1, size, size, channels))
    weights, bias = widened(make, rng, channels, kernel, kernel, 32), widened(make, rng, channels)
    options = Conv2DOptions(stride_h=1, stride_w=1, padding=Padding.SAME)
    make.op("CONV_2D", [x, weights, bias], [y], options)
    make.io([x], [y])
    value = rng.standard_normal((1, size, size, 32)).astype(np.float32)
    for target in TARGETS:
        check(make.model(), {x: value}, within=1e-5, target=target)
    _, program = machine_code(make.model())
    assert program.built is not None
    # Nothing was widened beforehand: only what is too small to matter is a constant of its own.
    assert program.built.constants.nbytes < 4 * channels * kernel * kernel * 32
    assert any(name.startswith(("f16_f32_pack", "f16_f32_winograd_weights")) for name in program.built.specs)


@pytest.mark.parametrize("rows", [1, 3, 20])
def test_fully_connected(rows: int) -> None:
    make, rng = ModelMaker(), np.random.default_rng(1)
    x, y = make.tensor((rows, 48)), make.tensor((rows, 33))
    make.op("FULLY_CONNECTED", [x, widened(make, rng, 33, 48)], [y], FullyConnectedOptions())
    make.io([x], [y])
    value = rng.standard_normal((rows, 48)).astype(np.float32)
    for target in TARGETS:
        check(make.model(), {x: value}, within=2e-6, target=target)
    _, program = machine_code(make.model())
    assert program.built is not None
    assert program.built.constants.nbytes < 4 * 33 * 48
