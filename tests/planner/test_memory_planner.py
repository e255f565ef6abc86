from __future__ import annotations

import pytest

from gossamer.errors import ArenaError
from gossamer.planner.greedy import GreedyMemoryPlanner
from gossamer.planner.planner import BufferRequest, Placement, Plan


def test_buffers_are_numbered_as_they_come_and_planned_at_once() -> None:
    planner = GreedyMemoryPlanner()
    assert [planner.add_buffer(10, 0, 1), planner.add_buffer(20, 1, 2)] == [0, 1]
    first, second = BufferRequest(0, 10, 0, 1), BufferRequest(1, 20, 1, 2)
    assert planner.plan() == Plan("greedy plan", 30, (Placement(20, first), Placement(0, second)))
    assert planner.plan() is planner.plan()
    planner.add_buffer(30, 2, 2)
    assert planner.plan().offsets == {0: 0, 1: 30, 2: 0}


def test_init_forgets() -> None:
    planner = GreedyMemoryPlanner()
    planner.add_buffer(10, 0, 1)
    planner.init()
    assert planner.plan() == Plan("greedy plan", 0, ())


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ((-1, 0, 1), "buffer 0 has -1 bytes; allowed are 0 to 2147483647"),
        ((1 << 31, 0, 1), "buffer 0 has 2147483648 bytes"),
        ((16, 0, 1, -2), "buffer 0 has offline offset -2; allowed are -1 and above"),
        ((16, 0, 1, 1 << 31), "buffer 0 has offline offset 2147483648"),
    ],
)
def test_what_no_device_can_count_is_refused(row: tuple[int, int, int], message: str) -> None:
    with pytest.raises(ArenaError, match=message):
        GreedyMemoryPlanner().add_buffer(*row)
