"""TFLite_Detection_PostProcess: boxes decoded, suppressed, the best kept."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from flatbuffers import flexbuffers

from gossamer.ops.custom.tflite_detection_postprocess import op
from tests.ops.cases import Case, const, run_case, tensor
from tests.ops.invoking import assert_refused_by_invoke
from tests.ops.reference import assert_refused

# Two anchors in one place, one beside them; nothing encoded moves a box off its anchor.
ANCHORS = [[0.5, 0.5, 1, 1], [0.5, 0.5, 1, 1], [2.5, 0.5, 1, 1]]
HERE, THERE = [0, 0, 1, 1], [2, 0, 3, 1]
SCORES = [[[0, 0.9, 0.1], [0, 0.8, 0.2], [0, 0.3, 0.7]]]
NONE = np.zeros((1, 3, 4))


def how(detections: int, classes: int = 1, **more: Any) -> bytes:
    values = {
        "max_detections": detections,
        "max_classes_per_detection": classes,
        "num_classes": 2,
        "nms_score_threshold": 0.0,
        "nms_iou_threshold": 0.5,
        "y_scale": 10.0,
        "x_scale": 10.0,
        "h_scale": 5.0,
        "w_scale": 5.0,
        **more,
    }
    return bytes(flexbuffers.Dumps(values))


def detected(boxes: Any, classes: Any, scores: Any, count: int) -> list[Any]:
    return [tensor([boxes]), tensor([classes]), tensor([scores]), tensor([count])]


def found(id: str, options: bytes, *outputs: Any, encodings: Any = NONE, scores: Any = SCORES) -> Case:
    inputs = [tensor(encodings), tensor(scores), const(ANCHORS, np.float32)]
    return Case(id, inputs, detected(*outputs), custom_options=options)


CASES = [
    found("fast", how(2), [HERE, THERE], [0, 1], [0.9, 0.7], 2),
    found("no_background", how(2), [HERE, THERE], [0, 1], [0.9, 0.7], 2, scores=np.array(SCORES)[:, :, 1:]),
    found("two_classes_each", how(2, 2), [HERE, HERE, THERE, THERE], [0, 1, 1, 0], [0.9, 0.1, 0.7, 0.3], 2),
    found("score_threshold", how(1, nms_score_threshold=0.8), [HERE], [0], [0.9], 1),
    found("regular", how(3, use_regular_nms=True), [HERE, THERE, THERE], [0, 1, 0], [0.9, 0.7, 0.3], 3),
    found(
        "regular_one_a_class",
        how(3, use_regular_nms=True, detections_per_class=1),
        [HERE, THERE, [0, 0, 0, 0]],
        [0, 1, 0],
        [0.9, 0.7, 0],
        2,
    ),
    # y: 10 / 10 * 1 + 0.5; h: exp(5 * ln 2 / 5) = 2
    found(
        "decoding",
        how(1),
        [[0.5, 0, 2.5, 1]],
        [0],
        [0.9],
        1,
        encodings=[[[10, 0, 5 * np.log(2), 0], [0] * 4, [0] * 4]],
    ),
    Case(
        "uint8",
        [
            tensor(np.full((1, 2, 4), 128), np.uint8, scale=0.1, zero_point=128),
            tensor([[[0, 90, 10], [0, 30, 70]]], np.uint8, scale=0.01),
            const([[1, 1, 2, 2], [5, 1, 2, 2]], np.uint8, scale=0.5),
        ],
        detected([HERE, THERE], [0, 1], [0.9, 0.7], 2),
        custom_options=how(2),
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


REFUSED = [
    ("3 class predictions must be num_classes 5, or one more", found("", how(2, num_classes=5), HERE, 0, 0, 0)),
    ("nms_iou_threshold must be in (0, 1], got 0", found("", how(2, nms_iou_threshold=0.0), HERE, 0, 0, 0)),
    ("max_classes_per_detection must be positive, got 0", found("", how(2, 0), HERE, 0, 0, 0)),
    (
        "detections_per_class 0 and max_detections 2 must be positive",
        found("", how(2, use_regular_nms=True, detections_per_class=0), HERE, 0, 0, 0),
    ),
    ("max_detections must not be negative, got -1", found("", how(-1), HERE, 0, 0, 0)),
    (
        "class_predictions must have shape [1, 3, 3], got [1, 2, 3]",
        found("", how(2), HERE, 0, 0, 0, scores=np.zeros((1, 2, 3))),
    ),
    ("box_encodings must have batch size 1, got 2", found("", how(2), HERE, 0, 0, 0, encodings=np.zeros((2, 3, 4)))),
    ("custom_options are not a flexbuffer", found("", b"abc", HERE, 0, 0, 0)),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED, ids=[message for message, _ in REFUSED])
def test_refuses(message: str, refused: Case) -> None:
    assert_refused(op, refused, message)


REFUSED_BY_INVOKE = [
    (
        "a decoded box has its lower right corner above or left",
        Case(
            "",
            [tensor(NONE), tensor(SCORES), const(np.array(ANCHORS) * [1, 1, -1, 1], np.float32)],
            detected([HERE], [0], [0], 0),
            custom_options=how(1),
        ),
    ),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED_BY_INVOKE, ids=[message for message, _ in REFUSED_BY_INVOKE])
def test_refuses_values(message: str, refused: Case) -> None:
    assert_refused_by_invoke(op, refused, message)
