"""Answers drawn on the picture that was asked about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import numpy as np

from gossamer.arrays import NDArray
from gossamer.inputs.pictures import Picture
from gossamer.records import replace
from gossamer.tools._answers import KEYPOINTS, Answer, Box, Detection, Keypoint, Segmentation, mask_positions
from gossamer.tools._command import Failure

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageDraw import ImageDraw
    from PIL.ImageFont import FreeTypeFont

Color = tuple[int, int, int]

OPACITY = 0.5
"""Share of the class color in a pixel of a segmented picture."""

BONES = (
    (0, 1), (0, 2), (1, 3), (2, 4), (5, 6), (5, 7), (7, 9), (6, 8), (8, 10), (5, 11), (6, 12), (11, 12), (11, 13),
    (13, 15), (12, 14), (14, 16),
)  # fmt: skip
"""Pairs of keypoints that a skeleton joins."""

_CROWD = 20


def pascal_color(index: int) -> Color:
    """The color of a class in the palette of PASCAL VOC; class 0, the background, is black."""
    red = green = blue = 0
    for bit in range(7, -1, -1):
        red |= (index & 1) << bit
        green |= (index >> 1 & 1) << bit
        blue |= (index >> 2 & 1) << bit
        index >>= 3
    return red, green, blue


def draw(answer: Answer, picture: Picture | None, path: str) -> None:
    """Write the picture with the answer on it, and under it what the colors of masks mean. Raises `Failure` for an
    answer that has no place in a picture."""
    if picture is None:
        raise Failure(f"--draw {path}: there is no picture among the inputs to draw on.")
    image = picture.image.copy()
    if isinstance(answer, Segmentation):
        image = _with_legend(_masked(image, answer, picture), _classes(answer))
    elif isinstance(answer, Detection):
        image = _with_masks(image, answer)
        if answer.task == "pose":
            _skeletons(image, answer)
        else:
            _boxes(image, answer)
        image = _with_legend(image, _objects(answer))
    else:
        raise Failure(f"--draw {path}: only boxes, masks and poses can be drawn, the answer is a table of numbers.")
    try:
        # Level 1 takes a third of the time of the usual level, for a sixth more of bytes; other formats take no notice.
        image.save(path, compress_level=1)
    except (ValueError, OSError) as error:
        reason = getattr(error, "strerror", None) or error
        raise Failure(f"--draw {path}: cannot be written ({reason}); the name should end in .png.") from None


def _masked(image: Image, answer: Segmentation, picture: Picture) -> Image:
    from PIL import Image

    # The mask covers the input of the model; the picture lies in a part of it.
    rows = mask_positions(picture, answer.mask.shape[0], 0)
    columns = mask_positions(picture, answer.mask.shape[1], 1)
    numbers, places = np.unique(answer.mask, return_inverse=True)
    colors = np.array([pascal_color(int(n)) for n in numbers], np.float32)[places.reshape(answer.mask.shape)]
    shares = np.where(answer.mask > 0, np.float32(OPACITY), np.float32(0))[..., None]
    pixels = np.asarray(image, np.float32)
    pixels = pixels * (1 - shares)[rows][:, columns] + (colors * shares)[rows][:, columns]
    return Image.fromarray(np.rint(pixels).astype(np.uint8))


def _with_masks(image: Image, answer: Detection) -> Image:
    from PIL import Image

    for box in reversed(answer.boxes):
        if box.mask is None or not box.mask.inside.size:
            continue
        inside, color = box.mask.inside, pascal_color(box.index + 1)
        shares = Image.fromarray(np.where(inside, np.uint8(round(255 * OPACITY)), np.uint8(0)))
        image.paste(color, (box.mask.left, box.mask.top), shares)
        # The edge apart from its neighbours of the same color.
        inner = _shrunk(inside, max(1, _stroke(image) // 2))
        image.paste(color, (box.mask.left, box.mask.top), Image.fromarray((inside & ~inner).astype(np.uint8) * 255))
    return image


def _shrunk(inside: NDArray[np.bool_], by: int) -> NDArray[np.bool_]:
    # Pixels that are farther than that, across or along, from what is out.
    for _ in range(by):
        padded = np.pad(inside, 1)
        inside = inside & padded[2:, 1:-1] & padded[:-2, 1:-1] & padded[1:-1, 2:] & padded[1:-1, :-2]
    return inside


def _classes(answer: Segmentation) -> list[_Entry]:
    # Class 0, the background, is not painted.
    return [(f"{label} {_percent(area)}", pascal_color(n) if n else None) for n, label, area in answer.areas]


def _objects(answer: Detection) -> list[_Entry]:
    # The classes of masks, with the part of the picture that they cover together.
    areas: dict[int, float] = {}
    names = {}
    for box in answer.boxes:
        if box.mask is not None:
            areas[box.index] = areas.get(box.index, 0.0) + box.mask.share
            names[box.index] = box.label
    order = sorted(areas, key=lambda index: -areas[index])
    return [(f"{names[index]} {_percent(areas[index])}", pascal_color(index + 1)) for index in order]


def _percent(share: float) -> str:
    return f"{share:.1%}" if share >= 0.001 else "< 0.1%"


_Entry = tuple[str, Color | None]


def _with_legend(image: Image, entries: Sequence[_Entry]) -> Image:
    # On white under the picture, which it does not hide.
    if not entries:
        return image
    from PIL import Image, ImageDraw

    font = _font(image, 30)
    size = round(font.size)
    widths = [round(font.getlength(name)) + 2 * size for name, _ in entries]
    whole = max(image.width, max(widths) + size)
    places = []
    x, y = size // 2, image.height + size // 2
    for width in widths:
        if x + width > whole and x > size // 2:
            x, y = size // 2, y + 3 * size // 2
        places.append((x, y))
        x += width
    result = Image.new("RGB", (whole, y + 3 * size // 2), "white")
    result.paste(image, (0, 0))
    pen = ImageDraw.Draw(result)
    for (name, color), (x, y) in zip(entries, places, strict=True):
        pen.rectangle((x, y, x + size - 1, y + size - 1), fill=color, outline=color or "grey", width=max(1, size // 12))
        pen.text((x + 5 * size // 4, y + size / 2), name, fill="black", font=font, anchor="lm")
    return result


def _boxes(image: Image, answer: Detection) -> None:
    from PIL import ImageDraw

    pen = ImageDraw.Draw(image)
    width, halo = _stroke(image), _halo(image)
    font = _font(image, 30 if len(answer.boxes) <= _CROWD else 40)
    for box in reversed(answer.boxes):
        color = pascal_color(box.index + 1)
        if box.corners:
            around = [(_within(x, image.width), _within(y, image.height)) for x, y in box.corners]
            for thick, shade in ((width + 2 * halo, "white"), (width, color)):
                pen.line([*around, *around[:2]], fill=shade, width=thick, joint="curve")
        else:
            left, top, right, bottom = _edges(box, image)
            wider = left - halo, top - halo, right + halo, bottom + halo
            pen.rectangle(wider, outline="white", width=width + 2 * halo)
            pen.rectangle((left, top, right, bottom), outline=color, width=width)
        for point in box.keypoints:
            if point.score >= answer.threshold:
                _dot(pen, point, width, color)
    texts = [f"{box.label}: {box.score:.0%}" for box in answer.boxes]
    shapes = [pen.textbbox((0, 0), text, font=font) for text in texts]
    taken: list[_Place] = []
    for box, (left, top, right, bottom) in zip(answer.boxes, shapes, strict=True):
        size = right - left + 2 * width, bottom - top + 2 * width
        taken.append(_free_place(size, _edges(box, image), image, taken))
    # Where there is no room for all, the better are over the others.
    for i in reversed(range(len(taken))):
        color = pascal_color(answer.boxes[i].index + 1)
        left, top, right, bottom = taken[i]
        pen.rectangle((left, top, right - 1, bottom - 1), fill=color)
        at = left + width - shapes[i][0], top + width - shapes[i][1]
        pen.text(at, texts[i], "black" if _is_bright(color) else "white", font)


_Place = tuple[float, float, float, float]


def _edges(box: Box, image: Image) -> _Place:
    left, right = sorted(_within(x, image.width) for x in (box.left, box.right))
    top, bottom = sorted(_within(y, image.height) for y in (box.top, box.bottom))
    return left, top, right, bottom


def _free_place(size: tuple[float, float], edges: _Place, image: Image, taken: Sequence[_Place]) -> _Place:
    # Above the box, in it, below it, or the first free line further down in it; else where it would hide others.
    width, height = size
    left, top, _, bottom = edges
    x = min(max(left, 0), max(0, image.width - width))
    inside = max(0, top)
    lines = [inside + line * height for line in range(1, 9)]
    places = []
    for y in (top - height, inside, bottom + 1, *lines):
        if 0 <= y <= image.height - height:
            place = (x, y, x + width, y + height)
            if not any(_meet(place, other) for other in taken):
                return place
            places.append(place)
    return places[0] if places else (x, 0, x + width, height)


def _meet(one: _Place, other: _Place) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _skeletons(image: Image, answer: Detection) -> None:
    from PIL import ImageDraw

    pen = ImageDraw.Draw(image)
    width, halo = _stroke(image), _halo(image)
    for number, found in enumerate(answer.boxes):
        body = [replace(p, x=_within(p.x, image.width), y=_within(p.y, image.height)) for p in found.keypoints]
        color = pascal_color(2 + number)
        seen = [point.score >= answer.threshold for point in body]
        for thick, shade in ((width + 2 * halo, "white"), (width, color)):
            for a, b in BONES if len(body) == len(KEYPOINTS) else ():
                if seen[a] and seen[b]:
                    pen.line((body[a].x, body[a].y, body[b].x, body[b].y), fill=shade, width=thick)
        for point, known in zip(body, seen, strict=True):
            if known:
                _dot(pen, point, width, color)


def _dot(pen: ImageDraw, point: Keypoint, width: int, color: Color) -> None:
    radius = 1.5 * width
    places = point.x - radius, point.y - radius, point.x + radius, point.y + radius
    pen.ellipse(places, fill="yellow", outline=color, width=max(1, width // 2))


def _within(position: float, size: int) -> float:
    # Edges far outside stay outside; Pillow does not take any number.
    return min(max(position, -size), 2 * size)


def _stroke(image: Image) -> int:
    return max(2, round(min(image.size) / 200))


def _halo(image: Image) -> int:
    # White beside a line sets it apart from what is of its color.
    return max(1, _stroke(image) // 4)


def _is_bright(color: Color) -> bool:
    return 0.299 * color[0] + 0.587 * color[1] + 0.114 * color[2] > 128


def _font(image: Image, part: int) -> FreeTypeFont:
    # A part of the shorter side high, but legible.
    from PIL import ImageFont

    font = ImageFont.load_default(size=max(11, min(image.size) // part))
    return cast("FreeTypeFont", font)
