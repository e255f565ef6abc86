"""A profile as a trace: JSON of Chrome's "Trace Event Format", which Perfetto and chrome://tracing show."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple


class Event(NamedTuple):
    """Something that took some nanoseconds, what is to be said of it, and what happened in it."""

    name: str
    category: str
    begin: int
    ns: int
    args: Mapping[str, Any]
    inner: Sequence[Event] = ()


def write(events: Sequence[Event], path: str | os.PathLike[str]) -> None:
    """Write events, and those in them, in microseconds from the first."""
    origin = events[0].begin if events else 0
    named = {"name": "process_name", "ph": "M", "pid": 1, "tid": 1, "args": {"name": "gossamer"}}
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"displayTimeUnit": "ms", "traceEvents": [named, *_complete(events, origin)]}, file)


def _complete(events: Iterable[Event], origin: int) -> Iterator[dict[str, Any]]:
    for event in events:
        times = {"ts": (event.begin - origin) / 1e3, "dur": event.ns / 1e3}
        yield {"name": event.name, "cat": event.category, "ph": "X", **times, "pid": 1, "tid": 1, "args": event.args}
        yield from _complete(event.inner, origin)
