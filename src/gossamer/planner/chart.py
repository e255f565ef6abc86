"""A plan in characters: one line for each step, 80 columns of memory, as TFLite Micro prints it (PrintMemoryPlan)."""

from __future__ import annotations

from collections.abc import Iterator

from gossamer.errors import ArenaError
from gossamer.planner.planner import NEVER, BufferRequest, Placement, Plan

COLUMNS = 80

_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def chart(plan: Plan) -> str:
    """The buffers of a plan, one to a line, then a line for each step: who lies where, and the KiB in use.

    A buffer is a digit or a letter, ``*`` if it lives for one step only; ``.`` is free, ``!`` is used twice. Offsets
    round down to a column. Raises `ArenaError` for a buffer without a last step.
    """
    if any(request.last_use == NEVER for _, request in plan.placements):
        raise ArenaError(f"{plan.arena}: a buffer that is kept to the end has no last line")
    lines = (f"{step:4}: {line} ({-(-used // 1024)}k)" for step, line, used in steps(plan))
    return "\n".join([*_buffers(plan), *lines])


def character(request: BufferRequest) -> str:
    """The character that stands for a buffer."""
    return "*" if request.first_use == request.last_use else _DIGITS[request.buffer % len(_DIGITS)]


def _buffers(plan: Plan) -> Iterator[str]:
    for offset, request in plan.placements:
        number, size, first, last, _ = request
        facts = f"(id={number}): size={size}, offset={offset}, first_used={first} last_used={last}"
        yield f"{character(request)} {facts}"


def steps(plan: Plan, columns: int = COLUMNS) -> Iterator[tuple[int, str, int]]:
    """Of each step its number, a line of characters and the bytes in use."""
    for step in range(max([0, *(request.last_use for _, request in plan.placements)]) + 1):
        line = ["."] * columns
        alive = [p for p in plan.placements if p.request.first_use <= step <= p.request.last_use]
        for placement in alive:
            for column in span(plan, placement, columns):
                line[column] = character(placement.request) if line[column] == "." else "!"
        yield step, "".join(line), sum(placement.request.size for placement in alive)


def span(plan: Plan, placement: Placement, columns: int = COLUMNS) -> range:
    """The columns of a buffer."""
    # An arena of fewer bytes than columns has one byte to the column.
    size = max(plan.size, columns)
    return range(placement.offset * columns // size, placement.end * columns // size)
