"""The plan of an arena as a picture: time to the right, a column for each operator, and memory upwards, in bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

from gossamer.planner.planner import Plan
from gossamer.tools._command import Failure

_PALETTE = ("#4c78a8", "#f58518", "#54a24b", "#b279a2", "#e45756", "#72b7b2", "#eeca3b", "#9d755d")
"""Colors of the operators that write buffers, in the order in which they come up; then again from the first."""
_KNOWN = {"input": "#8c8c8c", "scratch": "#c9c9c9"}

_LEFT, _RIGHT, _HEIGHT, _ROW = 74, 18, 420, 18
_DARK, _BRIGHT, _GRID, _MARK = "#222222", "#ffffff", "#dddddd", "#c00000"
_SIZE, _LETTER = 11, 6.3  # pixels of a line of text, and of one of its characters, about
_WIDEST = 8000


class Drawn(NamedTuple):
    """What the picture says of one buffer: its name, and who writes it: an operator, ``input`` or ``scratch``."""

    name: str
    writer: str


class Rectangle(NamedTuple):
    """A filled area; ``tip`` is what an SVG shows under the mouse."""

    x: float
    y: float
    width: float
    height: float
    fill: str
    tip: str = ""


class Line(NamedTuple):
    """A straight line."""

    x: float
    y: float
    to_x: float
    to_y: float
    color: str


class Label(NamedTuple):
    """Text that begins (``start``), has its ``middle`` or its ``end`` at (x, y); ``upright`` text reads upwards."""

    x: float
    y: float
    text: str
    anchor: str = "start"
    upright: bool = False
    color: str = _DARK


Shape = Rectangle | Line | Label


class Picture(NamedTuple):
    """Shapes on white, in pixels from the upper left, the later over the earlier."""

    width: int
    height: int
    shapes: Sequence[Shape]

    def write(self, path: str) -> None:
        """Write an SVG, or what Pillow makes of another name. Raises `Failure` if it cannot be written."""
        if path.lower().endswith(".svg"):
            Path(path).write_text(svg(self), encoding="utf-8")
        else:
            _write_pixels(self, path)


def memory_picture(plan: Plan, buffers: Mapping[int, Drawn], steps: Mapping[int, str], title: str) -> Picture:
    """The picture of a plan. ``buffers`` says what each number is, ``steps`` who is at work in each step."""
    count = max([*steps, *(request.last_use for _, request in plan.placements)], default=0) + 1
    step = min(max(900 / count, 13), 60, _WIDEST / count)
    right = _LEFT + max(count * step, 600)
    colors = writer_colors(buffers.values())
    legend, top = _legend(colors, right)
    floor = top + _HEIGHT
    scale = _HEIGHT / max(plan.size, 1)

    shapes: list[Shape] = [Label(_LEFT, _ROW, title), *legend]
    for tick in _ticks(plan.size):
        y = floor - tick * scale
        text = f"{tick // 1024} KiB" if tick >= 1024 else f"{tick} B" if tick else "0"
        shapes += [Line(_LEFT, y, right, y, _GRID), Label(_LEFT - 6, y, text, "end")]
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
        shapes += [Line(_LEFT, y, right, y, _MARK), Label(right, y - 8, text, "end", color=_MARK)]
    names = [steps.get(i, "inputs") for i in range(count)]
    shapes += [Label(_LEFT + (i + 0.5) * step, floor + 8, name, "end", upright=True) for i, name in enumerate(names)]
    foot = 20 + round(_LETTER * max(map(len, names)))
    return Picture(round(right + _RIGHT), floor + foot, shapes)


def svg(picture: Picture) -> str:
    """The picture as an SVG."""
    width, height = picture.width, picture.height
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'font-family="sans-serif" font-size="{_SIZE}">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        *map(_element, picture.shapes),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def writer_colors(buffers: Iterable[Drawn]) -> dict[str, str]:
    """The color, as ``#rrggbb``, of all buffers that one writer writes."""
    colors: dict[str, str] = {}
    for _, writer in buffers:
        used = len(colors.keys() - _KNOWN.keys())
        colors.setdefault(writer, _KNOWN.get(writer) or _PALETTE[used % len(_PALETTE)])
    return colors


def _legend(colors: Mapping[str, str], right: float) -> tuple[list[Shape], int]:
    # The shapes, and the y below them.
    shapes: list[Shape] = []
    x, y = float(_LEFT), 2 * _ROW
    for writer, color in colors.items():
        width = 15 + 1.15 * _LETTER * len(writer)  # capitals are wide
        if x + width > right:
            x, y = float(_LEFT), y + _ROW
        shapes += [Rectangle(x, y - 5, 10, 10, color), Label(x + 15, y, writer)]
        x += width + 15
    return shapes, y + 2 * _ROW


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
    long, x, y = _LETTER * len(text), box.x + box.width / 2, box.y + box.height / 2
    color = _DARK if _brightness(box.fill) > 160 else _BRIGHT
    if box.width >= long and box.height >= _SIZE:
        yield Label(x, y, text, "middle", color=color)
    elif box.height >= long and box.width >= _SIZE:
        yield Label(x, y, text, "middle", upright=True, color=color)


def _brightness(color: str) -> float:
    red, green, blue = bytes.fromhex(color[1:])
    return 0.299 * red + 0.587 * green + 0.114 * blue


def _element(shape: Shape) -> str:
    if isinstance(shape, Rectangle):
        x, y, width, height, fill, tip = shape
        tag = f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{fill}"'
        return f"{tag}><title>{escape(tip)}</title></rect>" if tip else f"{tag}/>"
    if isinstance(shape, Line):
        x, y, to_x, to_y, color = shape
        return f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{to_x:.1f}" y2="{to_y:.1f}" stroke="{color}"/>'
    x, y, text, anchor, upright, color = shape
    turn = f' transform="rotate(-90 {x:.1f} {y:.1f})"' if upright else ""
    place = f'x="{x:.1f}" y="{y:.1f}" dominant-baseline="central" text-anchor="{anchor}"{turn}'
    return f'<text {place} fill="{color}">{escape(text)}</text>'


_ZOOM = 2
"""Pixels of a written picture for one of this one: text of 11 is hard to read."""


def _write_pixels(picture: Picture, path: str) -> None:
    try:
        from PIL import Image, ImageDraw, ImageFont
    except ImportError:
        raise Failure(f"{path}: pictures other than .svg need Pillow; install gossamer[image].") from None
    image = Image.new("RGB", (picture.width * _ZOOM, picture.height * _ZOOM), "white")
    pen = ImageDraw.Draw(image)
    font = ImageFont.load_default(size=_SIZE * _ZOOM)
    for shape in picture.shapes:
        x, y = shape.x * _ZOOM, shape.y * _ZOOM
        if isinstance(shape, Rectangle):
            pen.rectangle((x, y, x + shape.width * _ZOOM, y + shape.height * _ZOOM), fill=shape.fill)
        elif isinstance(shape, Line):
            pen.line((x, y, shape.to_x * _ZOOM, shape.to_y * _ZOOM), fill=shape.color, width=_ZOOM)
        elif not shape.upright:
            pen.text(
                (x, y),
                shape.text,
                shape.color,
                font,
                anchor={"start": "l", "middle": "m", "end": "r"}[shape.anchor] + "m",
            )
        else:
            _, upper, right, lower = font.getbbox(shape.text)
            mask = Image.new("L", (round(right) + 2, round(lower) + 2))
            ImageDraw.Draw(mask).text((0, 0), shape.text, 255, font)
            mask = mask.rotate(90, expand=True)
            below = {"start": 1.0, "middle": 0.5, "end": 0.0}[shape.anchor]
            place = round(x - (upper + lower) / 2), round(y - below * mask.height)
            image.paste(shape.color, (*place, place[0] + mask.width, place[1] + mask.height), mask)
    try:
        image.save(path)
    except (ValueError, OSError) as error:
        raise Failure(f"{path}: cannot be written ({error}); the name should end in .svg or .png.") from None
