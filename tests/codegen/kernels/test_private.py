from __future__ import annotations

import numpy as np
import pytest

from gossamer.codegen.compiler import assembly
from gossamer.codegen.kernels.fill import Fill
from gossamer.codegen.kernels.private import Private
from gossamer.targets import Target
from tests.codegen.kernels.harness import PLAIN, block, filled, guarded, on_every_target, run

THREADS = 3


@on_every_target
@pytest.mark.parametrize("alone", [False, True])
def test_every_thread_has_memory_of_its_own(target: Target, alone: bool) -> None:
    memory, value = filled((THREADS, 64), 1.0), guarded(np.array([2], np.float32))
    spec = Fill(target.name, 32)
    strides = {f"{side}_{way}": 0 for side in ("source", "destination") for way in ("group", "row", "column")}
    arguments = block(
        spec.arguments,
        source=value,
        destination=memory,
        groups=1,
        rows=1,
        columns=1,
        run=24 * THREADS,
        block=24,
        blocks=THREADS,
        **strides,
    )
    before = arguments.copy()
    names = [argument.name for argument in spec.arguments]
    private = block(
        Private.arguments,
        kernel=spec,
        block=arguments,
        words=len(arguments),
        position=names.index("destination"),
        scratch_thread=memory.strides[0],
        alone=int(alone),
    )
    run(Private(target.name), private, THREADS)
    want = np.ones((THREADS, 64), np.float32)
    for tid in range(THREADS):
        want[tid, slice(0, 6 * THREADS) if alone else slice(6 * tid, 6 * tid + 6)] = 2
    np.testing.assert_array_equal(memory, want)
    np.testing.assert_array_equal(arguments, before)


@pytest.mark.parametrize("target", PLAIN, ids=lambda target: target.name)
def test_it_compiles(target: Target) -> None:
    assert Private(target.name).name == f"private__{target.name}"
    assembly(Private(target.name), target)
