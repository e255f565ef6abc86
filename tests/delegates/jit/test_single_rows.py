"""Fully connected layers of a single row: which of them have weights of 24 bits, and what comes out."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer.codegen.kernels.contract24 import narrows
from gossamer.schema import ActivationFunctionType, FullyConnectedOptions, TensorType
from tests.delegates.jit.running import TARGETS, check, machine_code
from tests.runtime.graphs import ModelMaker

pytestmark = pytest.mark.skipif(not any(map(narrows, TARGETS)), reason="no weights of 24 bits for this CPU")

FLOAT = TensorType.FLOAT32


@pytest.mark.parametrize(
    ("rows", "depth", "channels", "is_narrow"),
    [
        (1, 256, 128, True),
        (1, 256, 127, False),  # as many bytes less
        (2, 256, 128, False),
        (1, 2048, 16, False),  # a single sum
        (1, 2048, 17, False),  # hardly more than half of two vectors
        (1, 1024, 32, True),
        (1, 1024, 70, True),  # 5 vectors take 4 lines
    ],
)
def test_weights_have_24_bits_where_they_are_fewer_bytes(rows: int, depth: int, channels: int, is_narrow: bool) -> None:
    make, rng = ModelMaker(), np.random.default_rng(0)
    x, y = make.tensor((rows, depth)), make.tensor((rows, channels))
    weights = make.constant(rng.uniform(-1, 1, (channels, depth)) / depth, np.float32, FLOAT)
    bias = make.constant(rng.uniform(-1, 1, channels), np.float32, FLOAT)
    options = FullyConnectedOptions(fused_activation_function=ActivationFunctionType.RELU)
    make.op("FULLY_CONNECTED", [x, weights, bias], [y], options)
    make.io([x], [y])
    check(make.model(), {x: rng.uniform(-1, 1, (rows, depth)).astype(np.float32)}, within=1e-6)
    _, kernel = machine_code(make.model())
    assert kernel.program is not None
    names = kernel.program.plan.kernels
    assert any("i24w" in name for name in names) is is_narrow
    assert any("f32_dot" in name for name in names) is (rows == 1 and not is_narrow)
