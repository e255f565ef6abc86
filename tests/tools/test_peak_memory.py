"""The most memory that the process has held."""

from __future__ import annotations

import numpy as np

from gossamer.tools._peak_memory import peak_bytes


def test_the_peak_sees_what_is_touched_and_keeps_it() -> None:
    before = peak_bytes()
    assert before is not None
    block = np.ones(max(1, before // 8) + (1 << 22), np.float64)
    held = peak_bytes()
    assert held is not None
    assert held >= block.nbytes
    del block
    after = peak_bytes()
    assert after is not None
    assert after >= 0.99 * held  # Linux counts in batches
