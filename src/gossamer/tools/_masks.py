"""Masks of single objects, made of the prototypes of a detector, and how JSON holds them."""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.inputs.pictures import Picture
from gossamer.records import record

Array = NDArray[Any]


@record(frozen=True)
class Mask:
    """Which pixels of a picture [height, width] belong to an object: those of ``inside`` that are true, whose upper
    left pixel is (left, top)."""

    height: int
    width: int
    left: int
    top: int
    inside: NDArray[np.bool_]

    @property
    def area(self) -> int:
        """Number of pixels."""
        return int(self.inside.sum())

    @property
    def share(self) -> float:
        """The part of the picture that it covers, 0 to 1."""
        return self.area / max(1, self.height * self.width)

    def encoded(self) -> dict[str, Any]:
        """``size`` and ``counts`` as in COCO's annotations: runs of pixels that are out and in, by turns, column by
        column, each less the one two before it, in five bits of a character at a time."""
        full = np.zeros((self.width, self.height), bool)
        rows, columns = self.inside.shape
        full[self.left : self.left + columns, self.top : self.top + rows] = self.inside.T
        flat = np.concatenate([[False], full.ravel()])
        starts = np.flatnonzero(flat[1:] != flat[:-1])
        runs = np.diff(np.concatenate([[0], starts, [flat.size - 1]])).tolist()
        letters = []
        for i, run in enumerate(runs):
            left = run - runs[i - 2] if i > 2 else run
            more = True
            while more:
                low, left = left & 31, left >> 5
                more = left != (-1 if low & 16 else 0)
                letters.append(chr((low | 32 if more else low) + 48))
        return {"size": [self.height, self.width], "counts": "".join(letters)}


def place_in(size: int, start: float, length: float, whole: int) -> Array:
    """For the centre of each pixel of a picture's side, its place in the input of the model, 0 to 1; the picture covers
    ``length`` pixels of the input's ``whole`` from ``start`` on."""
    inside: Array = ((np.arange(size) + 0.5) / size * length + start) / whole
    return inside


def mask_of(
    coefficients: Array, prototypes: Array, edges: tuple[float, float, float, float], picture: Picture | None, size: int
) -> Mask:
    """The mask of a box with these edges (left, top, right, bottom, in pixels of the picture, or fractions without
    one, when the mask is ``size`` times that of the prototypes): where their sum by the coefficients, interpolated
    between its four neighbours, is positive."""
    height, width = prototypes.shape[:2]
    logits = prototypes @ coefficients
    if picture is None:
        rows, columns = ((np.arange(size * n) + 0.5) / (size * n) for n in (height, width))
        edges = edges[0] * len(columns), edges[1] * len(rows), edges[2] * len(columns), edges[3] * len(rows)
    else:
        rows = place_in(picture.image.height, picture.top, picture.height, picture.input_height)
        columns = place_in(picture.image.width, picture.left, picture.width, picture.input_width)
    left, right = (int(np.clip(np.rint(edge), 0, len(columns))) for edge in edges[::2])
    top, bottom = (int(np.clip(np.rint(edge), 0, len(rows))) for edge in edges[1::2])
    across = _interpolated(logits.T, columns[left:right] * width - 0.5).T
    inside = _interpolated(across, rows[top:bottom] * height - 0.5) > 0
    return Mask(len(rows), len(columns), left, top, inside)


def _interpolated(values: Array, places: Array) -> Array:
    # Rows of values [n, m] at these places.
    places = np.clip(places, 0, len(values) - 1)
    below = np.minimum(places.astype(np.int64), max(0, len(values) - 2))
    share = (places - below).astype(np.float32)[:, None]
    above = np.minimum(below + 1, len(values) - 1)
    result: Array = values[below] * (1 - share) + values[above] * share
    return result
