"""Plans as plain values, to be kept beside the kernels: a known graph is not planned again."""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer.programs.program import ProgramPlan


def plain(plan: ProgramPlan) -> tuple[Any, ...]:
    """A plan as plain values."""
    relocations = {base: at.tobytes() for base, at in plan.relocations.items()}
    tables = (plan.words, plan.packing, plan.packed, plan.computing, plan.commands)
    return (plan.kernels, dict(plan.sizes), plan.packs, relocations, *(table.tobytes() for table in tables))


def plan_of(values: tuple[Any, ...]) -> ProgramPlan:
    """The plan that `plain` took apart."""
    kernels, sizes, packs, relocations, *tables = values
    words, packing, packed, computing, commands = (np.frombuffer(table, np.int64) for table in tables)
    return ProgramPlan(
        tuple(kernels),
        words,
        {base: np.frombuffer(at, np.int64) for base, at in relocations.items()},
        packing.reshape(-1, 3),
        packed.reshape(-1, 2),
        computing.reshape(-1, 3),
        commands.reshape(-1, 3),
        sizes,
        packs,
    )
