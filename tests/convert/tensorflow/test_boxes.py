"""Boxes: suppression of those that overlap, crops, and pictures seen through a transform."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.convert.tensorflow.one_node import Array, Fixed, run_one

RANDOM = np.random.default_rng(0)
CORNERS = RANDOM.uniform(0, 1, (12, 2)).astype(np.float32)
BOXES = np.concatenate([CORNERS, CORNERS + RANDOM.uniform(0.2, 0.6, (12, 2)).astype(np.float32)], 1)
SCORES = RANDOM.permutation(12).astype(np.float32) / 12
IMAGE = RANDOM.integers(0, 100, (2, 5, 6, 3)).astype(np.float32)


def overlap(a: Array, b: Array) -> float:
    height, width = (max(min(a[n + 2], b[n + 2]) - max(a[n], b[n]), 0) for n in (0, 1))
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (a, b)]
    return height * width / (sum(areas) - height * width)  # type: ignore[no-any-return]


def best(boxes: Array, scores: Array, most: int, threshold: float, least: float = -math.inf) -> list[int]:
    chosen: list[int] = []
    for n in np.argsort(-scores, kind="stable"):
        if scores[n] > least and len(chosen) < most and all(overlap(boxes[n], boxes[k]) <= threshold for k in chosen):
            chosen.append(int(n))
    return chosen


@pytest.mark.parametrize("most", [4, 12])
def test_suppression(most: int, tmp_path: Path) -> None:
    opened = {0: [0], 1: [0]}
    numbers = [Fixed(most), Fixed(0.3), Fixed(0.2)]
    expected = best(BOXES, SCORES, most, 0.3)
    found = run_one("NonMaxSuppression", BOXES, SCORES, numbers[0], path=tmp_path, iou_threshold=0.3).value
    assert found.tolist() == expected
    found = run_one("NonMaxSuppressionV2", BOXES, SCORES, *numbers[:2], path=tmp_path, opened=opened).value
    assert found.tolist() == expected
    expected = best(BOXES, SCORES, most, 0.3, 0.2)
    found = run_one("NonMaxSuppressionV3", BOXES, SCORES, *numbers, path=tmp_path, opened=opened).value
    assert found.tolist() == expected


@pytest.mark.parametrize("pads", [False, True])
def test_padded_suppression(pads: bool, tmp_path: Path) -> None:
    expected = best(BOXES, SCORES, 9, 0.3, 0.2)
    filled = expected + [0] * (9 - len(expected)) * pads
    operands = [BOXES, SCORES, Fixed(9), Fixed(0.3), Fixed(0.2)]
    result = run_one("NonMaxSuppressionV4", *operands, outputs=2, path=tmp_path, pad_to_max_output_size=pads)
    assert [value.tolist() for value in result.values] == [filled, len(expected)]
    operands = [*operands, Fixed(0.0)]
    result = run_one("NonMaxSuppressionV5", *operands, outputs=3, path=tmp_path, pad_to_max_output_size=pads)
    indices, scores, count = result.values
    assert [indices.tolist(), count] == [filled, len(expected)]
    np.testing.assert_array_equal(scores[: len(expected)], SCORES[expected])
    assert not scores[len(expected) :].any()


@pytest.mark.parametrize("total", [5, 40])
@pytest.mark.parametrize("own", [False, True], ids=["shared boxes", "boxes of each class"])
@pytest.mark.parametrize("pads", [False, True])
def test_combined_suppression(pads: bool, own: bool, total: int, tmp_path: Path) -> None:
    scores = np.stack([RANDOM.permutation(24).reshape(12, 2) for _ in range(2)]).astype(np.float32) / 24
    boxes = np.stack([BOXES, BOXES[::-1]])[:, :, None]
    boxes = np.concatenate([boxes, boxes[:, ::-1]], 2) if own else boxes
    result = run_one(
        "CombinedNonMaxSuppression",
        boxes,
        scores,
        Fixed(4),
        Fixed(total),
        Fixed(0.3),
        Fixed(0.2),
        outputs=4,
        path=tmp_path,
        pad_per_class=pads,
        clip_boxes=True,
    )
    length = min(total, 8) if pads else total
    for example in range(2):
        found = []
        for c in range(2):
            mine = boxes[example, :, c if own else 0]
            found += [(scores[example, n, c], mine[n], c) for n in best(mine, scores[example, :, c], 4, 0.3, 0.2)]
        found = sorted(found, key=lambda one: -one[0])[:total]
        many = len(found)
        kept, points, classes, valid = (value[example] for value in result.values)
        assert kept.shape == (length, 4)
        assert valid == many
        np.testing.assert_array_equal(points, [one[0] for one in found] + [0] * (length - many))
        np.testing.assert_array_equal(classes[:many], [one[2] for one in found])
        np.testing.assert_array_equal(kept[:many], [np.clip(one[1], 0, 1) for one in found])
        assert not kept[many:].any()


def pixel(image: Array, y: float, x: float, method: str, outside: float, fades: bool) -> Any:
    height, width = image.shape[:2]
    if not fades and not (0 <= y <= height - 1 and 0 <= x <= width - 1):
        return np.full(3, outside)

    def at(row: int, column: int) -> Any:
        if 0 <= row < height and 0 <= column < width:
            return image[row, column]
        return np.full(3, outside) if fades else image[min(row, height - 1), min(column, width - 1)]

    if method == "nearest":
        return at(math.floor(y + 0.5), math.floor(x + 0.5))
    top, left = math.floor(y), math.floor(x)
    down, across = y - top, x - left
    upper = at(top, left) * (1 - across) + at(top, left + 1) * across
    lower = at(top + 1, left) * (1 - across) + at(top + 1, left + 1) * across
    return upper * (1 - down) + lower * down


@pytest.mark.parametrize("method", ["bilinear", "nearest"])
@pytest.mark.parametrize("size", [(3, 4), (1, 2)])
@pytest.mark.parametrize("opened", [{}, {1: [0], 2: [0]}])
def test_crops(opened: dict[int, list[int]], size: tuple[int, int], method: str, tmp_path: Path) -> None:
    boxes = np.array([[0, 0, 1, 1], [0.1, 0.2, 0.7, 0.9], [-0.2, 0.3, 0.5, 1.4], [0.9, 0.9, 0.1, 0.2]], np.float32)
    which = np.array([0, 1, 1, 0], np.int32)
    result = run_one(
        "CropAndResize",
        IMAGE,
        boxes,
        which,
        Fixed(size),
        path=tmp_path,
        opened=opened,
        method=method,
        extrapolation_value=-7.0,
    )
    for box, n, crop in zip(boxes, which, result.value, strict=True):
        places = []
        for axis, count in enumerate(size):
            low, high, last = box[axis], box[axis + 2], IMAGE.shape[axis + 1] - 1
            step = (high - low) * last / max(count - 1, 1)
            places.append([low * last + k * step if count > 1 else (low + high) / 2 * last for k in range(count)])
        expected = [[pixel(IMAGE[n], y, x, method, -7, False) for x in places[1]] for y in places[0]]
        np.testing.assert_allclose(crop, expected, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("method", ["bilinear", "nearest"])
@pytest.mark.parametrize("version", ["V2", "V3"])
def test_projective_transform(version: str, method: str, tmp_path: Path) -> None:
    transforms = np.array([[1, 0.2, -1.3, -0.1, 0.9, 0.4, 0, 0], [1.1, 0, 0.3, 0, 1, 0.6, 0.01, 0.02]], np.float32)
    more = [Fixed(5.0)] if version == "V3" else []
    result = run_one(
        f"ImageProjectiveTransform{version}",
        IMAGE,
        transforms,
        Fixed([4, 5]),
        *more,
        path=tmp_path,
        interpolation=method.upper(),
        fill_mode="CONSTANT",
    )
    for image, t, found in zip(IMAGE, transforms, result.value, strict=True):
        for y in range(4):
            for x in range(5):
                k = t[6] * x + t[7] * y + 1
                column, row = (t[0] * x + t[1] * y + t[2]) / k, (t[3] * x + t[4] * y + t[5]) / k
                expected = pixel(image, row, column, method, 5.0 if more else 0.0, True)
                np.testing.assert_allclose(found[y, x], expected, rtol=1e-4, atol=1e-3)
