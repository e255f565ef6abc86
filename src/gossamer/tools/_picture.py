"""Pictures as a few shapes: rectangles, lines and text; written as SVG, or as pixels by Pillow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

from gossamer.tools._command import Failure

PALETTE = ("#4c78a8", "#f58518", "#54a24b", "#b279a2", "#e45756", "#72b7b2", "#eeca3b", "#9d755d")
DARK, BRIGHT, GRID, MARK = "#222222", "#ffffff", "#dddddd", "#c00000"
SIZE, LETTER = 11, 6.3  # pixels of a line of text, and of one of its characters, about
ROW = 18
"""Pixels from one line of text to the next."""


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
    color: str = DARK


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


def legend(colors: Mapping[str, str], left: float, right: float) -> tuple[list[Shape], int]:
    """A box of each color with its name, in lines between ``left`` and ``right`` from the second on; the y below."""
    shapes: list[Shape] = []
    x, y = left, 2 * ROW
    for name, color in colors.items():
        width = 15 + 1.15 * LETTER * len(name)  # capitals are wide
        if x + width > right:
            x, y = left, y + ROW
        shapes += [Rectangle(x, y - 5, 10, 10, color), Label(x + 15, y, name)]
        x += width + 15
    return shapes, y + 2 * ROW


def svg(picture: Picture) -> str:
    """The picture as an SVG."""
    width, height = picture.width, picture.height
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'font-family="sans-serif" font-size="{SIZE}">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        *map(_element, picture.shapes),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def brightness(color: str) -> float:
    """How bright a color, ``#rrggbb``, looks, 0 to 255."""
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
    font = ImageFont.load_default(size=SIZE * _ZOOM)
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
        reason = getattr(error, "strerror", None) or error
        raise Failure(f"{path}: cannot be written ({reason}); the name should end in .svg or .png.") from None
