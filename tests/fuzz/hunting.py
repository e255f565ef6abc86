# ruff: noqa: T201 - it prints what it finds
"""Models at many shapes, each in a process of its own: one that crashes or hangs is a finding."""

from __future__ import annotations

import multiprocessing
import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import Any

from gossamer.errors import ModelError, UnsupportedOpError
from tests.fuzz.sizes import Report, Sequencer, beside_litert

STEPS = 25
SECONDS = 5.0
"""What a sequence has."""

PATIENCE = 60.0
"""Seconds that a process may take."""

Say = Callable[[str], None]


def hunt(models: Sequence[tuple[str, bytes]], seed: int, seconds: float, *, peer: bool) -> None:
    """Sequences of all models, in an order by the seed, again and again with the next one, until the time is up."""
    begin, total, kinds = time.monotonic(), Counter[str](), Counter[str]()
    while time.monotonic() < begin + seconds:
        for name, content in random.Random(seed).sample(models, len(models)):
            if time.monotonic() > begin + seconds:
                break
            for kind, detail in _sequence(content, seed, total, peer=peer):
                kinds[kind] += 1
                print(f"-- {kind} {name} seed {seed}: {detail}", flush=True)
        seed += 1
    print(", ".join(f"{count} {what}" for what, count in total.most_common()))
    print(", ".join(f"{count} {kind}" for kind, count in kinds.most_common()) or "nothing differs")


def _sequence(content: bytes, seed: int, total: Counter[str], *, peer: bool) -> list[tuple[str, str]]:
    """What one sequence of a model has found."""
    total["sequences"] += 1
    how, report = _apart(lambda say: Sequencer(content, seed, say).run(STEPS, SECONDS))
    if how:
        return [(how, report)]
    if report is None:  # no interpreter can be made
        return []
    for of in ("comparisons", "refusals", "filled", "fitted", "restored"):
        total[of] += getattr(report, of)
    found: list[tuple[str, str]] = report.found
    if peer and report.calls:
        how, told = _apart(lambda say: beside_litert(content, report, say))
        total["unjudged" if how else "beside LiteRT"] += 1 if how else told[0]
        found += [] if how else told[1].found
    return found


def _apart(call: Callable[[Say], Any]) -> tuple[str, Any]:
    """What a call returns in a process of its own; or how that ended, and what it had been about to do."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(call, there))
    process.start()
    there.close()
    until, said = time.monotonic() + PATIENCE, [""]
    try:
        while here.poll(max(0.0, until - time.monotonic())):
            is_over, what = here.recv()
            if is_over:
                return "", what
            said = [*said[-3:], what]
        return "hang", said
    except EOFError:
        process.join()
        return f"crash {process.exitcode}", said
    finally:
        process.kill()
        process.join()
        here.close()


def _work(call: Callable[[Say], Report], there: Connection) -> None:
    try:
        result = call(lambda told: there.send((False, told)))
    except (ModelError, UnsupportedOpError):
        result = None
    there.send((True, result))
