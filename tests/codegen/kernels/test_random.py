from __future__ import annotations

import numpy as np
import pytest

from gossamer.codegen.compiler import assembly
from gossamer.codegen.kernels.random import WORDS, Algorithm, Random
from gossamer.ops._random_bits import counted, philox, threefry
from gossamer.targets import Target
from tests.codegen.kernels.harness import PLAIN, block, guarded, on_every_target, run

KEY, UPPER = (0x12345678, 0x9ABCDEF0), (5, 0xFFFFFFFF)


@on_every_target
@pytest.mark.parametrize("algorithm", WORDS)
@pytest.mark.parametrize("first", [0, 2**32 - 2, 2**64 - 2])
def test_words(target: Target, algorithm: Algorithm, first: int) -> None:
    spec = Random(target.name, algorithm)
    state = guarded(np.array([KEY[0] | KEY[1] << 32, first, UPPER[0] | UPPER[1] << 32], np.uint64))
    low, high = counted(first, 6)
    upper = [np.full_like(low, word) for word in UPPER]
    blocks = threefry(KEY, np.stack([low, high], 1))
    if algorithm == "philox":
        blocks = philox(KEY, np.stack([low, high, *upper], 1))
    for count in (1, WORDS[algorithm], 3 * WORDS[algorithm] - 1, 6 * WORDS[algorithm]):
        for threads in (1, 3):
            y = guarded(np.zeros(count, np.uint32))
            words = {"blocks": -(-count // WORDS[algorithm]), "count": count}
            run(spec, block(spec.arguments, state=state, y=y, **words), threads)
            np.testing.assert_array_equal(y, blocks.reshape(-1)[:count])


@pytest.mark.parametrize("target", PLAIN, ids=lambda target: target.name)
def test_compiles(target: Target) -> None:
    assert Random(target.name, "philox").name == f"u32_random_philox__{target.name}"
    assembly(Random(target.name, "threefry"), target)
