"""Outputs of detectors' heads for a known scene, as trained networks give them: every cell says something."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

HEIGHT, WIDTH = 96, 128
"""Of the input."""


@dataclass
class Thing:
    """An object: its class, score, and box (left, top, right, bottom) in pixels of the input."""

    number: int
    score: float
    box: tuple[float, float, float, float]
    more: Sequence[float] = field(default_factory=tuple)

    @property
    def middle(self) -> tuple[float, float, float, float]:
        """x, y, width, height."""
        left, top, right, bottom = self.box
        return (left + right) / 2, (top + bottom) / 2, right - left, bottom - top


SCENE = (
    Thing(2, 0.875, (16, 24, 64, 72)),
    Thing(0, 0.75, (66, 8, 122, 40)),
    # Another class in the place of the first: it stays.
    Thing(1, 0.625, (16, 24, 64, 72)),
    # The first again, less sure, by 2 pixels beside it: it goes.
    Thing(2, 0.5, (18, 24, 66, 72)),
)
SEEN = SCENE[:3]
"""What is left of it."""


def places(strides: Sequence[int] = (8, 16, 32)) -> Array:
    """x, y of the middle and stride of every cell."""
    made = [
        ((x + 0.5) * s, (y + 0.5) * s, s)
        for s in strides
        for y in range(-(-HEIGHT // s))
        for x in range(-(-WIDTH // s))
    ]
    return np.array(made, np.float32)


def nearest(cells: Array, thing: Thing, taken: set[int]) -> int:
    """The cell whose middle is nearest to that of the object, of those that are free."""
    apart = np.abs(cells[:, :2] - thing.middle[:2]).max(1)
    place = next(int(i) for i in np.argsort(apart, kind="stable") if int(i) not in taken)
    taken.add(place)
    return place


def noise(count: int, classes: int) -> Array:
    """Scores of nothing, all under a tenth."""
    return np.random.default_rng(0).integers(0, 25, (count, classes)).astype(np.float32) / 256


def yolo_rows(classes: int, scene: Sequence[Thing] = SCENE, anchors: int = 1, objectness: bool = False) -> Array:
    """Rows [n, 4 or 5 + classes + more] of x, y, w, h in pixels, objectness, scores, and what the objects have more."""
    cells = np.concatenate([np.tile(level, (anchors, 1)) for level in np.split(places(), [192, 240])])
    size = cells[:, 2:] * 2
    more = np.zeros((len(cells), len(scene[0].more) if scene else 0), np.float32)
    scores = noise(len(cells), classes)
    certain = np.full((len(cells), 1), 1 / 8, np.float32)
    rows = np.concatenate([cells[:, :2], size, size], 1)[:, :4]
    taken: set[int] = set()
    for thing in scene:
        place = nearest(cells, thing, taken)
        rows[place], certain[place] = thing.middle, 1
        scores[place, thing.number] = thing.score
        more[place] = thing.more
    return np.concatenate([rows, certain, scores, more] if objectness else [rows, scores, more], 1)


def ssd(anchors: Array, classes: int, scene: Sequence[Thing] = SCENE) -> tuple[Array, Array]:
    """Encodings [n, 4] and scores [n, 1 + classes] for anchors (y, x, h, w)."""
    rng = np.random.default_rng(1)
    encodings = rng.normal(size=(len(anchors), 4)).astype(np.float32)
    scores = np.concatenate([np.full((len(anchors), 1), 0.9, np.float32), noise(len(anchors), classes)], 1)
    middles = anchors[:, [1, 0]] * (WIDTH, HEIGHT)
    taken: set[int] = set()
    for thing in scene:
        place = nearest(middles, thing, taken)
        x, y, w, h = np.array(thing.middle) / (WIDTH, HEIGHT, WIDTH, HEIGHT)
        ay, ax, ah, aw = anchors[place].astype(np.float64)
        encodings[place] = 10 * (y - ay) / ah, 10 * (x - ax) / aw, 5 * np.log(h / ah), 5 * np.log(w / aw)
        scores[place, 1 + thing.number] = thing.score
    return encodings, scores


def logits(scores: Array) -> Array:
    """What the logistic function makes scores of."""
    safe = np.clip(scores.astype(np.float64), 1e-6, 1 - 1e-6)
    return np.log(safe / (1 - safe)).astype(np.float32)
