"""What detection heads have in common: outputs as real numbers, boxes in pixels of the input, and their suppression."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.ops._boxes import overlaps
from gossamer.records import record

Array = NDArray[Any]


class Unclear(Exception):
    """Outputs look like a head, but nothing says what is needed to read them."""


@record(frozen=True)
class Outputs:
    """The outputs of one run, each without its first axis, which is 1; what stands for real numbers is float32.

    ``names`` are all names of each in lower case. ``steps`` is the distance of neighbouring values of each, 0 for real
    numbers. ``height`` and ``width`` are those of the model's picture, 1 if it takes none. ``labels`` is how many there
    are. The metadata say ``keypoints`` (0: nothing), and that boxes are ``turned``. ``asked`` is the head that the user
    names, and ``constants`` gives the constant tensors of the model of a shape.
    """

    values: Sequence[Array]
    names: Sequence[str]
    steps: Sequence[float]
    height: int = 1
    width: int = 1
    labels: int = 0
    keypoints: int = 0
    turned: bool = False
    asked: str = ""
    constants: Callable[[tuple[int, ...]], Sequence[Array]] = lambda shape: ()

    @property
    def shown(self) -> bool:
        """Whether the model takes pictures."""
        return self.height > 1 and self.width > 1

    def named(self, position: int, *words: str) -> bool:
        """Whether a name of an output has one of these words in it."""
        return any(word in self.names[position] for word in words)

    def are_scores(self, position: int, values: Array) -> bool:
        """Whether values of an output are all from 0 to 1, but for rounding."""
        slack = 1e-3 + self.steps[position]
        return bool(((values >= -slack) & (values <= 1 + slack)).all())


@record(frozen=True)
class Masks:
    """The mask of a box: ``coefficients`` [n, m] @ ``prototypes`` [h, w, m], of which positive values belong to it."""

    coefficients: Array
    prototypes: Array


@record(frozen=True)
class Found:
    """Boxes of a head; n of them, before suppression unless they are ``final``.

    ``boxes`` [n, 4]: left, top, right, bottom in pixels of the input; turned about their centres by ``angles`` [n]
    (radians, clockwise). ``keypoints`` [n, k, 3]: x, y in pixels of the input, score. ``background`` is how many of the
    labels come before that of class 0. ``what`` describes the head.
    """

    what: str
    boxes: Array
    scores: Array
    classes: Array
    keypoints: Array | None = None
    masks: Masks | None = None
    angles: Array | None = None
    background: int = 0
    final: bool = False


def cells(height: int, width: int, strides: Sequence[int]) -> Array:
    """Column, row and stride of each cell of a pyramid of feature maps [n, 3], level by level, row by row."""
    levels = []
    for stride in strides:
        rows, columns = np.mgrid[0 : -(-height // stride), 0 : -(-width // stride)]
        levels.append(np.stack([columns.ravel(), rows.ravel(), np.full(rows.size, stride)], 1))
    return np.concatenate(levels).astype(np.float32)


def corners(x: Array, y: Array, width: Array, height: Array) -> Array:
    """Left, top, right, bottom [n, 4] of boxes given by their centres and sizes."""
    return np.stack([x - width / 2, y - height / 2, x + width / 2, y + height / 2], 1)


def sigmoid(values: Array) -> Array:
    """The logistic function; without overflow."""
    result: Array = (0.5 * (1 + np.tanh(0.5 * values.astype(np.float64)))).astype(np.float32)
    return result


def probabilities(outputs: Outputs, position: int, values: Array) -> Array:
    """Scores as they are if they are from 0 to 1, else what the logistic function makes of them."""
    return values if outputs.are_scores(position, values) else sigmoid(values)


def best(scores: Array) -> tuple[Array, Array]:
    """The highest score of each row of [n, classes], and its class."""
    classes = scores.argmax(1)
    return np.take_along_axis(scores, classes[:, None], 1)[:, 0], classes


def suppressed(found: Found, threshold: float, iou: float) -> Array:
    """Positions of boxes of at least the threshold, best first; of those of a class that overlap a better one by more
    than ``iou`` (intersection over union) none stays, unless the model has done that itself."""
    order = np.argsort(-found.scores, kind="stable")
    order = order[found.scores[order] >= threshold]
    if found.final:
        return order
    kept: list[int] = []
    for number in np.unique(found.classes[order]):
        ranks = np.flatnonzero(found.classes[order] == number)
        while ranks.size:
            first, ranks = ranks[0], ranks[1:]
            kept.append(int(first))
            if found.angles is None:
                over = overlaps(found.boxes[order[first]], found.boxes[order[ranks]])
            else:
                over = _turned_overlaps(found.boxes, found.angles, order[first], order[ranks])
            ranks = ranks[over <= iou]
    chosen: Array = order[sorted(kept)]
    return chosen


def _turned_overlaps(boxes: Array, angles: Array, one: int, others: Array) -> Array:
    # Boxes as normal distributions of the same covariance, 1 - their Hellinger distance (Llerena et al., Gaussian
    # Bounding Boxes and Probabilistic Intersection-over-Union, 2021), as detectors of turned boxes are trained.
    def moments(chosen: Array) -> tuple[Array, ...]:
        left, top, right, bottom = boxes[chosen].T.astype(np.float64)
        across, along = (right - left) ** 2 / 12, (bottom - top) ** 2 / 12
        c, s = np.cos(angles[chosen]), np.sin(angles[chosen])
        center = (left + right) / 2, (top + bottom) / 2
        return (*center, across * c**2 + along * s**2, across * s**2 + along * c**2, (across - along) * c * s)

    x, y, a, b, c = moments(np.array([one]))
    xs, ys, a_s, bs, cs = moments(others)
    tiny = 1e-9
    det = (a + a_s) * (b + bs) - (c + cs) ** 2
    apart = ((a + a_s) * (y - ys) ** 2 + (b + bs) * (x - xs) ** 2 + 2 * (c + cs) * (xs - x) * (y - ys)) / (det + tiny)
    alike = np.sqrt(np.maximum(a * b - c**2, 0) * np.maximum(a_s * bs - cs**2, 0))
    distance = np.clip(apart / 4 + np.log(det / (4 * alike + tiny) + tiny) / 2, tiny, 100)
    result: Array = 1 - np.sqrt(1 - np.exp(-distance))
    return result


def classes_word(count: int) -> str:
    """``1 class``, ``80 classes``."""
    return f"{count} class" if count == 1 else f"{count} classes"
