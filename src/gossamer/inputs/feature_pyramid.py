"""Feature maps of detectors, each of half the size of the one before: how many cells they have tells who they are, and
with that in which numbers they take a picture."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

COCO = 80
"""Classes of the data set that most detectors are trained on."""

_LEAST = 64


def cell_counts(height: int, width: int, strides: Sequence[int]) -> list[int]:
    """The number of cells of each level."""
    return [-(-height // stride) * -(-width // stride) for stride in strides]


def strides_of(rows: int, height: int, width: int) -> tuple[tuple[int, ...], int] | None:
    """The strides of the pyramid that has as many cells, or a third of that, and the rows of each cell."""
    if min(height, width) < _LEAST:
        return None
    for per_cell, first, last in product((1, 3), (8, 16, 4), (32, 64)):
        strides = tuple(1 << k for k in range(first.bit_length() - 1, last.bit_length()))
        if per_cell * sum(cell_counts(height, width, strides)) == rows:
            return strides, per_cell
    return None


def takes_fractions(shapes: Sequence[tuple[int, ...]], height: int, width: int) -> bool:
    """Whether outputs of these shapes look like YOLOv8 or YOLOv5, which are trained on pixels from 0 to 1."""
    for shape in shapes:
        if len(shape) == 3 and shape[0] == 1 and min(shape[1:]) > 4:
            known = [strides_of(rows, height, width) for rows in shape[1:]]
            if any(one is not None and (one[1] == 3 or shape[2] != COCO + 5) for one in known):
                return True
    return False
