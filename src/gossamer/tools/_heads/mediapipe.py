"""MediaPipe's detectors (BlazeFace, palms, bodies): regressions [1, N, 4 + 2 k] and scores [1, N, 1].

Their anchors are places only. Over strides s that double, a place has 2 anchors, of the last stride 6; a head of one
stride alone has 1. The strides, from 4 to 64, are those that make N for this picture, of which there must be one
choice. Regressions are x, y, w, h of the box and x, y of k keypoints, in pixels of the input, x and y from the anchor;
scores go through the logistic function. A keypoint has the score of its box.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.tools._heads.head import Found, Outputs, Unclear, cells, corners, sigmoid

Array = NDArray[Any]

HEADS = ("mediapipe",)


def read(outputs: Outputs) -> Found | None:
    """The boxes of such a detector. Raises `Unclear` if one is asked for whose anchors no strides make."""
    if len(outputs.values) != 2 or not outputs.shown:
        return None
    regressions, scores = sorted(outputs.values, key=lambda values: -values.size)
    fits = regressions.ndim == 2 and scores.shape in ((len(regressions), 1), (len(regressions),))
    if not fits or regressions.shape[1] < 6 or regressions.shape[1] % 2 or regressions.dtype.kind != "f":
        return None
    made = anchors(len(regressions), outputs.height, outputs.width)
    if made is None:
        if outputs.asked:
            raise Unclear(f"no strides make {len(regressions)} anchors of {outputs.width} x {outputs.height}")
        return None
    regressions = regressions.astype(np.float32)
    x, y = made[:, 0] + regressions[:, 0], made[:, 1] + regressions[:, 1]
    boxes = corners(x, y, regressions[:, 2], regressions[:, 3])
    points = regressions[:, 4:].reshape(len(regressions), -1, 2) + made[:, None]
    highest = sigmoid(scores.reshape(-1))
    keypoints = np.concatenate([points, np.broadcast_to(highest[:, None, None], (*points.shape[:2], 1))], 2)
    what = f"MediaPipe detector, {len(regressions)} anchors, {points.shape[1]} keypoints"
    return Found(what, boxes, highest, np.zeros(len(boxes), np.int64), keypoints)


def anchors(count: int, height: int, width: int) -> Array | None:
    """The places [count, 2] (x, y) of the only choice of strides that makes as many; ``None`` if there is none."""
    strides = [4, 8, 16, 32, 64]
    choices = [strides[i:j] for i in range(len(strides)) for j in range(i + 1, len(strides) + 1)]
    fitting = []
    for chosen in choices:
        each = [1] if len(chosen) == 1 else [2] * (len(chosen) - 1) + [6]
        places = []
        for stride, repeats in zip(chosen, each, strict=True):
            place = cells(height, width, (stride,))[:, :2]
            size = -(-width // stride), -(-height // stride)
            places.append(np.repeat((place + 0.5) / size * (width, height), repeats, 0))
        made = np.concatenate(places).astype(np.float32)
        if len(made) == count:
            fitting.append(made)
    return fitting[0] if len(fitting) == 1 else None
