"""Boxes that the model has chosen itself: a list of the best ones.

- ``tflite``: four outputs as of TFLite_Detection_PostProcess: boxes [1, N, 4] (top, left, bottom, right; fractions),
  classes and scores [1, N], and their count [1]. They are told apart by the operator's names, by a name with "score" in
  it, by classes being whole numbers, or else stand in the order of the operator.
- ``yolov10`` (any YOLO exported end to end, RT-DETR): rows [1, N, 6 + more] of left, top, right, bottom, score, class
  for a picture, the scores from 0 to 1, the classes whole, and some box not empty. If the corners of some box are not
  in order, nothing is negative, and the scores fall, they are x, y, w, h. Behind them stand 17 keypoints (x, y, score),
  or coefficients for an output of prototypes [1, h, w, m] or [1, m, h, w]. Numbers are in pixels, or fractions if none
  of the first four is over 2.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.tools._heads.head import Found, Masks, Outputs, corners

Array = NDArray[Any]

HEADS = ("tflite", "yolov10")
_BODY = 17


def read(outputs: Outputs) -> Found | None:
    """The boxes of such a list; ``None`` if there is none."""
    found = _read_tflite(outputs)
    if found is None and (outputs.shown or outputs.asked == "yolov10"):
        for position, values in enumerate(outputs.values):
            found = found or _read_rows(outputs, position, values)
    return found


def _read_tflite(outputs: Outputs) -> Found | None:
    positions = _tflite_outputs(outputs)
    if positions is None:
        return None
    places, classes, scores = (outputs.values[i].reshape(-1, 4 if i == positions[0] else 1) for i in positions[:3])
    count = outputs.values[positions[3]].reshape(-1)
    found = max(0, min(int(count[0]) if count.size else 0, len(places), len(classes), len(scores)))
    edges = places[:found].astype(np.float32)[:, [1, 0, 3, 2]]
    boxes = edges * np.array([outputs.width, outputs.height] * 2, np.float32)
    numbers = classes[:found, 0].astype(np.int64)
    return Found("TFLite_Detection_PostProcess", boxes, scores[:found, 0], numbers, final=True)


def _tflite_outputs(outputs: Outputs) -> tuple[int, int, int, int] | None:
    # Positions of boxes, classes, scores and count.
    values = outputs.values
    named = [i for i in range(len(values)) if outputs.named(i, "tflite_detection_postprocess")]
    if len(named) == 4:
        named.sort(key=lambda i: outputs.names[i])
        boxes, classes, scores, count = named
        return boxes, classes, scores, count
    if len(values) != 4 or any(output.dtype.kind != "f" for output in values):
        return None
    # The first axis, 1, is gone already: boxes [N, 4], lists [N], count [].
    places = [i for i, output in enumerate(values) if output.ndim == 2 and output.shape[1] == 4]
    counts = [i for i, output in enumerate(values) if output.ndim == 0]
    lists = [i for i, output in enumerate(values) if output.ndim == 1]
    if len(places) != 1 or len(counts) != 1 or len(lists) != 2:
        return None
    if any(values[i].shape != values[places[0]].shape[:1] for i in lists):
        return None
    if any(outputs.named(i, "score") for i in lists):
        second_is_scores = outputs.named(lists[1], "score")
    else:
        # Class numbers are whole; where both lists are, the order of the operator counts.
        whole = [bool(np.all(values[i] == np.floor(values[i]))) for i in lists]
        second_is_scores = whole[0] or not whole[1]
    classes, scores = lists if second_is_scores else lists[::-1]
    return places[0], classes, scores, counts[0]


def _read_rows(outputs: Outputs, position: int, values: Array) -> Found | None:
    if values.ndim != 2 or values.dtype.kind != "f" or values.shape[1] < 6 or not len(values):
        return None
    edges, scores, classes, more = values[:, :4], values[:, 4], values[:, 5], values[:, 6:]
    whole = (classes >= 0).all() and (classes == np.floor(classes)).all()
    if not (whole and outputs.are_scores(position, scores)):
        return None
    normalised = bool(np.abs(edges).max() <= 2)
    form = "boxes"
    if (edges[:, 2:] < edges[:, :2]).any() and (edges >= 0).all() and (np.diff(scores) <= 0).all():
        edges, form = corners(*edges.T), "centres"
    if (edges[:, 2:] < edges[:, :2]).any() or not (edges[:, 2:] > edges[:, :2]).any():
        return None
    scale = np.array([outputs.width, outputs.height] if normalised else [1, 1], np.float32)
    keypoints, masks, kind = None, None, ""
    if more.shape[1]:
        maps = [other for i, other in enumerate(outputs.values) if i != position and other.ndim == 3]
        maps = [m for one in maps for m in (one, one.transpose(1, 2, 0)) if m.shape[2] == more.shape[1]]
        if maps:
            masks, kind = Masks(more, maps[0]), f" with {more.shape[1]} prototypes of masks"
        elif more.shape[1] == 3 * (outputs.keypoints or _BODY):
            keypoints = more.reshape(len(more), -1, 3) * np.append(scale, np.float32(1))
            kind = f" with {more.shape[1] // 3} keypoints"
        else:
            return None
    what = f"YOLO end to end{kind}, {form} {'normalised' if normalised else 'in pixels'}"
    boxes = edges * np.tile(scale, 2)
    return Found(what, boxes, scores, classes.astype(np.int64), keypoints, masks, final=True)
