"""CenterNet: maps of where the centres of objects are, all of one size [1, h, w, ...] or [1, ..., h, w].

A heat map with a channel for each class, the width and height of the object in cells, and where in the cell its centre
is (0 to 1; may be missing); perhaps k keypoints from the centre, 2 k channels, in cells. Pairs are x before y, as in
"Objects as Points" (Zhou et al., 2019), or y before x if the size is called "scale", as in TensorFlow's object
detection. H / h = W / w is a power of 2 up to 32.

The two maps of two channels are told apart by names ("off" or "reg"; "size", "wh" or "scale"), or by values: all
offsets lie from 0 to 1, some size does not. A heat map of two channels must have a name with "heat", "hm" or "center"
in it. Heat outside 0..1 goes through the logistic function. A centre is a cell with no hotter one among its eight
neighbours.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.tools._heads.head import Found, Outputs, classes_word, corners, probabilities

Array = NDArray[Any]

HEADS = ("centernet",)
_SIZE = ("size", "wh", "scale")


def read(outputs: Outputs) -> Found | None:
    """The boxes at the peaks of the heat map; ``None`` without the maps."""
    if not outputs.shown or not 2 <= len(outputs.values) <= 4:
        return None
    maps = _maps(outputs)
    if maps is None:
        return None
    stride = outputs.height // maps[0].shape[0]
    roles = _roles(outputs, maps)
    if roles is None:
        return None
    heat, size, offset, points = roles
    if outputs.named(size, "scale"):
        maps = [values if i == heat else _swapped(values) for i, values in enumerate(maps)]
    hot = probabilities(outputs, heat, maps[heat])
    row, column, classes = np.nonzero((hot == _hottest_around(hot)) & (hot > 0))
    move = maps[offset][row, column] if offset is not None else np.zeros((len(row), 2), np.float32)
    x, y = column + move[:, 0], row + move[:, 1]
    w, h = np.maximum(maps[size][row, column].T, 0)
    scores = hot[row, column, classes]
    keypoints, kind = None, ""
    if points is not None:
        from_center = maps[points][row, column].reshape(len(row), -1, 2)
        places = (from_center + np.stack([column, row], 1)[:, None]) * stride
        keypoints = np.concatenate([places, np.broadcast_to(scores[:, None, None], (*places.shape[:2], 1))], 2)
        kind = f" with {places.shape[1]} keypoints"
    what = f"CenterNet{kind}, {classes_word(hot.shape[2])}, stride {stride}"
    return Found(what, corners(x, y, w, h) * stride, scores, classes, keypoints)


def _maps(outputs: Outputs) -> list[Array] | None:
    # [h, w, channels] of each output.
    strides = [1 << k for k in range(6) if not outputs.height % (1 << k) and not outputs.width % (1 << k)]
    for stride in strides:
        size = (outputs.height // stride, outputs.width // stride)
        if all(values.ndim == 3 and values.dtype.kind == "f" for values in outputs.values) and min(size) > 1:
            if all(values.shape[:2] == size for values in outputs.values):
                return list(outputs.values)
            if all(values.shape[1:] == size for values in outputs.values):
                return [values.transpose(1, 2, 0) for values in outputs.values]
    return None


def _roles(outputs: Outputs, maps: list[Array]) -> tuple[int, int, int | None, int | None] | None:
    # Positions of heat, size, offset and keypoints.
    every = range(len(maps))
    hot = [i for i in every if outputs.named(i, "heat", "hm", "center")]
    pairs = [i for i in every if maps[i].shape[2] == 2 and i not in (hot if len(hot) == 1 else [])]
    others = [i for i in every if i not in pairs]
    if len(hot) != 1:
        hot = others[:1] if len(others) == 1 else [i for i in others if outputs.are_scores(i, maps[i])]
    if len(hot) != 1 or not 1 <= len(pairs) <= 2:
        return None
    rest = [i for i in others if i not in hot]
    if len(rest) > 1 or any(maps[i].shape[2] % 2 for i in rest):
        return None
    points = rest[0] if rest else None
    if len(pairs) == 1:
        # One pair alone may be anything, unless its name says size.
        named = outputs.named(pairs[0], *_SIZE) and outputs.named(hot[0], "heat", "hm", "center")
        return (hot[0], pairs[0], None, points) if named or outputs.asked else None
    for size, offset in (pairs, pairs[::-1]):
        if outputs.named(offset, "off", "reg") or outputs.named(size, *_SIZE):
            return hot[0], size, offset, points
    within = [outputs.are_scores(i, maps[i]) for i in pairs]
    if within[0] == within[1]:
        return None
    return hot[0], pairs[within[0]], pairs[within[1]], points


def _swapped(pairs: Array) -> Array:
    # y, x as x, y.
    rows, columns, channels = pairs.shape
    return pairs.reshape(rows, columns, channels // 2, 2)[..., ::-1].reshape(rows, columns, channels)


def _hottest_around(hot: Array) -> Array:
    # The highest of a cell and its eight neighbours, for each class.
    rows, columns, _ = hot.shape
    padded = np.pad(hot, ((1, 1), (1, 1), (0, 0)), constant_values=-np.inf)
    shifted = [padded[i : i + rows, j : j + columns] for i in range(3) for j in range(3)]
    highest: Array = np.max(shifted, axis=0)
    return highest
