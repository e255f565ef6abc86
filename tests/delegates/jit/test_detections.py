"""Boxes that are chosen, of many sizes, against the reference kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.custom.tflite_detection_postprocess import op as DETECTION
from gossamer.ops.non_max_suppression_v5 import op as SUPPRESSION
from gossamer.schema import NonMaxSuppressionV5Options
from gossamer.schema.flexbuffers import dumps
from tests.delegates.jit.running import TARGETS, check
from tests.ops.cases import Case, const, model_of, tensor

pytestmark = pytest.mark.skipif(not TARGETS, reason="no machine code for this CPU")


def options(**values: Any) -> bytes:
    return bytes(dumps({"y_scale": 10.0, "x_scale": 10.0, "h_scale": 5.0, "w_scale": 5.0, **values}))


@pytest.mark.parametrize("regular", [False, True])
@pytest.mark.parametrize(("boxes", "classes", "detections", "per_detection"), [(500, 7, 20, 1), (33, 3, 40, 2)])
def test_detections(boxes: int, classes: int, detections: int, per_detection: int, regular: bool) -> None:
    rng = np.random.default_rng(boxes)
    encodings = rng.standard_normal((1, boxes, 4)).astype(np.float32)
    scores = rng.permutation(boxes * (classes + 1)).astype(np.float32).reshape(1, boxes, -1)
    scores /= scores.size
    anchors = rng.random((boxes, 4)).astype(np.float32)
    custom = options(
        max_detections=detections,
        max_classes_per_detection=per_detection,
        num_classes=classes,
        nms_score_threshold=0.3,
        nms_iou_threshold=0.5,
        use_regular_nms=regular,
    )
    kept = detections * per_detection
    outputs = [tensor(np.zeros(shape)) for shape in ((1, kept, 4), (1, kept), (1, kept), (1,))]
    case = Case("", [tensor(encodings), tensor(scores), const(anchors, np.float32)], outputs, custom_options=custom)
    for target in TARGETS:
        check(model_of(DETECTION, case), {0: encodings, 1: scores}, within=1e-5, target=target)


@pytest.mark.parametrize("sigma", [0, 0.4])
@pytest.mark.parametrize("count", [5, 300])
def test_suppression(count: int, sigma: float) -> None:
    rng = np.random.default_rng(count)
    boxes, scores = rng.random((count, 4)).astype(np.float32), rng.permutation(count).astype(np.float32) / count
    limits = [const(30), *(const(value, np.float32) for value in (0.5, 0.1, sigma))]
    outputs = [tensor(np.zeros(30), np.int32), tensor(np.zeros(30)), tensor(0, np.int32)]
    case = Case("", [tensor(boxes), tensor(scores), *limits], outputs, NonMaxSuppressionV5Options())
    for target in TARGETS:
        check(model_of(SUPPRESSION, case), {0: boxes, 1: scores}, within=1e-5, target=target)
