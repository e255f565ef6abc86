from __future__ import annotations

import numpy as np
import pytest

from gossamer.codegen.compiler import assembly
from gossamer.codegen.kernels.suppress import Suppress
from gossamer.ops._boxes import overlaps
from gossamer.targets import Target
from tests.codegen.kernels.harness import PLAIN, block, guarded, on_every_target, run

Array = np.ndarray


def suppressed(boxes: Array, scores: Array, limit: int, least: float, most: float, decay: float | None) -> tuple:
    """Indices and scores of what is taken, one after the other."""
    scores = np.where(scores > np.float32(least), scores, np.float32(-np.inf))
    indices: list[int] = []
    values: list[float] = []
    for _ in range(min(limit, int((scores > -np.inf).sum()))):
        best = int(scores.argmax())
        if scores[best] == -np.inf:
            break
        indices.append(best)
        values.append(scores[best])
        scores[best] = -np.inf
        overlap = overlaps(boxes[best], boxes)
        goes = overlap >= np.float32(most)
        if decay is not None:
            scores = scores * np.exp(np.float32(decay) * overlap * overlap)
            goes |= scores <= np.float32(least)
        scores = np.where(goes, np.float32(-np.inf), scores)
    return indices, values


def suppress(
    spec: Suppress,
    boxes: Array,
    scores: Array,
    limit: int,
    thresholds: tuple[float, float, float],
    repeats: int,
    threads: int,
) -> tuple[Array, Array, Array, int]:
    """Indices, scores, how many, and whether there was a fault."""
    rows, count = scores.shape
    y, fault = guarded(np.full((rows, 2 * limit + 1), 99, np.int32)), guarded(np.zeros(1, np.int64))
    planes, rest = guarded(np.ascontiguousarray(boxes.T)), guarded(np.zeros(rows * count, np.float32))
    least, most, decay = (guarded(np.array([value], np.float32)) for value in thresholds)
    arguments = block(
        spec.arguments,
        boxes=planes,
        scores=scores,
        score_threshold=least,
        iou_threshold=most,
        decay=decay,
        rest=rest,
        y=y,
        fault=fault,
        rows=rows,
        count=count,
        limit=limit,
        repeats=repeats,
        plane=planes.strides[0],
        scores_row=scores.strides[0],
        y_row=y.strides[0],
    )
    run(spec, arguments, threads)
    scores = np.ascontiguousarray(y[:, limit : 2 * limit]).view(np.float32)
    return y[:, :limit], scores, y[:, -1], int(fault[0])


@on_every_target
@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("count", [1, 7, 16, 45])
def test_the_best_boxes_that_overlap_little(target: Target, soft: bool, count: int) -> None:
    rng = np.random.default_rng(count)
    low = rng.random((count, 2), np.float32)
    boxes = np.concatenate([low, low + rng.random((count, 2), np.float32)], 1)
    scores = guarded(rng.random((3, count), np.float32))
    for limit, least, most in ((1, 0.0, 0.5), (10, 0.2, 0.3), (60, 0.1, 0.9)):
        for threads in (1, 2):
            decay = -0.5 / 0.3
            indices, values, numbers, fault = suppress(
                Suppress(target.name, soft), boxes, scores, limit, (least, most, decay), 0, threads
            )
            assert not fault
            for row in range(3):
                taken, kept = suppressed(boxes, scores[row], limit, least, most, decay if soft else None)
                assert numbers[row] == len(taken)
                assert indices[row].tolist() == taken + [0] * (limit - len(taken))
                np.testing.assert_allclose(values[row], kept + [0.0] * (limit - len(taken)), rtol=1e-5 if soft else 0)


@on_every_target
def test_what_may_repeat_meets_itself(target: Target) -> None:
    spec = Suppress(target.name)
    boxes = np.array([[0, 0, 1, 1], [5, 5, 5, 6], [2, 2, 3, 3]], np.float32)
    scores = guarded(np.array([[3, 2, 1]], np.float32))
    for repeats, want in ((1, [0, 1, 1]), (0, [0, 1, 2])):
        indices, _, numbers, fault = suppress(spec, boxes, scores, 3, (0, 0.5, 0), repeats, 1)
        assert (indices.tolist(), numbers.tolist(), fault) == ([want], [3], 0)


@on_every_target
def test_equal_scores_are_told_where_their_order_counts(target: Target) -> None:
    boxes = np.array([[i, 0, i + 1, 1] for i in range(40)], np.float32)
    scores = np.arange(40, 0, -1, dtype=np.float32)[None]
    for place, other in ((0, 1), (3, 3 + 16), (20, 39)):
        equal = guarded(scores)
        equal[0, other] = equal[0, place]
        for repeats in (0, 1):
            indices, _, _, fault = suppress(Suppress(target.name), boxes, equal, 40, (0, 0.5, 0), repeats, 1)
            assert fault == repeats
            assert indices[0].tolist() == np.argsort(-equal[0], kind="stable").tolist()


@on_every_target
def test_nothing_is_taken_of_nothing_good(target: Target) -> None:
    scores = guarded(np.array([[1, np.nan, -np.inf]], np.float32))
    indices, values, numbers, fault = suppress(
        Suppress(target.name), np.ones((3, 4), np.float32), scores, 2, (1, 0.5, 0), 1, 1
    )
    assert not indices.any()
    assert not values.any()
    assert (numbers.tolist(), fault) == ([0], 0)


@pytest.mark.parametrize("target", PLAIN, ids=lambda target: target.name)
def test_compiles(target: Target) -> None:
    assert Suppress(target.name).name == f"f32_suppress_hard__{target.name}"
    for soft in (False, True):
        assembly(Suppress(target.name, soft), target)
