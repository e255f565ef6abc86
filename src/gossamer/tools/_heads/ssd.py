"""SSD without its post-processing: encodings [1, N, 4] or [1, N, 1, 4] of boxes against anchors, scores [1, N, C].

The scores have the background in column 0; those outside 0..1 go through the logistic function. Of two outputs of four
columns the scores are the one with "class" or "score" in its name, the one of two axes, or the one within 0..1.
Encodings are y, x, h, w as TFLite_Detection_PostProcess takes them, with its usual scales 10, 10, 5, 5. Boxes of
positive area in nine of ten rows are boxes already: top, left, bottom, right, fractions. Anchors (y, x, h, w,
fractions) are, in this order,

- another output [N, 4] or [1, N, 4] whose name has "anchor" in it, or the only constant of the model of that shape;
- those of the SSD of MobileNet (ssd_anchor_generator of TensorFlow's object detection), if it has N for this picture:
  six maps, the first of stride 16, each next one half as large; 3 anchors for a place of the first, 6 for the others;
  scales from 0.2 to 0.95, aspect ratios 1, 2, 1/2, 3, 1/3;
- those of an SSD with a feature pyramid (multiscale_anchor_generator), if it has N: strides 8 to 128, 6 anchors for a
  place; 4 strides large, 2 scales in an octave, aspect ratios 1, 2, 1/2.

EfficientDet has 9 anchors for a place, whose size (3 strides, 4 strides) differs between its kinds: it cannot be read
without the anchors.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.inputs.feature_pyramid import cell_counts
from gossamer.tools._heads.head import (
    Found,
    Outputs,
    Unclear,
    best,
    cells,
    classes_word,
    corners,
    probabilities,
)

Array = NDArray[Any]

HEADS = ("ssd",)
_SCALES = np.array([10, 10, 5, 5], np.float32)
_PYRAMID = (8, 16, 32, 64, 128)


def read(outputs: Outputs) -> Found | None:
    """The boxes of a raw SSD. Raises `Unclear` for one whose anchors are not known."""
    positions = _positions(outputs)
    if positions is None:
        return None
    places = outputs.values[positions[0]].reshape(-1, 4).astype(np.float32)
    scores = probabilities(outputs, positions[1], outputs.values[positions[1]])
    count, columns = scores.shape
    known = _given_anchors(outputs, count, positions)
    said = "anchors of the model"
    if known is None and outputs.shown:
        known, said = anchors(count, outputs.height, outputs.width)
    named = outputs.named(positions[0], "encoding", "box", "loc") and outputs.named(positions[1], "class", "score")
    if known is None:
        nine = 9 * sum(cell_counts(outputs.height, outputs.width, _PYRAMID)) == count
        if not (nine or named or outputs.asked):
            return None
        why = "; EfficientDet's kinds differ in their size" if nine else ""
        raise Unclear(f"boxes and scores of {count} anchors, which the model does not hold{why}")
    if not (outputs.asked or outputs.shown):
        return None
    boxes = _decoded(places)
    kind = "boxes normalised"
    if boxes is None:
        y, x, h, w = (places / _SCALES).T
        y, x = y * known[:, 2] + known[:, 0], x * known[:, 3] + known[:, 1]
        h, w = np.exp(np.minimum(h, 20)) * known[:, 2], np.exp(np.minimum(w, 20)) * known[:, 3]
        boxes, kind = corners(x, y, w, h), said
    size = np.array([outputs.width, outputs.height] * 2, np.float32)
    highest, classes = best(scores[:, 1:])
    what = f"SSD, {classes_word(columns - 1)}, {count} boxes, {kind}"
    return Found(what, boxes * size, highest, classes, background=int(outputs.labels == columns))


def _positions(outputs: Outputs) -> tuple[int, int] | None:
    # Of encodings and scores.
    four, others = [], []
    for i, values in enumerate(outputs.values):
        if values.dtype.kind == "f" and not outputs.named(i, "anchor"):
            if values.shape[1:] in ((4,), (1, 4)):
                four.append(i)
            elif values.ndim == 2 and values.shape[1] > 1:
                others.append(i)
    if len(four) == 2 and not others:
        # Three classes and the background.
        flat = [i for i in four if outputs.values[i].ndim == 2]
        for chosen in (
            [i for i in four if outputs.named(i, "class", "score")],
            flat,
            [i for i in flat if outputs.are_scores(i, outputs.values[i])],
        ):
            if len(chosen) == 1:
                four, others = [i for i in four if i not in chosen], chosen
                break
    if len(four) != 1 or len(others) != 1:
        return None
    same = len(outputs.values[four[0]]) == len(outputs.values[others[0]]) > 1
    return (four[0], others[0]) if same else None


def _given_anchors(outputs: Outputs, count: int, besides: tuple[int, int]) -> Array | None:
    given = [
        values
        for i, values in enumerate(outputs.values)
        if i not in besides and values.shape == (count, 4) and outputs.named(i, "anchor")
    ]
    constants = [values.reshape(-1, 4) for shape in ((count, 4), (1, count, 4)) for values in outputs.constants(shape)]
    chosen = given or constants
    return chosen[0].astype(np.float32) if len(chosen) == 1 else None


def _decoded(places: Array) -> Array | None:
    top, left, bottom, right = places.T
    is_box = (bottom > top) & (right > left) & (np.abs(places) <= 2).all(1)
    return np.stack([left, top, right, bottom], 1) if is_box.mean() >= 0.9 else None


def anchors(count: int, height: int, width: int) -> tuple[Array | None, str]:
    """The anchors [count, 4] (y, x, h, w, fractions) of the generator that makes as many, and its name."""
    maps = [(-(-height // 16), -(-width // 16))]
    while len(maps) < 6:
        rows, columns = maps[-1]
        maps.append((-(-rows // 2), -(-columns // 2)))
    if 3 * maps[0][0] * maps[0][1] + 6 * sum(rows * columns for rows, columns in maps[1:]) == count:
        return _mobilenet_anchors(maps, height, width), "anchors as of SSD MobileNet"
    if 6 * sum(cell_counts(height, width, _PYRAMID)) == count:
        return _pyramid_anchors(height, width), "anchors as of SSD with a feature pyramid"
    return None, ""


def _mobilenet_anchors(maps: list[tuple[int, int]], height: int, width: int) -> Array:
    scales = [*np.linspace(0.2, 0.95, len(maps)), 1.0]
    base = np.array([min(height, width) / height, min(height, width) / width])
    made = []
    for level, (rows, columns) in enumerate(maps):
        between = (scales[level] * scales[level + 1]) ** 0.5
        kinds = [(scales[level], ratio) for ratio in (1, 2, 1 / 2, 3, 1 / 3)] + [(between, 1)]
        if level == 0:
            kinds = [(0.1, 1), (scales[0], 2), (scales[0], 1 / 2)]
        sizes = np.array([(scale / ratio**0.5, scale * ratio**0.5) for scale, ratio in kinds]) * base
        y, x = np.mgrid[0:rows, 0:columns] + 0.5
        centers = np.stack([y.ravel() / rows, x.ravel() / columns], 1)
        made.append(_each(centers, sizes))
    return np.concatenate(made).astype(np.float32)


def _pyramid_anchors(height: int, width: int) -> Array:
    made = []
    for stride in _PYRAMID:
        x, y, _ = cells(height, width, (stride,)).T * stride
        # The places of a map that does not divide the picture begin at its corner.
        y, x = y + (0 if height % stride else stride / 2), x + (0 if width % stride else stride / 2)
        kinds = [(scale, ratio) for ratio in (1, 2, 1 / 2) for scale in (1, 2**0.5)]
        sizes = np.array([(scale / ratio**0.5, scale * ratio**0.5) for scale, ratio in kinds]) * 4 * stride
        made.append(_each(np.stack([y, x], 1), sizes))
    whole = np.array([height, width] * 2)
    fractions: Array = np.concatenate(made) / whole
    return fractions.astype(np.float32)


def _each(centers: Array, sizes: Array) -> Array:
    # All sizes at each centre.
    count = len(centers)
    return np.concatenate([np.repeat(centers, len(sizes), 0), np.tile(sizes, (count, 1))], 1)
