"""A profile as a trace: JSON of Chrome's "Trace Event Format", which Perfetto and chrome://tracing show."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from gossamer.profiling.spans import Span, placed

if TYPE_CHECKING:
    from gossamer.profiling.profile import Profile


def write(profile: Profile, path: str | os.PathLike[str]) -> None:
    """Write the trace of all calls of a profile."""
    with open(path, "w", encoding="utf-8") as file:
        json.dump(trace(profile), file)


def trace(profile: Profile) -> dict[str, Any]:
    """The events of all calls, which are complete ones ("ph": "X"), in microseconds from the first."""
    calls = profile.calls
    origin = calls[0].begin if calls else 0
    events = [event for call in calls for event in _events(profile, call, origin)]
    named = {"name": "process_name", "ph": "M", "pid": 1, "tid": 1, "args": {"name": "gossamer"}}
    return {"displayTimeUnit": "ms", "traceEvents": [named, *events]}


def _events(profile: Profile, span: Span, origin: int) -> Iterator[dict[str, Any]]:
    name, args = _described(profile, span)
    yield _event(name, "invoke" if span.node is None else "node", span.begin - origin, span.ns, args)
    commands = profile.commands_of(span)
    if commands:
        # What clocks round must not end behind the span.
        for command, took, begin in zip(commands, span.times, placed(span), strict=True):
            args = {"operators": list(command.operators), "calls": list(command.calls), "shape": list(command.shape)}
            args |= {**command.work._asdict(), "runs": took.runs}
            length = max(0, min(took.ns, span.end - begin))
            yield _event(command.kernel or "jump", "kernel", begin - origin, length, args)
    for child in span.children:
        yield from _events(profile, child, origin)


def _described(profile: Profile, span: Span) -> tuple[str, dict[str, Any]]:
    if span.node is None:
        return f"invoke subgraph {span.subgraph}", {"subgraph": span.subgraph}
    nodes = profile.members_of(span)
    types, name = profile.names_of(span.subgraph, nodes)
    args = {"subgraph": span.subgraph, "nodes": list(nodes), "outputs": name}
    if span.node.delegate is None:
        return f"{span.node.op.name} {span.node.index}", args
    return f"{span.node.delegate.name}: {len(nodes)} node{'s' * (len(nodes) != 1)}", {**args, "operators": types}


def _event(name: str, category: str, begin: int, ns: int, args: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "cat": category, "ph": "X", "ts": begin / 1e3, "dur": ns / 1e3, "pid": 1, "tid": 1, "args": args}
