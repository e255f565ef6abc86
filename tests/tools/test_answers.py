"""Outputs into answers: which task, and what it says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from PIL import Image

from gossamer.inputs.pictures import Picture
from gossamer.tools._answers import Detection, Question, Segmentation, answer
from tests.inputs.ports import port

PLAIN = Question({})
ABC = Question({0: "a", 1: "b", 2: "c"})


def picture(size: int = 64) -> Picture:
    return Picture("image.png", Image.new("RGB", (2 * size, size)), size, size, 0, 0, size, size)


def zeros(*shape: int, dtype: Any = np.float32) -> Any:
    return np.zeros(shape, dtype)


@pytest.mark.parametrize(
    ("outputs", "question", "shown", "task"),
    [
        ([zeros(1, 3)], PLAIN, False, "tensors"),
        ([zeros(1, 3)], ABC, False, "classification"),
        ([zeros(3)], ABC, False, "classification"),
        ([zeros(1, 1, 1, 3)], ABC, False, "classification"),
        ([zeros(1, 4)], ABC, False, "tensors"),
        ([zeros(2, 3)], ABC, False, "tensors"),
        ([zeros(1, 4)], Question({}, maker="SOFTMAX"), False, "classification"),
        ([zeros(1, 1)], Question({0: "a"}, maker="SOFTMAX"), False, "tensors"),
        ([zeros(1, 10, 4)], Question({}, maker="SOFTMAX"), False, "tensors"),
        ([zeros(1, 1, 17, 3)], PLAIN, False, "pose"),
        ([zeros(1, 6, 56)], PLAIN, True, "pose"),
        ([zeros(1, 1, 17, 3), zeros(1)], PLAIN, False, "tensors"),
        ([zeros(1, 64, 64, dtype=np.int64)], PLAIN, True, "segmentation"),
        ([zeros(1, 64, 64, dtype=np.int64)], PLAIN, False, "tensors"),
        ([zeros(1, 64, 64)], PLAIN, True, "tensors"),
        ([zeros(1, 8, 8, 21)], PLAIN, True, "segmentation"),
        ([zeros(1, 7, 7, 21)], PLAIN, True, "tensors"),
        ([zeros(1, 64, 64, 3)], PLAIN, True, "tensors"),
        ([zeros(1, 64, 64, 3)], ABC, True, "segmentation"),
        ([zeros(1, 64, 64, 1)], PLAIN, True, "tensors"),
        ([zeros(1, 5, 4), zeros(1, 5), zeros(1, 5), zeros(1)], PLAIN, True, "detection"),
        ([zeros(1, 5), zeros(1, 5, 4), zeros(1), zeros(1, 5)], PLAIN, False, "detection"),
        ([zeros(1, 5, 4), zeros(1, 6), zeros(1, 5), zeros(1)], PLAIN, True, "tensors"),
        ([zeros(1, 5, 4), zeros(1, 5), zeros(1, 5)], PLAIN, True, "tensors"),
        ([], PLAIN, True, "tensors"),
    ],
)
def test_tasks(outputs: list[Any], question: Question, shown: bool, task: str) -> None:
    ports = [port(*output.shape, dtype=output.dtype) for output in outputs]
    assert answer(ports, outputs, question, picture() if shown else None).task == task


def test_equal_scores_keep_the_order_of_the_classes() -> None:
    result = answer([port(1, 3)], [np.array([[0.25, 0.5, 0.25]], np.float32)], ABC, None, "classification")
    assert [entry["index"] for entry in result.data()["classes"]] == [1, 0, 2]


def test_quantized_scores_become_probabilities() -> None:
    output = port(1, 3, dtype=np.int8, scale=1 / 256, zero_point=-128)
    result = answer([output], [np.array([[-128, 127, 0]], np.int8)], ABC, None, "classification")
    assert result.data()["classes"] == [
        {"index": 1, "label": "b", "probability": 255 / 256},
        {"index": 2, "label": "c", "probability": 0.5},
        {"index": 0, "label": "a", "probability": 0.0},
    ]


BOXES = np.array([[[0, 0, 0.5, 0.5], [0.5, 0.5, 1, 1]]], np.float32)
SCORES = np.array([[0.75, 0.5]], np.float32)
WHOLE_SCORES = np.array([[1, 1]], np.float32)
CLASSES = np.array([[2, 1]], np.float32)
COUNT = np.array([2], np.float32)


@pytest.mark.parametrize(
    ("named", "outputs", "order"),
    [
        (("p", "q", "r", "s"), (BOXES, CLASSES, SCORES, COUNT), "whole numbers are classes"),
        (("p", "q", "r", "s"), (SCORES, BOXES, COUNT, CLASSES), "whole numbers are classes"),
        (("p", "q", "r", "s"), (BOXES, CLASSES, WHOLE_SCORES, COUNT), "the order of the operator"),
        (("location", "score", "category", "count"), (BOXES, WHOLE_SCORES, CLASSES, COUNT), "names"),
        (("x:3", "x:1", "detection_scores", "x:0"), (BOXES, CLASSES, WHOLE_SCORES, COUNT), "names"),
        (
            tuple(f"TFLite_Detection_PostProcess{suffix}" for suffix in (":3", ":2", ":1", "")),
            (COUNT, WHOLE_SCORES, CLASSES, BOXES),
            "the names of the operator",
        ),
    ],
)
def test_outputs_of_a_detection_in_any_order(named: tuple[str, ...], outputs: tuple[Any, ...], order: str) -> None:
    ports = [port(*output.shape, name=name) for name, output in zip(named, outputs, strict=True)]
    result = answer(ports, outputs, ABC, None, "detection")
    assert isinstance(result, Detection)
    assert [box.label for box in result.boxes] == ["c", "b"], order
    assert (result.boxes[0].left, result.boxes[0].bottom, result.pixels) == (0.0, 0.5, False)


def test_more_outputs_than_those_of_the_detection() -> None:
    names = [*(f"TFLite_Detection_PostProcess{suffix}" for suffix in ("", ":1", ":2", ":3")), "state"]
    outputs = [BOXES, CLASSES, SCORES, COUNT, zeros(1, 8, 8, 320, dtype=np.uint8)]
    ports = [port(*output.shape, name=name, dtype=output.dtype) for name, output in zip(names, outputs, strict=True)]
    assert answer(ports, outputs, PLAIN, None).task == "detection"


def test_labels_of_coco_may_begin_with_the_background() -> None:
    ports = [port(*output.shape) for output in (BOXES, CLASSES, SCORES, COUNT)]
    question = Question({0: "???", 1: "person", 2: "bicycle", 3: "car"})
    result = answer(ports, [BOXES, CLASSES, SCORES, COUNT], question, None, "detection")
    assert [box["label"] for box in result.data()["boxes"]] == ["car", "bicycle"]


@pytest.mark.parametrize("count", [-1.0, np.nan, 1e9])
def test_a_count_beyond_reason(count: float) -> None:
    ports = [port(*output.shape) for output in (BOXES, CLASSES, SCORES, COUNT)]
    result = answer(ports, [BOXES, CLASSES, SCORES, np.array([count], np.float32)], ABC, None, "detection")
    assert result.data()["found"] == (2 if count > 0 else 0)


def test_a_mask_of_scores_and_of_one_probability() -> None:
    scores = zeros(1, 2, 2, 3)
    scores[0, 0, :, 2] = 1
    scores[0, 1, 0, 1] = 1
    result = answer([port(1, 2, 2, 3)], [scores], ABC, None, "segmentation")
    assert isinstance(result, Segmentation)
    assert result.mask.tolist() == [[2, 2], [1, 0]]
    assert result.areas == [(2, "c", 0.5), (0, "a", 0.25), (1, "b", 0.25)]
    single = np.array([[[[0.5], [0.25]], [[0.75], [0]]]], np.float32)
    result = answer([port(1, 2, 2, 1)], [single], ABC, None, "segmentation")
    assert isinstance(result, Segmentation)
    assert result.mask.tolist() == [[1, 0], [1, 0]]


def test_several_bodies() -> None:
    output = zeros(1, 6, 56)
    output[0, 1, :51] = np.tile([0.5, 0.25, 0.875], 17)
    output[0, 1, 55] = 0.5
    result = answer([port(1, 6, 56)], [output], PLAIN, picture(100), "pose")
    assert isinstance(result, Detection)
    (body,) = result.boxes
    assert (result.task, body.keypoints[0].x, body.keypoints[0].y, body.keypoints[0].score) == ("pose", 50, 50, 0.875)


def test_statistics_of_odd_tensors() -> None:
    outputs = [zeros(0, 4), np.array([True, False]), np.array([1 + 2j], np.complex64), np.arange(17)]
    ports = [port(*output.shape, dtype=output.dtype, name=f"o{i}") for i, output in enumerate(outputs)]
    empty, booleans, complexes, many = answer(ports, outputs, PLAIN, None, "tensors").data()["tensors"]
    assert empty == {"name": "o0", "type": "float32", "shape": [0, 4], "values": []}
    assert (booleans["mean"], booleans["values"]) == (0.5, [True, False])
    assert complexes == {"name": "o2", "type": "complex64", "shape": [1], "values": ["(1+2j)"]}
    assert (many["max"], "values" in many) == (16.0, False)
