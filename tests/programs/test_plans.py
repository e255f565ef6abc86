"""Plans as plain values."""

from __future__ import annotations

import numpy as np

from gossamer.programs import plans
from gossamer.programs.program import ARENA, MODEL, ProgramBuilder


def test_a_plan_comes_back_as_it_was() -> None:
    builder = ProgramBuilder()
    block = builder.block([1, builder.kernel("a__avx2"), 7])
    builder.pack("pack__avx2", block, reads=None)
    builder.command("b__avx2", builder.block([block, 2]), barrier=False)
    plan = builder.plan(**{ARENA: 128})
    back = plans.plan_of(plans.plain(plan))
    assert back.kernels == plan.kernels
    assert back.sizes == plan.sizes
    assert back.relocations.keys() == plan.relocations.keys()
    for base, at in plan.relocations.items():
        np.testing.assert_array_equal(back.relocations[base], at)
    for name in ("words", "packing", "packed", "commands"):
        np.testing.assert_array_equal(getattr(back, name), getattr(plan, name))
    assert back.bases == plan.bases
    assert MODEL not in back.bases
