from __future__ import annotations

import numpy as np
import pytest

from gossamer.codegen.compiler import assembly
from gossamer.codegen.kernels.advance import ROW, Advance
from gossamer.targets import Target
from tests.codegen.kernels.harness import PLAIN, block, guarded, on_every_target, run


@on_every_target
@pytest.mark.parametrize("threads", [1, 3])
def test_words_are_set_and_advance(target: Target, threads: int) -> None:
    words = guarded(np.array([5, -7, 1 << 40, 3], np.int64))
    rows = [(0, -1, 4), (1, 0, 9), (2, -1, -1), (0, -1, 1)]
    table = guarded(np.array([(words.ctypes.data + 8 * at, kept, plus) for at, kept, plus in rows], np.int64))
    assert [one.name for one in ROW] == ["at", "kept", "plus"]
    run(Advance(target.name), block(Advance.arguments, table=table, count=len(rows)), threads)
    assert words.tolist() == [10, 9, (1 << 40) - 1, 3]
    run(Advance(target.name), block(Advance.arguments, table=table, count=0), threads)
    assert words.tolist() == [10, 9, (1 << 40) - 1, 3]


@pytest.mark.parametrize("target", PLAIN, ids=lambda target: target.name)
def test_it_compiles(target: Target) -> None:
    assembly(Advance(target.name), target)
