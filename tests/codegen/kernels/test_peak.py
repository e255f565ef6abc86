from __future__ import annotations

import numpy as np
import pytest

from gossamer.codegen import peak
from gossamer.codegen.dots import depth, flips, multiplies_pairs
from gossamer.codegen.kernels.peak import CHAINS, READS, MultiplyAdd, MultiplyAddBytes, Read
from gossamer.targets import Target
from tests.codegen.kernels.harness import block, filled, guarded, on_every_extension, on_every_target, run
from tests.programs.kernels import target_here


@on_every_target
@pytest.mark.parametrize("turns", [0, 1, 3, 100])
def test_multiply_add(target: Target, turns: int) -> None:
    threads, lanes = 3, target.lanes()
    y = filled((threads, 16))
    spec = MultiplyAdd(target.name)
    run(spec, block(spec.arguments, y=y, turns=turns), threads)
    chains = np.arange(CHAINS, dtype=np.float32)
    for _ in range(turns):
        chains = chains * np.float32(0.5) + np.float32(1)
    np.testing.assert_allclose(y[:, :lanes], chains.sum(), rtol=1e-6)
    assert np.isnan(y[:, lanes:]).all()


@on_every_extension
@pytest.mark.parametrize("turns", [0, 1, 100, 300])
def test_multiply_add_of_bytes(target: Target, turns: int) -> None:
    threads, lanes, steps = 3, target.lanes(), depth(target)
    y = guarded(np.full((threads, 16), -1, np.int32))
    spec = MultiplyAddBytes(target.name)
    run(spec, block(spec.arguments, y=y, turns=turns), threads)
    # A turn's activations are the bytes of its number, low ones first, or pairs of 16 bits.
    chains, numbers = np.arange(CHAINS), np.arange(turns, dtype=np.int32)
    type = np.dtype(np.int16 if multiplies_pairs(target) else np.int8)
    values = numbers.view(type).reshape(turns, 4 // type.itemsize)[:, :steps]
    if flips(target, "i8"):
        values = values.astype(np.int64) + 128
    total = int(values.sum(dtype=np.int64)) * int((chains + 1).sum()) + int(chains.sum())
    assert (y[:, :lanes] == total).all()
    assert (y[:, lanes:] == -1).all()


@on_every_target
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_read_takes_every_element_once(target: Target, threads: int) -> None:
    count = 7 * READS * target.lanes()
    x = guarded(np.arange(count, dtype=np.float32))
    y = filled((threads, 16))
    spec = Read(target.name)
    run(spec, block(spec.arguments, x=x, y=y, count=count), threads)
    assert y[:, : target.lanes()].sum(dtype=np.float64) == count * (count - 1) // 2


@pytest.mark.parametrize("threads", [1, 2])
def test_all_rates_are_measured(monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    monkeypatch.setattr(peak, "READ", 1 << 20)
    monkeypatch.setattr(peak, "TURNS", 1 << 10)
    found = peak.measure_peak(target_here(), threads)
    assert found.flops > 0
    assert found.bytes > 0
    assert found.byte_flops > 0
