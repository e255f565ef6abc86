"""Keypoints of bodies.

- ``movenet``: one output [1, 1, 17, 3] (y, x, score of the 17 keypoints of a body; fractions) or [1, P, 56]: P bodies,
  17 keypoints, the box (top, left, bottom, right) and its score, which is 0 where there is no body.
- ``posenet``: heat maps [1, h, w, 17] and offsets [1, h, w, 34] in pixels, the y of all before the x; outputs [1, h, w,
  32] beside them are for several bodies and left aside: the hottest cell of each keypoint makes one body. The heat goes
  through the logistic function. Cells are (H - 1) / (h - 1) apart.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.tools._heads.head import Found, Outputs, sigmoid

Array = NDArray[Any]

HEADS = ("movenet", "posenet")
_BODY = 17


def read(outputs: Outputs) -> Found | None:
    """The bodies of such outputs; ``None`` if they are others."""
    if outputs.asked != "posenet" and len(outputs.values) == 1 and outputs.values[0].dtype.kind == "f":
        return _read_movenet(outputs, outputs.values[0])
    return _read_posenet(outputs) if outputs.asked != "movenet" else None


def _read_movenet(outputs: Outputs, values: Array) -> Found | None:
    size = np.array([outputs.width, outputs.height], np.float32)
    if values.shape == (1, _BODY, 3):
        points = values[:, :, [1, 0, 2]] * np.append(size, np.float32(1))
        return _bodies("MoveNet, 1 body", points, points[:, :, 2].max(1))
    if values.ndim == 2 and values.shape[1] == 3 * _BODY + 5:
        values = values[values[:, -1] > 0]
        points = values[:, :-5].reshape(-1, _BODY, 3)[:, :, [1, 0, 2]] * np.append(size, np.float32(1))
        boxes = values[:, [-4, -5, -2, -3]] * np.tile(size, 2)
        return _bodies("MoveNet, several bodies", points, points[:, :, 2].max(1, initial=0), boxes)
    return None


def _read_posenet(outputs: Outputs) -> Found | None:
    by_channels = {values.shape[2]: values for values in outputs.values if values.ndim == 3}
    heat, offsets = by_channels.get(_BODY), by_channels.get(2 * _BODY)
    if heat is None or offsets is None or heat.shape[:2] != offsets.shape[:2] or min(heat.shape[:2]) < 2:
        return None
    if not outputs.shown:
        return None
    cell = heat.reshape(-1, _BODY).argmax(0)
    row, column = np.divmod(cell, heat.shape[1])
    number = np.arange(_BODY)
    x = column * (outputs.width - 1) / (heat.shape[1] - 1) + offsets[row, column, number + _BODY]
    y = row * (outputs.height - 1) / (heat.shape[0] - 1) + offsets[row, column, number]
    scores = sigmoid(heat[row, column, number])
    return _bodies("PoseNet, 1 body", np.stack([x, y, scores], 1)[None].astype(np.float32), scores.mean(keepdims=True))


def _bodies(what: str, points: Array, scores: Array, boxes: Array | None = None) -> Found:
    if boxes is None:
        boxes = np.concatenate([points[:, :, :2].min(1), points[:, :, :2].max(1)], 1)
    return Found(what, boxes, scores, np.zeros(len(points), np.int64), points, final=True)
