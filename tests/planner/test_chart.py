"""Every line as TFLite Micro's GreedyMemoryPlanner::PrintMemoryPlan printed it."""

from __future__ import annotations

import pytest

from gossamer.errors import ArenaError
from gossamer.planner.chart import chart
from gossamer.planner.greedy import GreedyMemoryPlanner
from gossamer.planner.planner import BufferRequest, Placement, Plan
from tests.planner.buffers import chain, planned

MEDIUM = """\
0 (id=0): size=10, offset=50, first_used=0 last_used=1
1 (id=1): size=20, offset=70, first_used=1 last_used=2
2 (id=2): size=30, offset=40, first_used=2 last_used=3
3 (id=3): size=40, offset=0, first_used=3 last_used=4
4 (id=4): size=50, offset=0, first_used=0 last_used=1
   0: 44444444444444444444444444444444444444444444000000000........................... (1k)
   1: 44444444444444444444444444444444444444444444000000000.........111111111111111111 (1k)
   2: ...................................222222222222222222222222222111111111111111111 (1k)
   3: 33333333333333333333333333333333333222222222222222222222222222.................. (1k)
   4: 33333333333333333333333333333333333............................................. (1k)"""

OFFLINE = """\
0 (id=0): size=100, offset=40, first_used=0 last_used=2
* (id=1): size=60, offset=140, first_used=1 last_used=1
2 (id=2): size=60, offset=100, first_used=2 last_used=3
3 (id=3): size=30, offset=200, first_used=0 last_used=3
4 (id=4): size=40, offset=0, first_used=3 last_used=4
   0: .............00000000000000000000000000000000000.....................33333333333 (1k)
   1: .............00000000000000000000000000000000000*********************33333333333 (1k)
   2: .............000000000000000000000!!!!!!!!!!!!!!2222222..............33333333333 (1k)
   3: 4444444444444.....................222222222222222222222..............33333333333 (1k)
   4: 4444444444444................................................................... (1k)"""


def test_buffers_and_steps() -> None:
    rows = [(10, 0, 1), (20, 1, 2), (30, 2, 3), (40, 3, 4), (50, 0, 1)]
    assert chart(planned(GreedyMemoryPlanner(), rows)) == MEDIUM


def test_one_step_is_a_star_and_twice_used_a_mark() -> None:
    rows = [(100, 0, 2, 40), (60, 1, 1), (60, 2, 3, 100), (30, 0, 3), (40, 3, 4)]
    assert chart(planned(GreedyMemoryPlanner(), rows)) == OFFLINE


def test_62_characters_then_again_from_0() -> None:
    lines = chart(planned(GreedyMemoryPlanner(), chain([16] * 64))).splitlines()
    assert "".join(line[0] for line in lines[:64]) == "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ01"


def test_a_small_arena_has_a_byte_to_the_column() -> None:
    assert chart(planned(GreedyMemoryPlanner(), [(3, 0, 1)])).splitlines()[-1] == f"   1: 000{'.' * 77} (1k)"
    assert chart(planned(GreedyMemoryPlanner(), [])) == f"   0: {'.' * 80} (0k)"


def test_kibibytes_round_up() -> None:
    assert chart(planned(GreedyMemoryPlanner(), [(1025, 0, 0)])).endswith("*" * 80 + " (2k)")


def test_a_buffer_needs_a_last_step() -> None:
    with pytest.raises(ArenaError, match="a buffer that is kept to the end has no last line"):
        chart(Plan("arena", 16, (Placement(0, BufferRequest(0, 16, 0)),)))
