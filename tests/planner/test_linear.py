"""The cases of TFLite Micro's linear_memory_planner_test.cc."""

from __future__ import annotations

import pytest

from gossamer.errors import ArenaError
from gossamer.planner.linear import LinearMemoryPlanner
from tests.planner.buffers import PERSON_DETECTION, chain, offsets, planned


def test_buffers_lie_one_behind_the_other() -> None:
    plan = planned(LinearMemoryPlanner(), [(10, 0, 1), (20, 1, 2)])
    assert (offsets(plan), plan.size) == ([0, 10], 30)
    assert planned(LinearMemoryPlanner(), []).size == 0


def test_person_detection() -> None:
    plan = planned(LinearMemoryPlanner(), PERSON_DETECTION)
    plan.check()
    assert plan.size == 241027


def test_an_offline_offset_is_refused() -> None:
    with pytest.raises(ArenaError, match="a linear plan has no place for offsets that were planned offline"):
        LinearMemoryPlanner().add_buffer(10, 0, 1, 0)


def test_there_is_room_for_1024_buffers() -> None:
    planner = LinearMemoryPlanner()
    assert planned(planner, chain([16] * 1024)).size == 16384
    with pytest.raises(ArenaError, match="too many buffers: the planner has room for 1024"):
        planner.add_buffer(16, 0, 0)


def test_every_tensor_can_be_read_afterwards() -> None:
    assert LinearMemoryPlanner.preserves_all_tensors
