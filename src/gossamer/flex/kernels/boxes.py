"""Suppression of boxes that overlap better ones."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

import numpy as np

from gossamer.flex.kernels import Array, Call, kernel
from gossamer.flex.kernels._checks import checked_shape, number, require_rank
from gossamer.ops._boxes import overlaps

Similarity = Callable[[int, Array], Array]
"""How much a box overlaps those of other indices."""


def _suppressed(
    call: Call, scores: Array, most: int, similarity: Similarity, limit: Any, least: Any, sigma: float = 0.0
) -> tuple[list[int], list[float]]:
    """Indices and scores of the boxes that stay, at most ``most``, best first, of equal ones the first.

    Only scores over ``least`` count. A box that overlaps a selected one more than ``limit`` is dropped. With
    a ``sigma`` over 0 (soft suppression) its score shrinks by ``exp(-0.5 / sigma * overlap ** 2)`` for each selected
    box instead, and it returns to the queue if that has changed it.
    """
    candidates = np.flatnonzero(scores > least)
    queue = [(-float(scores[index]), int(index), 0) for index in candidates]
    heapq.heapify(queue)
    selected: list[int] = []
    kept: list[float] = []
    decay = np.float32(-0.5 / sigma) if sigma > 0 else None
    while queue and len(selected) < most:
        call.poll()
        negative, index, met = heapq.heappop(queue)
        score = np.float32(-negative)
        others = similarity(index, np.array(selected[met:], np.int64))[::-1]
        if decay is None:
            if not np.any(others > limit):
                selected.append(index)
                kept.append(float(score))
            continue
        for overlap in others:
            score = score * np.exp(decay * overlap * overlap)
            if score <= least:
                break
        if score == np.float32(-negative):
            selected.append(index)
            kept.append(float(score))
        elif score > least:
            heapq.heappush(queue, (-float(score), index, len(selected)))
    return selected, kept


def _intersection(boxes: Array) -> Similarity:
    """Intersection over union of boxes given by any two opposite corners."""
    wide = boxes.astype(np.float32)
    ordered = np.concatenate([np.minimum(wide[:, :2], wide[:, 2:]), np.maximum(wide[:, :2], wide[:, 2:])], 1)
    return lambda index, others: overlaps(ordered[index], ordered[others])


def _checked(call: Call, boxes: Array, scores: Array, most: Array) -> int:
    require_rank(call, "boxes", boxes, 2)
    call.require(boxes.shape[1] == 4, f"boxes must have shape [boxes, 4], got {list(boxes.shape)}")
    call.require(scores.shape == boxes.shape[:1], f"scores must have {len(boxes)} elements, got {list(scores.shape)}")
    return _limit(call, most)


def _limit(call: Call, most: Array) -> int:
    count = number(call, "max_output_size", most)
    call.require(count >= 0, f"max_output_size must not be negative, got {count}")
    return count


def _threshold(call: Call, name: str, value: Any) -> Any:
    threshold = np.float32(np.asarray(value).reshape(-1)[0])
    call.require(0 <= threshold <= 1, f"{name} must be in [0, 1], got {threshold:g}")
    return threshold


@kernel("NonMaxSuppression")
def non_max_suppression(call: Call, boxes: Array, scores: Array, most: Array) -> Any:
    """The indices of the boxes that stay, best first."""
    limit = _threshold(call, "iou_threshold", call.attributes.float("iou_threshold"))
    return _suppressed(call, scores, _checked(call, boxes, scores, most), _intersection(boxes), limit, -np.inf)[0]


@kernel("NonMaxSuppressionV2", "NonMaxSuppressionV3")
def non_max_suppression_v3(call: Call, boxes: Array, scores: Array, most: Array, iou: Array, *least: Array) -> Any:
    """The same, of the boxes with a score over the threshold."""
    lowest = np.float32(least[0].reshape(-1)[0]) if least else -np.inf
    limit = _threshold(call, "iou_threshold", iou)
    return _suppressed(call, scores, _checked(call, boxes, scores, most), _intersection(boxes), limit, lowest)[0]


@kernel("NonMaxSuppressionV4", "NonMaxSuppressionV5")
def non_max_suppression_v5(
    call: Call, boxes: Array, scores: Array, most: Array, iou: Array, least: Array, *sigma: Array
) -> Any:
    """Also scores (V5), which soft suppression changes, and how many boxes there are; ``pad_to_max_output_size`` fills
    up with zeros."""
    count = _checked(call, boxes, scores, most)
    limit, soft = _threshold(call, "iou_threshold", iou), float(sigma[0].reshape(-1)[0]) if sigma else 0.0
    call.require(soft >= 0, f"soft_nms_sigma must not be negative, got {soft:g}")
    lowest = np.float32(least.reshape(-1)[0])
    selected, kept = _suppressed(call, scores, count, _intersection(boxes), limit, lowest, soft)
    valid = len(selected)
    if call.attributes.bool("pad_to_max_output_size"):
        (count,) = checked_shape(call, [count])
        selected, kept = selected + [0] * (count - valid), kept + [0.0] * (count - valid)
    return (selected, kept, valid) if sigma else (selected, valid)


@kernel("NonMaxSuppressionWithOverlaps")
def non_max_suppression_with_overlaps(
    call: Call, overlap: Array, scores: Array, most: Array, limit: Array, least: Array
) -> Any:
    """The same with a matrix of how much boxes overlap."""
    count = len(scores)
    call.require(overlap.shape == (count, count), f"overlaps must have shape [{count}, {count}]")
    threshold, lowest = np.float32(limit.reshape(-1)[0]), np.float32(least.reshape(-1)[0])
    similarity: Similarity = lambda index, others: overlap[index, others]  # noqa: E731 - it is passed on
    return _suppressed(call, scores, _limit(call, most), similarity, threshold, lowest)[0]


@kernel("CombinedNonMaxSuppression")
def combined_non_max_suppression(
    call: Call, boxes: Array, scores: Array, per_class: Array, total: Array, iou: Array, least: Array
) -> Any:
    """The best boxes of all classes of each image, each class suppressed by itself: boxes, scores, classes, and how
    many there are. ``boxes`` is [batch, boxes, 1 or classes, 4], ``scores`` [batch, boxes, classes]."""
    require_rank(call, "boxes", boxes, 4)
    require_rank(call, "scores", scores, 3)
    batch, count, groups, four = boxes.shape
    classes = scores.shape[2]
    fits = four == 4 and scores.shape[:2] == (batch, count) and groups in (1, classes)
    call.require(fits, f"boxes {list(boxes.shape)} and scores {list(scores.shape)} do not fit")
    each, most = number(call, "max_output_size_per_class", per_class), number(call, "max_total_size", total)
    call.require(each > 0 and most > 0, f"at most {each} boxes of a class and {most} of all: both must be positive")
    limit, lowest = _threshold(call, "iou_threshold", iou), np.float32(least.reshape(-1)[0])
    size = min(most, each * classes) if call.attributes.bool("pad_per_class") else most
    checked_shape(call, [batch, size, 4])
    results = [np.zeros(shape, np.float32) for shape in ((batch, size, 4), (batch, size), (batch, size))]
    valid = np.zeros(batch, np.int32)
    for n in range(batch):
        found: list[tuple[float, int, int]] = []
        for label in range(classes):
            similarity = _intersection(boxes[n, :, label if groups > 1 else 0])
            selected, kept = _suppressed(call, scores[n, :, label], min(each, count), similarity, limit, lowest)
            found += [(score, label, index) for score, index in zip(kept, selected, strict=True)]
        found = sorted(found, key=lambda one: -one[0])[:size]
        valid[n] = len(found)
        for row, (score, label, index) in enumerate(found):
            box = boxes[n, index, label if groups > 1 else 0]
            results[0][n, row] = np.clip(box, 0, 1) if call.attributes.bool("clip_boxes") else box
            results[1][n, row], results[2][n, row] = score, label
    return (*results, valid)
