"""Buffers for planners of one arena: (bytes, first use, last use), and an offline offset behind them or not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gossamer.planner.memory_planner import MemoryPlanner
from gossamer.planner.planner import Plan

Row = Sequence[int]


def chain(sizes: Iterable[int]) -> list[Row]:
    """The tensors of a network that is a chain: each is written at one step and read at the next."""
    return [(size, step, step + 1) for step, size in enumerate(sizes)]


# fmt: off
PERSON_DETECTION = [
    (9216, 0, 29),
    *reversed(chain([
        18432, 18432, 36864, 9216, 18432, 18432, 18432, 4608, 9216, 9216, 9216, 2304, *[4608] * 11, 1152, 2304, 2304,
        2304, 256, 3,
    ])),
]
"""Those of TFLite Micro's planner tests, from a MobileNet that detects persons."""

VWW = [
    *chain([
        27648, 18432, 18432, 36864, 9216, 18432, 18432, 18432, 4608, 9216, 9216, 9216, 2304, *[4608] * 11, 1152, 2304,
        2304, 2304, 256, 256, 16,
    ]),
    (16, 31, 31),
]
"""Those of MLPerf Tiny's visual wake words, a MobileNet, in the order of their tensors."""
# fmt: on


def planned(planner: MemoryPlanner, rows: Iterable[Row]) -> Plan:
    """The plan for these buffers."""
    for row in rows:
        planner.add_buffer(*row)
    return planner.plan()


def offsets(plan: Plan) -> list[int]:
    """The offset of each buffer."""
    return [offset for offset, _ in plan.placements]
