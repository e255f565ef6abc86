"""Events, sums by name, and their CSV."""

from __future__ import annotations

import pytest

from gossamer.errors import InvokeError
from gossamer.micro import MicroProfiler
from gossamer.micro.profiler import MAX_EVENTS, Event


def test_log_and_csv() -> None:
    profiler = MicroProfiler()
    profiler.events = [Event("ADD", 10, 3_000_010), Event("MUL", 0, 5), Event("ADD", 0, 7)]
    assert profiler.log() == ["ADD took 3000000 ticks (3 ms).", "MUL took 5 ticks (0 ms).", "ADD took 7 ticks (0 ms)."]
    assert profiler.log_csv().splitlines() == ['"Event","Tag","Ticks"', "0,ADD,3000000", "1,MUL,5", "2,ADD,7"]
    assert profiler.log_ticks_per_tag_csv().splitlines() == [
        '"Unique Tag","Total ticks across all events with that tag."',
        "ADD, 3000007",
        "MUL, 5",
        '"total number of ticks", 3000012',
    ]


def test_an_event_lasts_from_begin_to_end() -> None:
    profiler = MicroProfiler()
    number = profiler.begin_event("X")
    profiler.end_event(number)
    assert profiler.events[number].ticks == profiler.total_ticks >= 0
    profiler.clear_events()
    assert profiler.events == []


def test_no_room_and_no_such_event() -> None:
    profiler = MicroProfiler()
    profiler.events = [Event("X", 0, 0)] * MAX_EVENTS
    with pytest.raises(InvokeError, match="no room for more than 4096 events"):
        profiler.begin_event("Y")
    with pytest.raises(InvokeError, match="event 4096 does not exist"):
        profiler.end_event(MAX_EVENTS)
