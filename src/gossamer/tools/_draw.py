"""Answers drawn on the picture that was asked about."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gossamer.arrays import NDArray
from gossamer.inputs.pictures import Picture
from gossamer.records import replace
from gossamer.tools._answers import KEYPOINTS, Answer, Detection, Pose, Segmentation
from gossamer.tools._command import Failure

if TYPE_CHECKING:
    from PIL.Image import Image

Color = tuple[int, int, int]

OPACITY = 0.5
"""Share of the class color in a pixel of a segmented picture."""

BONES = (
    (0, 1), (0, 2), (1, 3), (2, 4), (5, 6), (5, 7), (7, 9), (6, 8), (8, 10), (5, 11), (6, 12), (11, 12), (11, 13),
    (13, 15), (12, 14), (14, 16),
)  # fmt: skip
"""Pairs of keypoints that a skeleton joins."""


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
    """Write the picture with the answer on it. Raises `Failure` for an answer that has no place in a picture."""
    if picture is None:
        raise Failure(f"--draw {path}: there is no picture among the inputs to draw on.")
    image = picture.image.copy()
    if isinstance(answer, Segmentation):
        image = _masked(image, answer, picture)
    elif isinstance(answer, Detection):
        _boxes(image, answer)
    elif isinstance(answer, Pose):
        _skeletons(image, answer)
    else:
        raise Failure(f"--draw {path}: only boxes, masks and poses can be drawn, the answer is a table of numbers.")
    try:
        image.save(path)
    except (ValueError, OSError) as error:
        raise Failure(f"--draw {path}: cannot be written ({error}); the name should end in .png.") from None


def _masked(image: Image, answer: Segmentation, picture: Picture) -> Image:
    from PIL import Image

    # The mask covers the input of the model; the picture lies in a part of it.
    rows = _positions(image.height, picture.top, picture.height, picture.input_height, answer.mask.shape[0])
    columns = _positions(image.width, picture.left, picture.width, picture.input_width, answer.mask.shape[1])
    mask = answer.mask[rows][:, columns]
    pixels = np.asarray(image).astype(np.float64)
    colors = np.array([pascal_color(int(n)) for n in np.unique(mask)], np.float64)
    painted = colors[np.searchsorted(np.unique(mask), mask)]
    mixed = np.where((mask > 0)[..., None], (1 - OPACITY) * pixels + OPACITY * painted, pixels)
    return Image.fromarray(np.rint(mixed).astype(np.uint8))


def _positions(size: int, start: float, length: float, whole: int, mask_size: int) -> NDArray[np.int64]:
    # For the centre of each pixel of the picture, the pixel of the mask under it.
    inside = (np.arange(size) + 0.5) / size * length + start
    return np.clip((inside / whole * mask_size).astype(np.int64), 0, mask_size - 1)


def _boxes(image: Image, answer: Detection) -> None:
    from PIL import ImageDraw, ImageFont

    pen = ImageDraw.Draw(image)
    width = _stroke(image)
    font = ImageFont.load_default(size=max(10, min(image.size) // 28))
    for box in reversed(answer.boxes):
        color = pascal_color(box.index + 1)
        left, right = sorted(_within(x, image.width) for x in (box.left, box.right))
        top, bottom = sorted(_within(y, image.height) for y in (box.top, box.bottom))
        pen.rectangle((left, top, right, bottom), outline=color, width=width)
        text = f"{box.label}: {box.score:.0%}"
        place = pen.textbbox((max(0, left) + width, max(0, top) + width), text, font=font)
        pen.rectangle((place[0] - width, place[1] - width, place[2] + width, place[3] + width), fill=color)
        bright = 0.299 * color[0] + 0.587 * color[1] + 0.114 * color[2] > 128
        pen.text((max(0, left) + width, max(0, top) + width), text, font=font, fill="black" if bright else "white")


def _skeletons(image: Image, answer: Pose) -> None:
    from PIL import ImageDraw

    pen = ImageDraw.Draw(image)
    width = _stroke(image)
    for number, found in enumerate(answer.bodies):
        body = [replace(point, x=_within(point.x, image.width), y=_within(point.y, image.height)) for point in found]
        color = pascal_color(2 + number)
        seen = [point.score >= answer.threshold for point in body]
        for a, b in BONES:
            if seen[a] and seen[b]:
                pen.line((body[a].x, body[a].y, body[b].x, body[b].y), fill=color, width=width)
        for position in range(len(KEYPOINTS)):
            if seen[position]:
                x, y, radius = body[position].x, body[position].y, 1.5 * width
                pen.ellipse((x - radius, y - radius, x + radius, y + radius), fill="yellow", outline=color)


def _within(position: float, size: int) -> float:
    # Edges far outside stay outside; Pillow does not take any number.
    return min(max(position, -size), 2 * size)


def _stroke(image: Image) -> int:
    return max(2, round(min(image.size) / 150))
