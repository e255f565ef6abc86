"""The plan of an arena as a picture: time to the right, a column for each operator, and memory upwards, in bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from gossamer.planner.planner import Plan
from gossamer.tools._picture import (
    BRIGHT,
    DARK,
    GRID,
    LETTER,
    MARK,
    PALETTE,
    ROW,
    SIZE,
    Label,
    Line,
    Picture,
    Rectangle,
    Shape,
    brightness,
    legend,
)

_KNOWN = {"input": "#8c8c8c", "scratch": "#c9c9c9"}

_LEFT, _RIGHT, _HEIGHT = 74, 18, 420
_WIDEST = 8000


class Drawn(NamedTuple):
    """What the picture says of one buffer: its name, and who writes it: an operator, ``input`` or ``scratch``."""

    name: str
    writer: str


def memory_picture(plan: Plan, buffers: Mapping[int, Drawn], steps: Mapping[int, str], title: str) -> Picture:
    """The picture of a plan. ``buffers`` says what each number is, ``steps`` who is at work in each step."""
    count = max([*steps, *(request.last_use for _, request in plan.placements)], default=0) + 1
    step = min(max(900 / count, 13), 60, _WIDEST / count)
    right = _LEFT + max(count * step, 600)
    colors = writer_colors(buffers.values())
    named, top = legend(colors, _LEFT, right)
    floor = top + _HEIGHT
    scale = _HEIGHT / max(plan.size, 1)

    shapes: list[Shape] = [Label(_LEFT, ROW, title), *named]
    for tick in _ticks(plan.size):
        y = floor - tick * scale
        text = f"{tick // 1024} KiB" if tick >= 1024 else f"{tick} B" if tick else "0"
        shapes += [Line(_LEFT, y, right, y, GRID), Label(_LEFT - 6, y, text, "end")]
    for placement in plan.placements:
        request = placement.request
        first = max(request.first_use, 0)
        box = Rectangle(
            _LEFT + first * step,
            floor - placement.end * scale,
            (max(request.last_use, 0) + 1 - first) * step - 1,
            max(request.size * scale - 1, 0.5),
            colors[buffers[request.buffer].writer],
            f"{buffers[request.buffer].name}: {request.size:,} bytes at {placement.offset:,}",
        )
        shapes += [box, *_size_label(box, f"{request.size:,}")]
    for size, text in _marks(plan):
        y = floor - size * scale
        shapes += [Line(_LEFT, y, right, y, MARK), Label(right, y - 8, text, "end", color=MARK)]
    names = [steps.get(i, "inputs") for i in range(count)]
    shapes += [Label(_LEFT + (i + 0.5) * step, floor + 8, name, "end", upright=True) for i, name in enumerate(names)]
    foot = 20 + round(LETTER * max(map(len, names)))
    return Picture(round(right + _RIGHT), floor + foot, shapes)


def writer_colors(buffers: Iterable[Drawn]) -> dict[str, str]:
    """The color, as ``#rrggbb``, of all buffers that one writer writes: those of the palette, in the order in which
    writers come up; then again from the first."""
    colors: dict[str, str] = {}
    for _, writer in buffers:
        used = len(colors.keys() - _KNOWN.keys())
        colors.setdefault(writer, _KNOWN.get(writer) or PALETTE[used % len(PALETTE)])
    return colors


def _ticks(size: int) -> range:
    # At most eight, a power of two apart.
    apart = 1
    while apart * 8 < size:
        apart *= 2
    return range(0, size + 1, apart)


def _marks(plan: Plan) -> Iterator[tuple[int, str]]:
    bound = plan.lower_bound()
    if bound == plan.size:
        yield plan.size, f"{plan.size:,} bytes, all alive at once"
    else:
        yield plan.size, f"{plan.size:,} bytes"
        yield bound, f"{bound:,} bytes are alive at once"


def _size_label(box: Rectangle, text: str) -> Iterator[Label]:
    long, x, y = LETTER * len(text), box.x + box.width / 2, box.y + box.height / 2
    color = DARK if brightness(box.fill) > 160 else BRIGHT
    if box.width >= long and box.height >= SIZE:
        yield Label(x, y, text, "middle", color=color)
    elif box.height >= long and box.width >= SIZE:
        yield Label(x, y, text, "middle", upright=True, color=color)
