from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.errors import ArenaError
from gossamer.planner.planner import NEVER, AllocationType, BufferRequest, Placement, Plan


def plan(*rows: tuple[int, BufferRequest], size: int = 400, alignment: int = 1) -> Plan:
    return Plan("arena", size, tuple(Placement(offset, request) for offset, request in rows), alignment)


# A is read by the node that writes B, B by the node that writes C: A and C are never alive together.
A, B, C = BufferRequest(0, 100, 0, 1), BufferRequest(1, 80, 1, 2), BufferRequest(2, 50, 2)
GOOD = plan((0, A), (100, B), (0, C), size=180)


def test_numbers_of_allocation_types_are_tflites() -> None:
    assert [kind.name for kind in AllocationType] == [
        "MEM_NONE",
        "MMAP_RO",
        "ARENA_RW",
        "ARENA_RW_PERSISTENT",
        "DYNAMIC",
        "PERSISTENT_RO",
        "CUSTOM",
        "VARIANT_OBJECT",
        "NON_CPU",
    ]
    assert [int(kind) for kind in AllocationType] == list(range(9))


def test_a_good_plan_passes_and_answers() -> None:
    GOOD.check()
    assert GOOD.offsets == {0: 0, 1: 100, 2: 0}
    assert GOOD.lower_bound() == 180


def test_lower_bound_counts_shared_bytes_once() -> None:
    shared = BufferRequest(3, 80, 2, 2, shares=1)
    assert plan((0, A), (100, B), (0, C), (100, shared)).lower_bound() == 180
    assert plan().lower_bound() == 0


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (plan((0, A), (99, B)), r"buffer 0 \(bytes 0 to 100, node 0 to node 1\) overlaps buffer 1 \(bytes 99 to 179"),
        (plan((49, B), (0, C)), r"buffer 1 \(.*\) overlaps buffer 2 \(bytes 0 to 50, node 2 to the end\)"),
        (plan((0, A), (320, B), size=399), r"buffer 1 \(bytes 320 to 400, .*\) lies outside the arena of 399 bytes"),
        (plan((-1, A)), r"buffer 0 \(bytes -1 to 99, .*\) lies outside"),
        (plan((0, A), (100, B), alignment=64), r"buffer 1 \(.*\) is not aligned to 64 bytes"),
        (plan((0, A), (100, A)), r"arena: a buffer occurs twice"),
        (plan((0, BufferRequest(7, 8, 3, 2))), r"buffer 7 \(.*\) is freed before it is used"),
        (plan((0, BufferRequest(3, 8, 0, 1, shares=9))), r"buffer 3 \(.*\) shares buffer 9, which has no bytes"),
        (plan((0, A), (8, BufferRequest(3, 96, 0, 1, shares=0))), r"buffer 3 \(.*\) is not within buffer 0 \(.*\)"),
        (plan((0, A), (0, BufferRequest(3, 8, 0, 2, shares=0))), r"buffer 3 \(.*\) is not within buffer 0 \(.*\)"),
    ],
)
def test_a_bad_plan_names_its_buffers(wrong: Plan, message: str) -> None:
    with pytest.raises(ArenaError, match=message):
        wrong.check()


def test_sharing_is_within_the_owner_in_bytes_and_time() -> None:
    plan((0, A), (20, BufferRequest(3, 80, 1, 1, shares=0))).check()


def test_touching_in_bytes_or_time_is_no_overlap() -> None:
    plan((0, A), (100, B), (0, BufferRequest(5, 100, 2, 9))).check()


def test_empty_buffers_overlap_nothing() -> None:
    plan((0, A), (50, BufferRequest(3, 0, 0, 1))).check()


requests = st.tuples(st.integers(0, 40), st.integers(0, 9), st.integers(0, 6), st.integers(0, 4))


@given(st.lists(requests, max_size=8))
def test_check_finds_what_comparing_all_pairs_finds(rows: list[tuple[int, int, int, int]]) -> None:
    placements = [
        (offset, BufferRequest(number, size, first, first + nodes))
        for number, (offset, size, first, nodes) in enumerate(rows)
    ]
    overlap = any(
        max(a, b) < min(a + one.size, b + other.size)
        and max(one.first_use, other.first_use) <= min(one.last_use, other.last_use)
        for a, one in placements
        for b, other in placements
        if one.buffer < other.buffer
    )
    if overlap:
        with pytest.raises(ArenaError, match="overlaps"):
            plan(*placements).check()
    else:
        plan(*placements).check()


def test_describe() -> None:
    shared = BufferRequest(3, 80, 2, 2, shares=1)
    assert plan((0, A), (100, B), (0, C), (100, shared), size=180).describe({0: "conv/Relu6", 3: "add"}) == (
        "arena: 180 bytes for 4 buffers, at least 180 needed\n"
        "buffer  offset  bytes   nodes\n"
        "     0       0    100    0..1  conv/Relu6\n"
        "     2       0     50  2..end\n"
        "     1     100     80    1..2\n"
        "     3     100     80    2..2  add, in the bytes of 1"
    )


def test_to_json() -> None:
    text = json.dumps(plan((0, A), (100, BufferRequest(3, 80, 1, NEVER, shares=0))).to_json())
    assert json.loads(text) == {
        "arena": "arena",
        "bytes": 400,
        "lower_bound": 100,
        "alignment": 1,
        "buffers": [
            {"buffer": 0, "offset": 0, "bytes": 100, "first_use": 0, "last_use": 1, "shares": None},
            {"buffer": 3, "offset": 100, "bytes": 80, "first_use": 1, "last_use": None, "shares": 0},
        ],
    }
