from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.planner import search
from gossamer.planner.greedy import GreedyMemoryPlanner
from gossamer.planner.search import SearchMemoryPlanner
from tests.planner.buffers import PERSON_DETECTION, VWW, Row, chain, offsets, planned


def test_visual_wake_words_needs_what_is_alive_at_once() -> None:
    plan = planned(SearchMemoryPlanner(), VWW)
    plan.check()
    assert plan.size == plan.lower_bound() == 55296


def test_the_greedy_planner_obeys_the_plan() -> None:
    plan = planned(SearchMemoryPlanner(), VWW)
    obeyed = planned(GreedyMemoryPlanner(), [(*row, at) for row, at in zip(VWW, offsets(plan), strict=True)])
    assert (offsets(obeyed), obeyed.size) == (offsets(plan), 55296)


def test_where_nothing_can_be_gained_the_plan_is_the_greedy_one() -> None:
    assert offsets(planned(SearchMemoryPlanner(), PERSON_DETECTION)) == offsets(
        planned(GreedyMemoryPlanner(), PERSON_DETECTION)
    )
    assert planned(SearchMemoryPlanner(), []).size == 0


def test_what_was_planned_offline_stays() -> None:
    rows = [(100, 0, 2, 40), (60, 1, 1), (60, 2, 3, 100)]
    assert offsets(planned(SearchMemoryPlanner(), rows)) == offsets(planned(GreedyMemoryPlanner(), rows))


def test_networks_with_shortcuts_reach_the_lower_bound() -> None:
    chance = random.Random(7)
    for length in (30, 100):
        for _ in range(20):
            rows = [
                (size, first, last + (chance.randint(1, 5) if chance.random() < 0.25 else 0))
                for size, first, last in chain(16 * chance.choice([1, 2, 3, 4, 8, 24, 64, 192]) for _ in range(length))
            ]
            plan = planned(SearchMemoryPlanner(), rows)
            plan.check()
            assert plan.size == plan.lower_bound()


spans = st.tuples(st.integers(0, 200), st.integers(0, 9), st.integers(0, 6))


@given(st.lists(spans, max_size=14))
def test_it_is_never_worse_than_greedy(rows: list[tuple[int, int, int]]) -> None:
    buffers: list[Row] = [(size, first, first + more) for size, first, more in rows]
    plan, greedy = planned(SearchMemoryPlanner(), buffers), planned(GreedyMemoryPlanner(), buffers)
    plan.check()
    assert plan.lower_bound() <= plan.size <= greedy.size


def test_effort_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    # 32 buffers: an order costs 1025 comparisons, and only one is paid for.
    monkeypatch.setattr(search, "EFFORT", 1025)
    assert planned(SearchMemoryPlanner(), VWW).size == 73728
