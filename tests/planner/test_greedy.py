"""The cases of TFLite Micro's greedy_memory_planner_test.cc, and plans that its planner made of others."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gossamer.errors import ArenaError
from gossamer.planner.greedy import GreedyMemoryPlanner, first_fit
from gossamer.planner.memory_planner import ONLINE
from gossamer.planner.planner import BufferRequest
from tests.planner.buffers import PERSON_DETECTION, VWW, Row, chain, offsets, planned


@pytest.mark.parametrize(
    ("rows", "expected", "size"),
    [
        ([(100, 0, 1), (80, 2, 3), (50, 1, 2)], [0, 0, 100], 150),
        ([(10, 0, 1), (20, 2, 3)], [0, 0], 20),
        ([(10, 0, 1), (20, 1, 2), (30, 2, 3), (40, 3, 4), (50, 0, 1)], [50, 70, 40, 0, 0], 90),
        ([(100, 0, 1), (50, 2, 3), (20, 1, 2)], [0, 0, 100], 120),
        ([], [], 0),
        ([(0, 0, 0), (16, 0, 0)], [0, 0], 16),
    ],
    ids=["worked example", "basics", "medium", "overlap", "nothing", "no bytes"],
)
def test_small_plans(rows: list[Row], expected: list[int], size: int) -> None:
    plan = planned(GreedyMemoryPlanner(), rows)
    plan.check()
    assert (offsets(plan), plan.size) == (expected, size)


def test_larger_buffers_come_first_and_of_equal_ones_the_later() -> None:
    rising = [(size, 0, 0) for size in range(1, 11)]
    assert offsets(planned(GreedyMemoryPlanner(), rising)) == [sum(range(size + 1, 11)) for size in range(1, 11)]
    equal = [(8, 0, 0), (16, 0, 0), (8, 0, 0), (16, 0, 0)]
    assert offsets(planned(GreedyMemoryPlanner(), equal)) == [40, 16, 32, 0]


def test_person_detection() -> None:
    plan = planned(GreedyMemoryPlanner(), PERSON_DETECTION)
    plan.check()
    assert sum(size for size, *_ in PERSON_DETECTION) == 241027
    assert plan.size == 64512
    # fmt: off
    assert offsets(plan) == [
        55296, 0, 2304, 0, 2304, 0, 4608, 0, 4608, 0, 4608, 0, 4608, 0, 4608, 0, 4608, 0, 9216, 0, 9216, 0, 18432, 0,
        18432, 0, 36864, 0, 36864, 0,
    ]
    # fmt: on


def test_visual_wake_words_takes_more_than_it_needs() -> None:
    plan = planned(GreedyMemoryPlanner(), VWW)
    plan.check()
    assert (plan.size, plan.lower_bound()) == (73728, 55296)


def test_what_was_planned_offline_comes_first_and_stays() -> None:
    # Buffers 0 and 2 overlap on purpose; the others find their place around them.
    rows = [(100, 0, 2, 40), (60, 1, 1), (60, 2, 3, 100), (30, 0, 3), (40, 3, 4)]
    plan = planned(GreedyMemoryPlanner(), rows)
    assert (offsets(plan), plan.size) == ([40, 140, 100, 200, 0], 230)


def test_an_offline_plan_leaves_its_gaps_to_the_others() -> None:
    assert offsets(planned(GreedyMemoryPlanner(), [(16, 0, 1, 64), (32, 0, 1), (48, 1, 1)])) == [64, 80, 0]


def test_the_planner_has_room_for_as_many_buffers_as_its_tables() -> None:
    planner = GreedyMemoryPlanner()
    planner.init(79)
    planner.add_buffer(100, 0, 1)
    with pytest.raises(ArenaError, match="too many buffers: the planner has room for 1"):
        planner.add_buffer(50, 2, 3)


spans = st.tuples(st.integers(0, 64), st.integers(0, 9), st.integers(0, 6), st.sampled_from([ONLINE, ONLINE, 0, 32]))


@example([(0, 0, 0, 32), (16, 0, 0, ONLINE), (17, 0, 0, ONLINE)])
@given(st.lists(spans, max_size=12))
def test_each_buffer_lies_as_low_as_those_before_it_let_it(rows: list[tuple[int, int, int, int]]) -> None:
    requests = [BufferRequest(i, size, first, first + more) for i, (size, first, more, _) in enumerate(rows)]
    offline = [row[3] for row in rows]
    order = [i for i, offset in enumerate(offline) if offset == ONLINE]
    found = first_fit(requests, offline, order)
    before = [i for i in range(len(rows)) if i not in order]
    for i in order:
        alive = [
            (found[j], found[j] + requests[j].size)
            for j in before
            if requests[j].first_use <= requests[i].last_use and requests[i].first_use <= requests[j].last_use
        ]
        # Nothing lies across the place of an empty buffer either.
        free = (
            at for at in range(found[i] + 1) if all(at + requests[i].size <= start or end <= at for start, end in alive)
        )
        if requests[i].size:
            assert next(free) == found[i]
        before.append(i)


@settings(max_examples=30)
@given(st.lists(spans, max_size=30))
def test_many_buffers_are_placed_alike(rows: list[tuple[int, int, int, int]]) -> None:
    buffers = [(size, first, first + more, offset) for size, first, more, offset in rows]
    few = offsets(planned(GreedyMemoryPlanner(), buffers))
    # Enough empty ones that the search is done on arrays; they take no room.
    padding = [(0, 20, 20)] * 1000
    assert offsets(planned(GreedyMemoryPlanner(), [*buffers, *padding]))[: len(rows)] == few


def test_a_chain_of_many_equal_buffers() -> None:
    assert offsets(planned(GreedyMemoryPlanner(), chain([16] * 6))) == [16, 0, 16, 0, 16, 0]
