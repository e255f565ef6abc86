"""Heads of detectors: known boxes go in, as the head holds them, and come out."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from PIL import Image

from gossamer.inputs.pictures import Picture
from gossamer.tools._answers import Answer, Detection, Question, answer
from gossamer.tools._command import Failure
from gossamer.tools._heads import mediapipe, ssd, yolo
from tests.inputs.ports import port
from tests.runtime.graphs import ModelMaker
from tests.tools import heads, models
from tests.tools.conftest import Outcome
from tests.tools.heads import HEIGHT, SCENE, SEEN, WIDTH, Thing

Array = np.ndarray[Any, Any]
PLAIN = Question({})
PIXELS = (WIDTH, HEIGHT, WIDTH, HEIGHT)


def shown(size: tuple[int, int] = (2 * WIDTH, 2 * HEIGHT), height: int = HEIGHT, width: int = WIDTH) -> Picture:
    """A picture twice the size of the input."""
    return Picture("image.png", Image.new("RGB", size), width, height, 0, 0, width, height)


def read(
    *outputs: Array,
    question: Question = PLAIN,
    task: str | None = None,
    names: Sequence[str] = (),
    picture: Picture | None = None,
    quantized: dict[int, tuple[Any, float, int]] | None = None,
) -> Answer:
    """The answer of outputs [1, ...], some of them quantized to a type with a scale and zero point."""
    ports, values = [], []
    for i, output in enumerate(outputs):
        name = names[i] if names else f"Identity_{i}"
        dtype, scale, zero_point = (quantized or {}).get(i, (output.dtype, 0.0, 0))
        ports.append(port(1, *output.shape, dtype=dtype, scale=scale, zero_point=zero_point, name=name, position=i))
        values.append((ports[-1].quantize(output) if scale else output)[None])
    return answer(ports, values, question, picture or shown(), task)


def check(result: Answer, head: str, scene: Sequence[Thing] = SEEN, within: float = 1e-3, score: float = 1e-6) -> None:
    """The answer has the objects of the scene, in pixels of a picture twice the size of the input."""
    assert isinstance(result, Detection), result
    assert result.head == head
    assert [box.index for box in result.boxes] == [thing.number for thing in scene]
    for box, thing in zip(result.boxes, scene, strict=True):
        edges = box.left, box.top, box.right, box.bottom
        assert edges == pytest.approx([2 * edge for edge in thing.box], abs=within)
        assert box.score == pytest.approx(thing.score, abs=score)


@pytest.mark.parametrize("unit", [1, np.array([*PIXELS, 1, 1, 1], np.float32)], ids=["pixels", "normalised"])
@pytest.mark.parametrize("transposed", [False, True])
def test_yolov8(unit: Any, transposed: bool) -> None:
    rows = heads.yolo_rows(3) / unit
    word = "in pixels" if isinstance(unit, int) else "normalised"
    check(read(rows if transposed else rows.T), f"YOLOv8, 3 classes, boxes {word}")


@pytest.mark.parametrize("transposed", [False, True])
def test_yolov5(transposed: bool) -> None:
    rows = heads.yolo_rows(3, anchors=3, objectness=True)
    check(read(rows.T if transposed else rows), "YOLOv5, 3 classes, boxes in pixels")
    rows[:, :4] /= PIXELS
    check(read(rows), "YOLOv5, 3 classes, boxes normalised")


def test_the_score_of_yolov5_is_that_of_the_class_by_the_objectness() -> None:
    rows = heads.yolo_rows(3, [Thing(1, 0.5, (0, 0, 32, 32))], anchors=3, objectness=True)
    rows[rows[:, 4] == 1, 4] = 0.75
    check(read(rows), "YOLOv5, 3 classes, boxes in pixels", [Thing(1, 0.375, (0, 0, 32, 32))])


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_quantized(dtype: Any) -> None:
    zero_point = -128 if dtype == np.int8 else 0
    rows = heads.yolo_rows(3) / np.array([*PIXELS, 1, 1, 1], np.float32)
    result = read(rows.T, quantized={0: (dtype, 1 / 256, zero_point)})
    check(result, "YOLOv8, 3 classes, boxes normalised", within=2 * max(PIXELS) / 256, score=1 / 256)


def test_the_size_of_the_picture_gives_the_rows() -> None:
    assert yolo.strides_of(8400, 640, 640) == ((8, 16, 32), 1)
    assert yolo.strides_of(25200, 640, 640) == ((8, 16, 32), 3)
    assert yolo.strides_of(2535, 416, 416) == ((16, 32), 3)
    assert yolo.strides_of(34000, 1280, 1280) == ((8, 16, 32, 64), 1)
    assert yolo.strides_of(8400, 320, 640) is None


def test_yolox_and_yolov6_have_an_objectness() -> None:
    rows = heads.yolo_rows(3, objectness=True)
    three = Question({0: "a", 1: "b", 2: "c"})
    check(read(rows, question=three), "YOLOX, 3 classes, boxes in pixels")
    check(read(rows, task="yolox"), "YOLOX, 3 classes, boxes in pixels")
    # 80 classes are those of COCO.
    check(read(heads.yolo_rows(80, objectness=True)), "YOLOX, 80 classes, boxes in pixels")
    check(read(heads.yolo_rows(81).T), "YOLOv8, 81 classes, boxes in pixels")
    rows[:, 4] = 1
    check(read(rows), "YOLOX, 3 classes, boxes in pixels")


def test_yolox_before_its_grid_is_added() -> None:
    rows = heads.yolo_rows(3, objectness=True)
    cells = heads.places()
    rows[:, :2] = (rows[:, :2] - cells[:, :2]) / cells[:, 2:] + 0.5
    rows[:, 2:4] = np.log(rows[:, 2:4] / cells[:, 2:])
    rows[5, 2] = -1
    check(read(rows), "YOLOX, 3 classes, boxes as grid offsets")


def test_boxes_beside_scores() -> None:
    rows = heads.yolo_rows(3)
    x, y, w, h = rows[:, :4].T
    edges = np.stack([x - w / 2, y - h / 2, x + w / 2, y + h / 2], 1)
    check(read(edges, rows[:, 4:]), "YOLO boxes beside scores, 3 classes, corners in pixels")
    check(read(rows[:, 4:].T, edges), "YOLO boxes beside scores, 3 classes, corners in pixels")
    check(read(rows[:, 4:], rows[:, :4] / PIXELS), "YOLO boxes beside scores, 3 classes, centres normalised")


def test_boxes_beside_scores_and_classes() -> None:
    rows = heads.yolo_rows(3)
    x, y, w, h = rows[:, :4].T
    edges = np.stack([x - w / 2, y - h / 2, x + w / 2, y + h / 2], 1)
    scores, classes = rows[:, 4:].max(1), rows[:, 4:].argmax(1)
    head = "YOLO boxes beside scores, corners in pixels"
    check(read(edges, scores, classes.astype(np.uint8)), head)
    check(read(classes.astype(np.float32), edges, scores), head)
    sure = np.where(scores > 0.6, 1, 0).astype(np.float32)
    scene = [Thing(thing.number, 1.0, thing.box) for thing in SEEN]
    result = read(edges, sure, classes.astype(np.float32), names=["boxes", "scores", "class_idx"])
    assert isinstance(result, Detection)
    assert sorted(box.index for box in result.boxes) == sorted(thing.number for thing in scene)
    assert read(edges, sure, sure).task == "tensors"


def test_end_to_end() -> None:
    rows = np.zeros((300, 6), np.float32)
    for row, thing in zip(rows, SEEN, strict=False):
        row[:] = *thing.box, thing.score, thing.number
    check(read(rows), "YOLO end to end, boxes in pixels")
    rows[:, :4] /= PIXELS
    check(read(rows), "YOLO end to end, boxes normalised")
    centers = rows.copy()
    for row, thing in zip(centers, SEEN, strict=False):
        row[:4] = np.array(thing.middle) / PIXELS
    check(read(centers), "YOLO end to end, centres normalised")
    # What the model has chosen is not suppressed again.
    rows[1] = rows[0]
    assert len(read(rows).boxes) == 3  # type: ignore[attr-defined]


@pytest.mark.parametrize("head", ["yolov8", "yolov5", "yolov10"])
@pytest.mark.parametrize("channels_first", [False, True])
def test_masks(head: str, channels_first: bool) -> None:
    prototypes = np.full((HEIGHT // 4, WIDTH // 4, 8), -1, np.float32)
    prototypes[..., 0] = 1  # everywhere
    prototypes[:, : WIDTH // 8, 1] = 1  # the left half of the picture
    left = Thing(2, 0.875, (32, 24, 96, 72), (0, 1, 0, 0, 0, 0, 0, 0))
    all_of_it = Thing(0, 0.75, (100, 8, 122, 40), (1, 0, 0, 0, 0, 0, 0, 0))
    rows = heads.yolo_rows(3, [left, all_of_it], 3 if head == "yolov5" else 1, head == "yolov5").T
    if head == "yolov5":
        rows = rows.T
    if head == "yolov10":
        rows = np.zeros((300, 14), np.float32)
        for row, thing in zip(rows, (left, all_of_it), strict=False):
            row[:] = *thing.box, thing.score, thing.number, *thing.more
    result = read(rows, prototypes.transpose(2, 0, 1) if channels_first else prototypes)
    title = {"yolov8": "YOLOv8", "yolov5": "YOLOv5", "yolov10": "YOLO end to end"}[head]
    count = "" if head == "yolov10" else " 3 classes,"
    check(result, f"{title} with 8 prototypes of masks,{count} boxes in pixels", [left, all_of_it])
    assert isinstance(result, Detection)
    first, second = (box.mask for box in result.boxes)
    assert first is not None
    assert second is not None
    # Of the first, from x = 64 to 192 in the picture, what is left of its middle, 128.
    assert (first.left, first.top, first.inside.shape) == (64, 48, (96, 128))
    assert (first.inside[:, :64].all(), first.inside[:, 64:].any(), first.area) == (True, False, 96 * 64)
    assert (second.area, second.share) == (44 * 64, 44 * 64 / (4 * WIDTH * HEIGHT))


def runs(encoded: str) -> list[int]:
    """The run lengths in a string of COCO, as its definition has them."""
    found: list[int] = []
    place = 0
    while place < len(encoded):
        value, shift, more = 0, 0, True
        while more:
            letter = ord(encoded[place]) - 48
            value |= (letter & 31) << shift
            more, shift, place = bool(letter & 32), shift + 5, place + 1
            if not more and letter & 16:
                value -= 1 << shift
        found.append(value + found[-2] if len(found) > 2 else value)
    return found


def test_masks_in_json_are_as_of_coco() -> None:
    from gossamer.tools._masks import Mask

    inside = np.random.default_rng(0).random((50, 40)) > 0.5
    mask = Mask(100, 200, 7, 9, inside)
    encoded = mask.encoded()
    assert encoded["size"] == [100, 200]
    lengths = runs(encoded["counts"])
    flat = np.repeat(np.arange(len(lengths)) % 2, lengths)
    full = flat.reshape(200, 100).T
    assert np.array_equal(full[9:59, 7:47], inside)
    assert full.sum() == mask.area == inside.sum()
    assert Mask(2, 2, 0, 0, np.zeros((0, 0), bool)).encoded()["counts"] == "4"
    assert Mask(2, 2, 0, 0, np.ones((2, 2), bool)).encoded()["counts"] == "04"


def body(left: float, top: float) -> list[float]:
    """17 keypoints in a box of 48 x 48: x, y, score."""
    return [value for i in range(17) for value in (left + 2 * i + 8, top + 2 * i + 4, (i + 1) / 32)]


BODIES = [Thing(0, 0.875, (16, 24, 64, 72), body(16, 24)), Thing(0, 0.75, (66, 8, 114, 56), body(66, 8))]


def check_bodies(result: Answer, head: str) -> None:
    check(result, head, BODIES)
    assert isinstance(result, Detection)
    assert result.task == "pose"
    for box, thing in zip(result.boxes, BODIES, strict=True):
        places = [(2 * x, 2 * y, s) for x, y, s in np.reshape(thing.more, (17, 3)).tolist()]
        for point, place in zip(box.keypoints, places, strict=True):
            assert (point.x, point.y, point.score) == pytest.approx(place, abs=1e-3)
    assert (result.boxes[0].keypoints[0].name, result.boxes[0].keypoints[16].name) == ("nose", "right ankle")


def pose_rows(anchors: int = 1, objectness: bool = False) -> Array:
    rows = heads.yolo_rows(1, BODIES, anchors, objectness)
    points = rows[:, -51:].reshape(-1, 17, 3)
    empty = ~points.any((1, 2))
    points[empty, :, :2] = rows[empty, None, :2] + 1
    return rows


def test_keypoints_of_bodies() -> None:
    rows = pose_rows()
    check_bodies(read(rows.T), "YOLOv8 with 17 keypoints, 1 class, boxes in pixels")
    check_bodies(read(rows), "YOLOv8 with 17 keypoints, 1 class, boxes in pixels")
    unit = np.array([*PIXELS, 1, *[WIDTH, HEIGHT, 1] * 17], np.float32)
    check_bodies(read((rows / unit).T), "YOLOv8 with 17 keypoints, 1 class, boxes normalised")
    rows = pose_rows(3, objectness=True)
    check_bodies(read(rows), "YOLOv5 with 17 keypoints, 1 class, boxes in pixels")
    rows = np.zeros((300, 57), np.float32)
    for row, thing in zip(rows, BODIES, strict=False):
        row[:] = *thing.box, thing.score, 0, *thing.more
    check_bodies(read(rows), "YOLO end to end with 17 keypoints, boxes in pixels")


def test_52_classes_are_no_keypoints() -> None:
    rows = heads.yolo_rows(52, SCENE) / np.array([*PIXELS, *[1] * 52], np.float32)
    check(read(rows.T), "YOLOv8, 52 classes, boxes normalised")
    check(read(rows.T, question=Question(dict.fromkeys(range(52), "x"))), "YOLOv8, 52 classes, boxes normalised")


def test_as_many_keypoints_as_the_metadata_say() -> None:
    things = [Thing(1, 0.875, (16, 24, 64, 72), [20, 30, 0.5, 60, 70, 0.25])]
    result = read(heads.yolo_rows(2, things).T, question=Question({}, keypoints=2))
    check(result, "YOLOv8 with 2 keypoints, 2 classes, boxes in pixels", things)
    assert isinstance(result, Detection)
    assert (result.task, vars(result.boxes[0].keypoints[1])) == (
        "detection",
        {"name": "1", "score": 0.25, "x": 120.0, "y": 140.0},
    )


def test_turned_boxes() -> None:
    right = math.pi / 2
    upright = Thing(1, 0.875, (40, 20, 88, 36), [right])
    # At a right angle its sides change places. The other lies across it, and stays.
    across = Thing(1, 0.75, (40, 20, 88, 36), [0.0])
    rows = heads.yolo_rows(2, [upright, across, Thing(1, 0.5, (41, 20, 89, 36), [0.0])])
    result = read(rows.T)
    assert isinstance(result, Detection)
    assert result.head == "YOLOv8 with turned boxes, 2 classes, boxes in pixels"
    first, second = result.boxes
    assert (first.left, first.top, first.right, first.bottom) == pytest.approx((112, 8, 144, 104), abs=1e-3)
    assert np.array(first.corners) == pytest.approx(np.array([(144, 8), (144, 104), (112, 104), (112, 8)]), abs=1e-3)
    assert (second.left, second.top, second.right, second.bottom) == pytest.approx((80, 40, 176, 72), abs=1e-3)


def test_which_last_number_is_an_angle() -> None:
    rows = heads.yolo_rows(3)  # as good as 2 classes and an angle
    rows[:, 6] *= 0.5
    two = Question({0: "a", 1: "b"})
    assert "3 classes" in answer_head(rows.T)
    assert "turned boxes, 2 classes" in answer_head(rows.T, two)
    assert "turned boxes, 2 classes" in answer_head(rows, Question({}, turned=True))
    assert "YOLOX, 2 classes" in answer_head(rows, two)
    rows[:, 6] -= 0.25
    assert "turned boxes, 2 classes" in answer_head(rows, two)
    assert "turned boxes, 2 classes" in answer_head(rows)


def answer_head(rows: Array, question: Question = PLAIN) -> str:
    return read(rows, question=question).head


def test_boxes_of_bodies_and_keypoints_of_others_if_one_asks() -> None:
    assert read(pose_rows().T, task="detection").task == "detection"
    things = [Thing(0, 0.875, (16, 24, 64, 72), [20, 30, 0.5])]
    rows = heads.yolo_rows(1, things)
    assert read(rows.T, task="pose", question=Question({}, keypoints=1)).task == "pose"
    with pytest.raises(Failure, match="cannot be read as pose"):
        read(heads.yolo_rows(3).T, task="pose")


def test_keypoints_in_pixels_beside_normalised_boxes() -> None:
    rows = pose_rows()
    rows[:, :4] /= PIXELS
    check_bodies(read(rows.T), "YOLOv8 with 17 keypoints, 1 class, boxes normalised")


@pytest.mark.parametrize("size", [(300, 300, 1917), (320, 320, 2034), (640, 640, 8028), (300, 200, 1335)])
def test_anchors_of_mobilenet(size: tuple[int, int, int]) -> None:
    height, width, count = size
    made, name = ssd.anchors(count, height, width)
    assert name == "anchors as of SSD MobileNet"
    assert made is not None
    assert made.shape == (count, 4)
    if height == width == 300:
        # As TensorFlow's generator has them: of the first place, and of the last.
        expected = [0.5 / 19, 0.5 / 19, 0.1, 0.1], [0.5 / 19, 0.5 / 19, 0.2 / 2**0.5, 0.2 * 2**0.5]
        np.testing.assert_allclose(made[:2], expected, rtol=1e-6)
        np.testing.assert_allclose(made[-1], [0.5, 0.5, 0.95**0.5, 0.95**0.5], rtol=1e-6)


def test_anchors_of_a_pyramid() -> None:
    made, name = ssd.anchors(12804, 320, 320)
    assert name == "anchors as of SSD with a feature pyramid"
    assert made is not None
    np.testing.assert_allclose(made[0], [4 / 320, 4 / 320, 0.1, 0.1], rtol=1e-6)
    np.testing.assert_allclose(made[1, 2:], [0.1 * 2**0.5] * 2, rtol=1e-6)
    # 128 does not divide 320: the last map begins at the corner.
    np.testing.assert_allclose(made[-6 * 9], [0, 0, 1.6, 1.6], rtol=1e-6)


@pytest.mark.parametrize("scores", [lambda scores: scores, heads.logits], ids=["scores", "logits"])
@pytest.mark.parametrize("swapped", [False, True])
def test_ssd(scores: Callable[[Array], Array], swapped: bool) -> None:
    anchors, _ = ssd.anchors(258, HEIGHT, WIDTH)
    assert anchors is not None
    encodings, classes = heads.ssd(anchors, 4)
    outputs = [encodings[:, None], scores(classes)]
    result = read(*(outputs[::-1] if swapped else outputs))
    check(result, "SSD, 4 classes, 258 boxes, anchors as of SSD MobileNet")


def test_ssd_of_three_classes_and_the_background() -> None:
    anchors, _ = ssd.anchors(258, HEIGHT, WIDTH)
    assert anchors is not None
    encodings, scores = heads.ssd(anchors, 3)
    head = "SSD, 3 classes, 258 boxes, anchors as of SSD MobileNet"
    for outputs in ((encodings, scores), (scores, encodings), (encodings[:, None], heads.logits(scores))):
        check(read(*outputs), head)
    named = read(heads.logits(scores), encodings, names=["class_predictions", "box_encodings"])
    check(named, head)
    assert read(encodings, heads.logits(scores)).task == "tensors"


def test_quantized_ssd() -> None:
    anchors, _ = ssd.anchors(258, HEIGHT, WIDTH)
    assert anchors is not None
    encodings, classes = heads.ssd(anchors, 4)
    result = read(encodings, classes, quantized={0: (np.uint8, 1 / 16, 128), 1: (np.uint8, 1 / 256, 0)})
    check(result, "SSD, 4 classes, 258 boxes, anchors as of SSD MobileNet", within=4)


def test_ssd_with_anchors_of_its_own() -> None:
    rng = np.random.default_rng(3)
    anchors = rng.uniform(0.2, 0.8, (111, 4)).astype(np.float32)
    encodings, classes = heads.ssd(anchors, 5)
    result = read(encodings, classes, question=Question({}, constants=lambda shape: [anchors] * (shape == (111, 4))))
    check(result, "SSD, 5 classes, 111 boxes, anchors of the model")
    result = read(encodings, anchors, classes, names=["a", "my_anchors", "c"])
    check(result, "SSD, 5 classes, 111 boxes, anchors of the model")


def test_ssd_whose_boxes_are_decoded() -> None:
    anchors, _ = ssd.anchors(258, HEIGHT, WIDTH)
    assert anchors is not None
    _, classes = heads.ssd(anchors, 5)
    boxes = np.tile(np.array([0.25, 0.25, 0.5, 0.5], np.float32), (258, 1))
    for thing, place in zip(SCENE, [np.argmax(classes[:, 1 + t.number] == t.score) for t in SCENE], strict=True):
        boxes[place] = (np.array(thing.box) / PIXELS)[[1, 0, 3, 2]]
    check(read(boxes, classes), "SSD, 5 classes, 258 boxes, boxes normalised")


def test_labels_of_an_ssd_may_name_the_background() -> None:
    anchors, _ = ssd.anchors(258, HEIGHT, WIDTH)
    assert anchors is not None
    for labels in (["cat", "dog", "bird"], ["nothing", "cat", "dog", "bird"], ["???", "cat", "dog", "bird"]):
        result = read(*heads.ssd(anchors, 3), question=Question(dict(enumerate(labels))))
        assert [box["label"] for box in result.data()["boxes"]] == ["bird", "cat", "dog"]


def test_no_anchors_are_guessed() -> None:
    # As many as EfficientDet-Lite0 has, whose anchors have another size than those of D0.
    outputs = np.zeros((19206, 4), np.float32), np.zeros((19206, 90), np.float32)
    picture = shown(height=320, width=320)
    result = read(*outputs, picture=picture)
    why = "boxes and scores of 19206 anchors, which the model does not hold; EfficientDet's kinds differ in their size"
    assert (result.task, result.data()["why"]) == ("tensors", why)
    with pytest.raises(Failure, match="cannot be read as detection: boxes and scores of 19206 anchors, which"):
        read(*outputs, picture=picture, task="detection")
    named = read(np.zeros((100, 4), np.float32), np.zeros((100, 7), np.float32), names=["boxes", "scores"])
    assert named.data()["why"] == "boxes and scores of 100 anchors, which the model does not hold"


@pytest.mark.parametrize(
    ("size", "count"), [(128, 896), (256, 896), (192, 2016), (256, 2944), (224, 2254), (192, 2304)]
)
def test_anchors_of_mediapipe(size: int, count: int) -> None:
    made = mediapipe.anchors(count, size, size)
    assert made is not None
    assert made.shape == (count, 2)


def test_mediapipe() -> None:
    made = mediapipe.anchors(896, 128, 128)
    assert made is not None
    assert made[:3].tolist() == [[4, 4], [4, 4], [12, 4]]
    assert made[512:519].tolist() == [[8, 8]] * 6 + [[24, 8]]
    regressions, scores = np.ones((896, 16), np.float32), np.full((896, 1), -20, np.float32)
    x, y = made[100]
    regressions[100] = [40 - x, 50 - y, 20, 30, *[30 - x, 45 - y] * 6]
    scores[100] = heads.logits(np.array([0.875]))
    for outputs in ((regressions, scores), (scores, regressions)):
        result = read(*outputs, picture=shown((256, 256), 128, 128))
        check(result, "MediaPipe detector, 896 anchors, 6 keypoints", [Thing(0, 0.875, (30, 35, 50, 65))])
        assert result.data()["boxes"][0]["keypoints"][5] == {
            "name": "5",
            "score": pytest.approx(0.875),
            "x": 60.0,
            "y": 90.0,
        }


def center_maps(scene: Sequence[Thing] = SEEN[:2], classes: int = 3) -> tuple[Array, Array, Array]:
    """Heat, size and offset, of stride 4."""
    rows, columns = HEIGHT // 4, WIDTH // 4
    heat = np.zeros((rows, columns, classes), np.float32)
    size, offset = np.full((rows, columns, 2), 2, np.float32), np.zeros((rows, columns, 2), np.float32)
    for thing in scene:
        x, y, w, h = (value / 4 for value in thing.middle)
        heat[int(y) - 1 : int(y) + 2, int(x) - 1 : int(x) + 2, thing.number] = thing.score / 2
        heat[int(y), int(x), thing.number] = thing.score
        size[int(y), int(x)], offset[int(y), int(x)] = (w, h), (x % 1, y % 1)
    return heat, size, offset


def test_centernet() -> None:
    heat, size, offset = center_maps()
    check(read(heat, size, offset), "CenterNet, 3 classes, stride 4", SEEN[:2])
    check(read(offset, heats := heads.logits(heat), size), "CenterNet, 3 classes, stride 4", SEEN[:2], score=1e-5)
    first = [values.transpose(2, 0, 1) for values in (offset, heats, size)]
    check(read(*first), "CenterNet, 3 classes, stride 4", SEEN[:2], score=1e-5)


def test_the_maps_of_a_centernet_by_name() -> None:
    heat, size, offset = center_maps([Thing(1, 0.875, (16, 24, 64, 72))], 2)
    check(
        read(offset, size, heat, names=["reg", "wh", "hm"]),
        "CenterNet, 2 classes, stride 4",
        [Thing(1, 0.875, (16, 24, 64, 72))],
    )
    # Nothing says which of two maps is the size, or which is the heat.
    assert read(heat, size, offset).task != "detection"
    three = center_maps()
    assert read(three[0], three[2], three[2]).task != "detection"
    # Without offsets the name must say so.
    check(read(*center_maps()[:2], names=["heatmap", "size"]), "CenterNet, 3 classes, stride 4", [
        Thing(2, 0.875, (16, 24, 64, 72)), Thing(0, 0.75, (64, 8, 120, 40))])  # fmt: skip


def test_a_centernet_of_tensorflow_has_y_before_x() -> None:
    heat, size, offset = center_maps()
    points = np.zeros((*heat.shape[:2], 6), np.float32)
    points[:, :, 3] = 3
    names = ["object_center", "box/scale", "box/offset", "keypoint/regression"]
    result = read(heat, size[..., ::-1], offset[..., ::-1], points, names=names)
    check(result, "CenterNet with 3 keypoints, 3 classes, stride 4", SEEN[:2])
    assert [point["x"] for point in result.data()["boxes"][0]["keypoints"]] == [80, 104, 80]


def test_a_centernet_with_keypoints() -> None:
    heat, size, offset = center_maps()
    points = np.zeros((*heat.shape[:2], 6), np.float32)
    points[:, :, 2] = 3
    result = read(heat, size, offset, points)
    check(result, "CenterNet with 3 keypoints, 3 classes, stride 4", SEEN[:2])
    keypoints = result.data()["boxes"][0]["keypoints"]
    assert [(point["x"], point["y"]) for point in keypoints] == [(80, 96), (104, 96), (80, 96)]


def test_posenet() -> None:
    heat, offsets = np.full((9, 9, 17), -9, np.float32), np.zeros((9, 9, 34), np.float32)
    for i in range(17):
        heat[i % 9, 3, i] = 2
        offsets[i % 9, 3, i], offsets[i % 9, 3, 17 + i] = 5, -7
    more = np.zeros((9, 9, 32), np.float32)
    result = read(heat, offsets, more, more, picture=shown((514, 514), 257, 257))
    assert isinstance(result, Detection)
    assert (result.task, result.head) == ("pose", "PoseNet, 1 body")
    (found,) = result.boxes
    assert [(point.x, point.y) for point in found.keypoints] == [
        (2 * (3 * 32 - 7), 2 * (i % 9 * 32 + 5)) for i in range(17)
    ]
    assert found.keypoints[0].score == pytest.approx(1 / (1 + math.exp(-2)))


RNG = np.random.default_rng(5)


@pytest.mark.parametrize(
    "outputs",
    [
        [RNG.random((84, 253))],  # not the number of cells
        [RNG.normal(size=(84, 252))],  # scores out of bounds
        [RNG.random((252, 4))],  # no scores
        [np.stack([RNG.random((252, 7))] * 2)],
        [RNG.random((300, 6))],  # classes are not whole
        [np.zeros((300, 6))],  # no box at all
        [RNG.normal(size=(896, 16)), RNG.random((896, 1))],  # for 128 x 128
        [RNG.normal(size=(896, 16)), RNG.random((896, 2))],
        [RNG.random((252, 4)) * 40, RNG.random((252, 3))],  # distances of edges
        [RNG.random((24, 32, 3)), RNG.random((24, 32, 5))],
        [RNG.random((24, 32, 3)), RNG.random((24, 31, 2)), RNG.random((24, 32, 2))],
        [RNG.normal(size=(50, 4)), RNG.random((50, 9))],  # unnamed
        [RNG.random((9, 9, 17)), RNG.random((9, 9, 30))],
    ],
    ids=lambda outputs: " ".join(str(list(output.shape)) for output in outputs),
)
def test_what_only_looks_like_a_head(outputs: list[Array]) -> None:
    assert read(*(output.astype(np.float32) for output in outputs)).task in ("tensors", "segmentation")


def test_without_a_picture_as_input_there_are_no_cells() -> None:
    rows = heads.yolo_rows(3)[None].astype(np.float32)
    assert answer([port(*rows.shape)], [rows], PLAIN, None).task == "tensors"
    result = answer([port(*rows.shape)], [rows], Question({}, size=(HEIGHT, WIDTH)), None)
    assert isinstance(result, Detection)
    assert (result.pixels, result.boxes[0].left, result.boxes[0].bottom) == (False, 16 / WIDTH, 72 / HEIGHT)


def test_options() -> None:
    rows = heads.yolo_rows(3)
    sure = read(rows.T, question=Question({}, threshold=0.7))
    assert [box["score"] for box in sure.data()["boxes"]] == [0.875, 0.75]
    overlapping = read(rows.T, question=Question({}, iou=0.95))
    assert [box["score"] for box in overlapping.data()["boxes"]] == [0.875, 0.75, 0.625, 0.5]
    few = read(rows.T, question=Question({}, max_boxes=2))
    assert (len(few.data()["boxes"]), few.data()["found"]) == (2, 3)
    nothing = read(heads.yolo_rows(3, []).T)
    assert (nothing.task, nothing.data()["boxes"]) == ("detection", [])


def test_a_head_that_is_asked_for() -> None:
    rows = heads.yolo_rows(3)
    rows[:, 4:] = heads.logits(rows[:, 4:])
    assert read(rows.T).task == "tensors"
    assert read(rows.T, task="yolov8").head == "YOLOv8, 3 classes, boxes in pixels"
    with pytest.raises(Failure, match=r"\(float32 \[1, 252, 7\]\) cannot be read as ssd; --task tensors shows"):
        read(rows, task="ssd")


def test_a_box_goes_back_through_the_letterbox() -> None:
    # The picture, 256 x 128, lies in 128 x 64 of the input, 16 below its upper edge.
    picture = Picture("image.png", Image.new("RGB", (256, 128)), WIDTH, HEIGHT, 0, 16, 128, 64)
    result = read(heads.yolo_rows(3).T, picture=picture)
    assert result.data()["boxes"][0]["box"] == pytest.approx([32, 16, 128, 112], abs=1e-3)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_none(bad: float) -> None:
    rows = heads.yolo_rows(3)
    rows[7] = bad
    read(rows.T)
    read(rows.T, task="yolov8").data()
    anchors, _ = ssd.anchors(258, HEIGHT, WIDTH)
    assert anchors is not None
    encodings, classes = heads.ssd(anchors, 3)
    encodings[7] = bad
    read(encodings, classes).data()


def test_the_outputs_of_a_signature(
    gossamer: Callable[..., Outcome], place: Callable[[str, bytes], Path], tmp_path: Path
) -> None:
    make = ModelMaker()
    image = make.tensor((1, HEIGHT, WIDTH, 3), models.UINT8, name="image")
    rows = heads.yolo_rows(3).T[None]
    boxes = make.constant(rows[:, :4].transpose(0, 2, 1), np.float32, models.FLOAT, name="Identity")
    scores = make.constant(rows[:, 4:], np.float32, models.FLOAT, name="Identity_1")
    make.io([image], [scores])
    make.signature("detect", {"picture": image}, {"scores": scores, "boxes": boxes})
    Image.new("RGB", (2 * WIDTH, 2 * HEIGHT)).save(tmp_path / "in.png")
    arguments = place("detect.tflite", make.model()), tmp_path / "in.png", "--json"
    (run,) = gossamer("run", *arguments, "--signature", "detect").json["runs"]
    assert run["head"] == "YOLO boxes beside scores, 3 classes, centres in pixels"
    assert [box["class"] for box in run["boxes"]] == [2, 0, 1]
    assert gossamer("run", *arguments).json["runs"][0]["task"] == "tensors"


@pytest.mark.parametrize("dtype", [np.float16, "bfloat16"])
def test_small_floats(dtype: Any) -> None:
    rows = heads.yolo_rows(3).T.astype(np.float16 if dtype == np.float16 else ml_dtypes.bfloat16)
    check(read(rows), "YOLOv8, 3 classes, boxes in pixels")


def test_outputs_that_are_no_numbers() -> None:
    for odd in (np.zeros((252, 4), object), np.zeros((24, 32, 17), bool), np.zeros((252, 4), np.complex64)):
        check(read(odd, heads.yolo_rows(3).T), "YOLOv8, 3 classes, boxes in pixels")
        assert read(odd, odd).task == "tensors"


def test_end_to_end_on_the_command_line(
    gossamer: Callable[..., Outcome], place: Callable[[str, bytes], Path], tmp_path: Path
) -> None:
    model = place("detect.tflite", models.says({"output": heads.yolo_rows(3).T[None]}, (HEIGHT, WIDTH)))
    Image.new("RGB", (2 * WIDTH, 2 * HEIGHT), "grey").save(tmp_path / "in.png")
    labels = place("labels.txt", b"cat\ndog\nbird\n")
    result = gossamer("run", model, tmp_path / "in.png", "--labels", labels, "--draw", tmp_path / "out.png")
    assert result.code == 0
    assert "in.png: detection (YOLOv8, 3 classes, boxes in pixels); load" in result.out
    lines = [line.split()[:3] for line in result.out.splitlines() if line.strip()]
    assert lines[3:6] == [["2", "bird", "0.8750"], ["0", "cat", "0.7500"], ["1", "dog", "0.6250"]]
    (run,) = gossamer("run", model, tmp_path / "in.png", "--iou", 0.95, "--max-boxes", 1, "--json").json["runs"]
    assert (run["task"], run["head"], run["found"]) == ("detection", "YOLOv8, 3 classes, boxes in pixels", 4)
    assert run["boxes"] == [{"class": 2, "label": "2", "score": 0.875, "box": [32.0, 48.0, 128.0, 144.0]}]
    with Image.open(tmp_path / "out.png") as image:
        assert image.getpixel((32, 100)) == (128, 128, 0)


def test_the_facts_of_ultralytics(place: Callable[[str, bytes], Path]) -> None:
    from gossamer.inputs.session import Session
    from gossamer.model.metadata import append_files
    from gossamer.schema import TensorType
    from gossamer.tools._facts import read_facts

    plain = models.echo((1, HEIGHT, WIDTH, 3), TensorType.FLOAT32)
    for name, content in (
        ("metadata.json", b'{"task": "pose", "names": {"0": "cat", "1": "dog"}, "kpt_shape": [5, 3]}'),
        ("temp_meta.txt", b"{'task': 'pose', 'names': {0: 'cat', 1: 'dog'}, 'kpt_shape': [5, 3]}"),
    ):
        facts = read_facts(Session(str(place("m.tflite", append_files(plain, {name: content})))))
        assert (facts.labels, facts.keypoints, facts.size) == ({0: "cat", 1: "dog"}, 5, (HEIGHT, WIDTH))
        assert (facts.turned, facts.normalization, facts.assumed) == (False, {0: ([0.0], [255.0])}, "")


def test_the_pixels_that_yolo_takes(
    gossamer: Callable[..., Outcome], place: Callable[[str, bytes], Path], tmp_path: Path
) -> None:
    model = place("detect.tflite", models.says({"output": heads.yolo_rows(3).T[None]}, (HEIGHT, WIDTH), models.FLOAT))
    Image.new("RGB", (8, 8)).save(tmp_path / "in.png")
    assert "pixels scaled to 0..1, as YOLO takes them" in gossamer("run", model, tmp_path / "in.png").out
    asked = gossamer("run", model, tmp_path / "in.png", "--mean", 0, "--std", 1).out
    assert "pixels scaled" not in asked
