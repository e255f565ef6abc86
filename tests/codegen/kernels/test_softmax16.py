"""The softmax of int16: against the reference kernel's arithmetic."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer.codegen.kernels.softmax16 import Softmax16
from gossamer.ops.softmax import _exp_table, _reciprocal_table, softmax_16
from gossamer.quantization import QuantizedMultiplier, quantize_multiplier
from gossamer.targets import Target
from tests.codegen.kernels.harness import block, guarded, on_every_target, run


def pairs(table: np.ndarray) -> np.ndarray:
    low = table.astype(np.int64)
    steps = (low[1:] - low[:-1]).astype(np.int16).astype(np.int64)
    return guarded(((low[:-1] & 0xFFFF) | (steps << 16)).astype(np.int32))


@on_every_target
@pytest.mark.parametrize("count", [1, 3, 16, 65])
@pytest.mark.parametrize("scale", [1e-4, 3e-3, 0.5])
def test_softmax(target: Target, count: int, scale: float) -> None:
    rng = np.random.default_rng(count)
    x = guarded((rng.integers(-32768, 32768, (7, count)) >> rng.integers(0, 12, (7, 1))).astype(np.int16))
    multiplier, shift = quantize_multiplier(scale / (10 / 65535))
    y, exps, reciprocals = guarded(np.zeros_like(x)), pairs(_exp_table()), pairs(_reciprocal_table())
    words = guarded(np.array([multiplier, max(shift, 0), max(-shift, 0)], np.int32))
    arguments = block(
        Softmax16.arguments,
        x=x,
        y=y,
        scale=words,
        exps=exps,
        reciprocals=reciprocals,
        rows=7,
        count=count,
        x_row=x.strides[0],
        y_row=y.strides[0],
    )
    run(Softmax16(target.name), arguments, 3)
    np.testing.assert_array_equal(
        y, softmax_16(x, QuantizedMultiplier(multiplier, shift), _exp_table(), _reciprocal_table())
    )
