from __future__ import annotations

import numpy as np
import pytest

from gossamer.codegen.kernels.contract import panels_of
from gossamer.codegen.kernels.pack import Pack
from gossamer.errors import CompileError
from gossamer.targets import Target, all_targets
from tests.codegen.kernels.harness import guarded, normal, on_every_target, pack, pack_batch


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


@on_every_target
@pytest.mark.parametrize("by_depth", [False, True])
@pytest.mark.parametrize("packed_type", [np.float32, np.float16])
@pytest.mark.parametrize("threads", [1, 5])
def test_batches_of_16_bits(target: Target, by_depth: bool, packed_type: type, threads: int) -> None:
    rng = np.random.default_rng(1)
    channels, depth = target.lanes() + 3, 2 * target.lanes() + 1
    shape = (depth, channels) if by_depth else (channels, depth)
    weights = guarded(rng.standard_normal((3, *shape)).astype(np.float16))
    packed = pack_batch(target, weights, 2, threads, by_depth, packed_type)
    for matrix, got in zip(weights, packed, strict=True):
        np.testing.assert_array_equal(got, pack(target, matrix, 2, by_depth=by_depth).astype(packed_type))


@on_every_target
def test_a_single_panel_is_the_transposed_matrix(target: Target) -> None:
    rng = np.random.default_rng(2)
    rows, columns = 2 * target.lanes(), 11
    matrix = normal(rng, rows, columns)
    np.testing.assert_array_equal(pack(target, matrix, 2).reshape(columns, rows), matrix.T)


def test_packing_does_not_round() -> None:
    with pytest.raises(CompileError, match="does not round"):
        Pack("avx2", weights="f32", packed="f16").emit(all_targets()["avx2"])


def test_names() -> None:
    assert Pack("avx2", False, "f16", "f16").name == "f16_pack_channel__avx2"
    assert Pack("avx2", False, "f16").name == "f16_f32_pack_channel__avx2"
    assert Pack("avx2").name == "f32_pack_channel__avx2"
    assert Pack("avx2", True).name == "f32_pack_depth__avx2"
