"""YOLO: a row of numbers for each cell of a pyramid of feature maps.

The size H x W of the model's picture, 64 or more, gives the number of cells, sum of ceil(H / s) * ceil(W / s) over
strides s that double, from 4, 8 or 16 to 32 or 64; a head has one row for each (8400 for 640 x 640) or three (25200).
With C numbers in a row, all scores from 0 to 1 and no width or height negative:

- YOLOv8 (v9, v11, v12): one row for a cell, [1, C, rows] or [1, rows, C]: x, y, w, h of the box, C - 4 scores.
- YOLOv5 (v3, v4, v7): three rows for a cell, [1, rows, C] or [1, C, rows]: x, y, w, h, objectness, C - 5 scores.
- YOLOX (YOLOv6): as YOLOv8 with an objectness, [1, rows, C]. As shapes do not tell them apart, it is this if there are
  C - 5 labels, if the objectness is 1 everywhere, if w and h are logarithms (some are negative), or if without labels
  C - 5 is 80, the classes of COCO; else it is YOLOv8.
- Apart (YOLO-NAS, PP-YOLOE, YOLOv4): boxes [1, rows, 4] and scores [1, rows, classes] or [1, classes, rows]; or scores
  and classes [1, rows] each, the classes whole numbers, or with "class" in their name. Boxes are
  corners if in all rows the second corner is not before the first, else x, y, w, h. The middles of most are within 2
  strides of their cells.

Numbers are in pixels of the input, or fractions of it if no x, y, w, h is over 2. The last numbers of a row of YOLOv8
and YOLOv5 are

- coefficients of masks, if there is an output of prototypes [1, H/s, W/s, m] or [1, m, H/s, W/s] beside it;
- 17 keypoints (x, y, score) if C is 5 + 51 (6 + 51), the number of labels is not another, and in most rows the middle
  of the keypoints is not farther from the middle of the box than its size; as many as the metadata say, if they do;
- the angle of the box, if it is from -pi/4 to 3/4 pi and outside 0..1 somewhere, if the metadata say so, or if there
  are C - 5 labels (YOLOv8 only).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.inputs.feature_pyramid import COCO, strides_of
from gossamer.tools._heads.head import Found, Masks, Outputs, best, cells, classes_word, corners

Array = NDArray[Any]

HEADS = ("yolov8", "yolov5", "yolox")
_TITLES = {"yolov8": "YOLOv8", "yolov5": "YOLOv5", "yolox": "YOLOX"}
_BODY = 17
_REACH = 2


def read(outputs: Outputs) -> Found | None:
    """The boxes of an output, or a pair of outputs, by the rules above; ``None`` if they do not hold."""
    if not (outputs.shown or outputs.asked):
        return None
    apart = _read_apart(outputs)
    if apart is not None:
        return apart
    found = [_read_one(outputs, position) for position in range(len(outputs.values))]
    known = [one for one in found if one is not None]
    return known[0] if len(known) == 1 else None


def _read_one(outputs: Outputs, position: int) -> Found | None:
    values = outputs.values[position]
    if values.ndim != 2 or values.dtype.kind != "f":
        return None
    for rows, lies in ((values.T, True), (values, False)):
        known = strides_of(rows.shape[0], outputs.height, outputs.width)
        if outputs.asked in HEADS:
            if known is not None or rows.shape[0] > rows.shape[1]:
                return _rows(outputs, position, rows, outputs.asked, known[0] if known else ())
        elif known is not None:
            strides, per_cell = known
            head = (
                "yolov5"
                if per_cell == 3
                else "yolox"
                if not lies and _has_objectness(outputs, position, rows)
                else "yolov8"
            )
            return _rows(outputs, position, rows, head, strides)
    return None


def _rows(outputs: Outputs, position: int, table: Array, head: str, strides: tuple[int, ...]) -> Found | None:
    first = 4 if head == "yolov8" else 5
    if table.shape[1] <= first:
        return None
    table = table.astype(np.float32)
    place, rest = table[:, :4], table[:, first:]
    forced = outputs.asked == head
    raw = head == "yolox" and bool(strides) and bool((place[:, 2:] < 0).any())
    if head != "yolov8" and not outputs.are_scores(position, table[:, 4]):
        return None
    if not (raw or forced) and (place[:, 2:] < -1e-3 - outputs.steps[position]).any():
        return None
    if raw:
        columns, rows, stride = cells(outputs.height, outputs.width, strides).T
        offsets, logarithms = place[:, :2] + np.stack([columns, rows], 1), np.minimum(place[:, 2:], 20)
        place = np.concatenate([offsets, np.exp(logarithms)], 1) * stride[:, None]
    normalised = not raw and bool(np.abs(place).max() <= 2)
    scale = np.array([outputs.width, outputs.height] if normalised else [1, 1], np.float32)
    boxes = corners(*(place * np.tile(scale, 2)).T)
    kind, extra, keypoints, angles, masks = "", 0, None, None, None
    prototypes = _prototypes(outputs, position, rest.shape[1])
    if prototypes is not None:
        extra = prototypes.shape[2]
        masks = Masks(rest[:, -extra:], prototypes)
        kind = f" with {extra} prototypes of masks"
    elif (points := _keypoints(outputs, boxes, rest, scale)) is not None:
        keypoints, extra = points, 3 * points.shape[1]
        kind = f" with {extra // 3} keypoints"
    elif head == "yolov8" and _has_angle(outputs, position, table):
        angles, extra, kind = rest[:, -1], 1, " with turned boxes"
    scores = rest[:, : rest.shape[1] - extra]
    if not forced and not outputs.are_scores(position, scores):
        return None
    highest, classes = best(scores)
    if head != "yolov8":
        highest = highest * table[:, 4]
    unit = "as grid offsets" if raw else "normalised" if normalised else "in pixels"
    what = f"{_TITLES[head]}{kind}, {classes_word(scores.shape[1])}, boxes {unit}"
    return Found(what, boxes, highest, classes, keypoints, masks, angles)


def _has_objectness(outputs: Outputs, position: int, table: Array) -> bool:
    count = table.shape[1] - 5
    if outputs.labels in (count, count + 1) and not outputs.turned:
        return bool(outputs.labels == count) and not _is_angle(outputs, position, table[:, -1])
    if count < 1 or _has_angle(outputs, position, table):
        return False
    return count == COCO or bool((table[:, 4] == 1).all()) or bool((table[:, 2:4] < 0).any())


def _keypoints(outputs: Outputs, boxes: Array, rest: Array, scale: Array) -> Array | None:
    # x, y in pixels and score of the keypoints at the ends of rows, whose first number is a score.
    count = outputs.keypoints or _BODY
    if rest.shape[1] <= 3 * count:
        return None
    points = rest[:, -3 * count :].reshape(len(rest), count, 3)
    # Some exporters make fractions of boxes and not of keypoints.
    points = points * np.append(scale if np.abs(points[:, :, :2]).max() <= 4 else [1, 1], 1).astype(np.float32)
    if outputs.keypoints:
        return points
    if rest.shape[1] != 1 + 3 * count or outputs.labels > 1:
        return None
    size = boxes[:, 2:] - boxes[:, :2]
    real = (size > 0).all(1)
    apart = np.abs(points[real, :, :2].mean(1) - (boxes[real, :2] + boxes[real, 2:]) / 2)
    return points if not real.any() or (apart.max(1) <= size[real].max(1)).mean() > 0.5 else None


def _has_angle(outputs: Outputs, position: int, table: Array) -> bool:
    # Of rows of YOLOv8.
    if table.shape[1] < 6 or outputs.labels == table.shape[1] - 4:
        return False
    if outputs.turned or (outputs.labels > 1 and outputs.labels == table.shape[1] - 5):
        return True
    return _is_angle(outputs, position, table[:, -1])


def _is_angle(outputs: Outputs, position: int, values: Array) -> bool:
    slack = 1e-3 + outputs.steps[position]
    inside = bool(((values >= -math.pi / 4 - slack) & (values <= 0.75 * math.pi + slack)).all())
    return inside and not outputs.are_scores(position, values)


def _prototypes(outputs: Outputs, position: int, rest: int) -> Array | None:
    # [h, w, m] of another output whose map is a fraction of the picture.
    for other, values in enumerate(outputs.values):
        if other == position or values.ndim != 3 or values.dtype.kind != "f":
            continue
        for maps in (values, values.transpose(1, 2, 0)):
            height, width, count = maps.shape
            even = height * outputs.width == width * outputs.height and outputs.height >= 2 * height
            if 1 < count < rest and even and height > 1:
                return maps
    return None


def _read_apart(outputs: Outputs) -> Found | None:
    # Boxes in an output of their own.
    real = [i for i, values in enumerate(outputs.values) if values.dtype.kind == "f"]
    four = [i for i in real if outputs.values[i].shape[1:] in ((4,), (1, 4))]
    for position in four:
        boxes = _boxes_apart(outputs, position)
        if boxes is None:
            continue
        others = [i for i in range(len(outputs.values)) if i != position]
        scored = _scores_apart(outputs, others, len(boxes[0]))
        if scored is not None:
            scores, classes, said = scored
            return Found(f"YOLO boxes beside scores, {said}{boxes[1]}", boxes[0], scores, classes)
    return None


def _boxes_apart(outputs: Outputs, position: int) -> tuple[Array, str] | None:
    values = outputs.values[position].reshape(-1, 4).astype(np.float32)
    known = strides_of(len(values), outputs.height, outputs.width)
    if known is None:
        return None
    slack = outputs.steps[position]
    normalised = bool(np.abs(values).max() <= 2)
    values = values * np.array([outputs.width, outputs.height] * 2 if normalised else [1] * 4, np.float32)
    slack = 1e-3 + slack * (max(outputs.width, outputs.height) if normalised else 1)
    kind = "corners"
    if (values[:, 2:] < values[:, :2] - slack).any():
        if (values[:, 2:] < -slack).any():
            return None
        values, kind = corners(*values.T), "centres"
    if not outputs.asked and not _are_near_cells(values, outputs, *known):
        return None
    return values, f"{kind} {'normalised' if normalised else 'in pixels'}"


def _scores_apart(outputs: Outputs, others: Sequence[int], count: int) -> tuple[Array, Array, str] | None:
    # Scores and classes of each box, and how many classes there are, if that is known.
    values = [outputs.values[i] for i in others]
    if len(others) == 1 and values[0].ndim == 2 and count in values[0].shape:
        scores = values[0] if len(values[0]) == count else values[0].T
        if outputs.are_scores(others[0], scores):
            return *best(scores), f"{classes_word(scores.shape[1])}, "
    if len(others) == 2 and all(one.shape == (count,) for one in values):
        whole = [bool((one >= 0).all() and (one == np.floor(one)).all()) for one in values]
        named = [outputs.named(i, "class") for i in others]
        places = [k for k in (0, 1) if whole[k] and (named[k] if any(named) else not whole[1 - k])]
        if len(places) == 1 and outputs.are_scores(others[1 - places[0]], values[1 - places[0]]):
            return values[1 - places[0]], values[places[0]].astype(np.int64), ""
    return None


def _are_near_cells(boxes: Array, outputs: Outputs, strides: tuple[int, ...], per_cell: int) -> bool:
    # Distances of edges (FCOS) are no boxes: their middles are not where the cells are. Heads of three rows for a cell
    # have these one after the other, or apart in each level. Boxes of most rows must be there to say so.
    real = (boxes[:, 2:] > boxes[:, :2]).all(1)
    if 2 * real.sum() < len(boxes):
        return True
    levels = [cells(outputs.height, outputs.width, (stride,)) for stride in strides]
    for rows in (
        [np.repeat(level, per_cell, 0) for level in levels],
        [np.tile(level, (per_cell, 1)) for level in levels],
    ):
        column, row, stride = np.concatenate(rows)[real].T
        middle = (boxes[real, :2] + boxes[real, 2:]) / 2
        apart = np.abs(middle - np.stack([(column + 0.5) * stride, (row + 0.5) * stride], 1)).max(1)
        if (apart <= _REACH * stride).mean() > 0.5:
            return True
    return False
