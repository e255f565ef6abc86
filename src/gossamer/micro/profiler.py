"""How long each operator took (MicroProfiler)."""

from __future__ import annotations

import time

from gossamer.errors import InvokeError
from gossamer.records import record

MAX_EVENTS = 4096
TICKS_PER_SECOND = 1_000_000_000
"""Here a tick is a nanosecond."""


@record
class Event:
    """A name, and when it began and ended, in ticks; ``end`` is below ``begin`` while it lasts."""

    tag: str
    begin: int
    end: int = -1

    @property
    def ticks(self) -> int:
        """How long it lasted."""
        return self.end - self.begin


class MicroProfiler:
    """A list of at most 4096 events, which an interpreter fills."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def begin_event(self, tag: str) -> int:
        """Note that something begins; the number to end it with. Raises `InvokeError` when the list is full."""
        if len(self.events) == MAX_EVENTS:
            raise InvokeError(f"the profiler has no room for more than {MAX_EVENTS} events; call clear_events()")
        self.events.append(Event(tag, time.perf_counter_ns()))
        return len(self.events) - 1

    def end_event(self, number: int) -> None:
        """Note that it is over. Raises `InvokeError` for a number that is not in the list."""
        if not 0 <= number < len(self.events):
            raise InvokeError(f"event {number} does not exist: the profiler has {len(self.events)}")
        self.events[number].end = time.perf_counter_ns()

    def clear_events(self) -> None:
        """Forget everything."""
        self.events.clear()

    @property
    def total_ticks(self) -> int:
        """The sum over all events."""
        return sum(event.ticks for event in self.events)

    def ticks_per_tag(self) -> dict[str, int]:
        """The sum over the events of each name, in the order in which they first came."""
        ticks: dict[str, int] = {}
        for event in self.events:
            ticks[event.tag] = ticks.get(event.tag, 0) + event.ticks
        return ticks

    def log(self) -> list[str]:
        """A line for each event: ``CONV_2D took 81234 ticks (0 ms).``"""
        per_ms = TICKS_PER_SECOND // 1000
        return [f"{event.tag} took {event.ticks} ticks ({event.ticks // per_ms} ms)." for event in self.events]

    def log_csv(self) -> str:
        """All events as comma-separated values."""
        rows = [f"{i},{event.tag},{event.ticks}" for i, event in enumerate(self.events)]
        return "\n".join(['"Event","Tag","Ticks"', *rows])

    def log_ticks_per_tag_csv(self) -> str:
        """The sums by name as comma-separated values, with their own sum in the last line."""
        rows = [f"{tag}, {ticks}" for tag, ticks in self.ticks_per_tag().items()]
        head, total = '"Unique Tag","Total ticks across all events with that tag."', '"total number of ticks"'
        return "\n".join([head, *rows, f"{total}, {self.total_ticks}"])
