from __future__ import annotations

import numpy as np
import pytest

from gossamer.codegen.kernels.contract import panels_of
from gossamer.codegen.kernels.pack import Pack
from gossamer.targets import Target
from tests.codegen.kernels.harness import normal, on_every_target, pack


@on_every_target
@pytest.mark.parametrize("by_depth", [False, True])
@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("nv", [1, 2, 3])
def test_panels_hold_the_weights(target: Target, nv: int, threads: int, by_depth: bool) -> None:
    rng = np.random.default_rng(0)
    lanes = target.lanes()
    for channels in (1, lanes - 1, lanes, lanes + 1, nv * lanes, 3 * nv * lanes + 2 * lanes - 3):
        for depth in (1, lanes - 1, lanes, lanes + 1, 2 * lanes, 3 * lanes + 5):
            weights = normal(rng, channels, depth)
            source = np.ascontiguousarray(weights.T) if by_depth else weights
            packed = pack(target, source, nv, threads, by_depth)
            panels = panels_of(channels, nv, lanes)
            edge = "constant" if by_depth else "edge"
            full = np.pad(weights, ((0, panels.vectors * lanes - channels), (0, 0)), edge)
            want = [
                full[first : first + nv * lanes].T.ravel() for first in range(0, panels.vectors * lanes, nv * lanes)
            ]
            np.testing.assert_array_equal(packed, np.concatenate(want))


def test_names() -> None:
    assert Pack("avx2").name == "f32_pack_channel__avx2"
    assert Pack("avx2", True).name == "f32_pack_depth__avx2"
