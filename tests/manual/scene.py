"""A picture, and models that always see the same in it, for what the manual says of detectors' heads."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

from tests.tools import models
from tests.tools.heads import Thing, yolo_rows

SIZE = 512, 384
"""Width and height of the picture: four times those of the models' input."""

BALL, SECOND_BALL, HOUSE = (268, 268, 348, 348), (330, 292, 386, 348), (40, 120, 220, 324)
BODY = (
    (430, 150), (436, 144), (424, 144), (444, 150), (416, 150), (454, 182), (406, 182), (474, 222), (388, 224),
    (488, 258), (372, 262), (446, 258), (414, 258), (454, 308), (408, 308), (458, 356), (402, 356),
)  # fmt: skip


def picture() -> Image.Image:
    """A house, two balls and somebody on a meadow."""
    image = Image.new("RGB", SIZE, (174, 210, 235))
    pen = ImageDraw.Draw(image)
    pen.rectangle((0, 250, *SIZE), fill=(150, 190, 120))
    pen.ellipse((430, 20, 490, 80), fill=(250, 220, 120))
    pen.rectangle((60, 200, 200, 324), fill=(225, 205, 180))
    pen.polygon([(40, 200), (130, 120), (220, 200)], fill=(170, 90, 80))
    pen.rectangle((116, 262, 146, 324), fill=(120, 90, 70))
    pen.rectangle((74, 222, 104, 250), fill=(190, 220, 240))
    pen.ellipse(BALL, fill=(230, 120, 60))
    pen.ellipse(SECOND_BALL, fill=(90, 120, 200))
    grey = (80, 85, 95)
    pen.ellipse((408, 128, 452, 172), fill=(235, 200, 170))
    pen.polygon([BODY[i] for i in (5, 6, 12, 11)], fill=grey)
    for a, b in ((5, 7), (7, 9), (6, 8), (8, 10), (11, 13), (13, 15), (12, 14), (14, 16)):
        pen.line((*BODY[a], *BODY[b]), fill=grey, width=14)
    return image


def _thing(number: int, score: float, box: tuple[int, ...], *more: float) -> Thing:
    left, top, right, bottom = (edge / 4 for edge in box)
    return Thing(number, score, (left, top, right, bottom), more)


def _map(draw: Any) -> np.ndarray[Any, Any]:
    # 4 where something is, -4 where not, on a fourth of the input.
    image = Image.new("L", SIZE)
    draw(ImageDraw.Draw(image))
    small = np.asarray(image.resize((SIZE[0] // 16, SIZE[1] // 16), Image.Resampling.BOX))
    return small.astype(np.float32) / 32 - 4


def _ball(pen: Any, box: tuple[int, int, int, int]) -> None:
    pen.ellipse(box, fill=255)


def objects() -> bytes:
    """A head of YOLOv8 with masks of a house (0) and balls (1)."""

    def house(pen: Any) -> None:
        pen.rectangle((60, 200, 200, 324), fill=255)
        pen.polygon([(40, 200), (130, 120), (220, 200)], fill=255)

    balls = [partial(_ball, box=box) for box in (BALL, SECOND_BALL)]
    maps = [_map(draw) for draw in (house, *balls, lambda pen: None)]
    things = [
        _thing(0, 0.90625, HOUSE, 1, 0, 0, 0),
        _thing(1, 0.875, BALL, 0, 1, 0, 0),
        _thing(1, 0.8125, SECOND_BALL, 0, 0, 1, 0),
        _thing(1, 0.5, (266, 266, 346, 350), 0, 1, 0, 0),
    ]
    outputs = {"boxes": yolo_rows(2, things).T[None], "masks": np.stack(maps, 2)[None]}
    return models.says(outputs, (SIZE[1] // 4, SIZE[0] // 4))


def body() -> bytes:
    """A head of YOLOv8 with the keypoints of somebody."""
    points = [value for x, y in BODY for value in (x / 4, y / 4, 0.875)]
    rows = yolo_rows(1, [_thing(0, 0.875, (366, 120, 494, 366), *points)])
    away = rows[:, 5] == 0
    rows[away, 5:] = np.tile(np.stack([rows[away, 0], rows[away, 1], 0 * rows[away, 0]], 1), 17)
    return models.says({"people": rows.T[None]}, (SIZE[1] // 4, SIZE[0] // 4))
