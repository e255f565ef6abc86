"""Bytes in 16 bits."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer.codegen.compiler import assembly
from gossamer.codegen.dots import Byte
from gossamer.codegen.kernels.widen import BLOCK, Widen
from gossamer.targets import Target
from tests.codegen.kernels.harness import PLAIN, block, guarded, on_every_target, run
from tests.codegen.kernels.test_quantized_contract import TYPES


@on_every_target
@pytest.mark.parametrize("type", ["i8", "u8"])
def test_widens(type: Byte, target: Target) -> None:
    rng = np.random.default_rng(0)
    spec = Widen(target.name, type)
    for count in (0, 1, 5, 31, 100, BLOCK + 3):
        x = guarded(rng.integers(0, 256, count).astype(np.uint8).view(TYPES[type]))
        y = guarded(np.full(count, 77, np.int16))
        run(spec, block(spec.arguments, x=x, y=y, count=count), 2)
        np.testing.assert_array_equal(y, x.astype(np.int16))


@pytest.mark.parametrize("target", PLAIN, ids=lambda target: target.name)
def test_compiles_for_every_target(target: Target) -> None:
    assembly(Widen(target.name, "i8"), target)
