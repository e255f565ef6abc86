from __future__ import annotations

import numpy as np
import pytest

from gossamer.codegen.compiler import assembly
from gossamer.codegen.kernels.hash_signs import HashSigns
from gossamer.ops._farm_hash import signs_of_hashes
from gossamer.targets import Target
from tests.codegen.kernels.harness import PLAIN, block, guarded, on_every_target, run


@on_every_target
def test_signs(target: Target) -> None:
    rng = np.random.default_rng(0)
    spec = HashSigns(target.name)
    for width in (0, 1, 3, 4, 5, 12, 13, 28, 29, 60, 61, 124, 125, 300):
        for rows in (1, 3):
            seeds = guarded(rng.standard_normal(9).astype(np.float32))
            x = guarded(rng.integers(0, 256, (rows, width)).astype(np.uint8))
            weights = guarded(rng.standard_normal(rows).astype(np.float32))
            y, key = guarded(np.full(9, -1, np.int32)), guarded(np.zeros(4 + width, np.uint8))
            numbers = {"count": 9, "rows": rows, "width": width}
            run(spec, block(spec.arguments, seeds=seeds, x=x, weights=weights, y=y, key=key, **numbers), 2)
            np.testing.assert_array_equal(y, signs_of_hashes(seeds, x, weights))


@pytest.mark.parametrize("target", PLAIN, ids=lambda target: target.name)
def test_compiles_for_every_target(target: Target) -> None:
    assembly(HashSigns(target.name), target)


def test_name() -> None:
    assert HashSigns("avx2").name == "f32_hashsigns__avx2"
