"""Rectangles and the suppression of those that overlap better ones."""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np

from gossamer.ops._layout import integers, require_rank, require_shape
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, InvokeContext, PrepareContext
from gossamer.schema.enums import TensorType
from gossamer.views import View

FLOAT = (TensorType.FLOAT32,)
SUPPRESSION_TYPES = {
    "boxes": FLOAT,
    "scores": FLOAT,
    "max_output_size": (TensorType.INT32,),
    "iou_threshold": FLOAT,
    "score_threshold": FLOAT,
    "sigma": FLOAT,
    "indices": (TensorType.INT32,),
    "selected_scores": FLOAT,
    "count": (TensorType.INT32,),
}


class _Scored:
    """An index with a score, ordered by the score alone.

    Python's heapq moves elements exactly as the heaps of C++'s standard library (libstdc++) do, so where scores are
    equal the order is TFLite's, as long as nothing else is compared.
    """

    __slots__ = ("index", "key", "met")

    def __init__(self, key: float, index: int, met: int = 0) -> None:
        self.key = key
        self.index = index
        self.met = met

    def __lt__(self, other: _Scored) -> bool:
        return self.key < other.key


def best_classes(scores: Array, count: int) -> list[int]:
    """Indices of the ``count`` highest scores, best first; equal ones in the order of std::partial_sort."""
    if count == 1:
        return [int(scores.argmax())]
    items = [_Scored(float(score), index) for index, score in enumerate(scores)]
    heap = items[:count]
    heapq.heapify(heap)
    for item in items[count:]:
        if heap[0] < item:
            heapq.heapreplace(heap, item)
    return [heapq.heappop(heap).index for _ in range(count)][::-1]


def overlaps(box: Array, others: Array) -> Array:
    """Intersection over union of a box [ymin, xmin, ymax, xmax] with each of ``others`` [n, 4], in float32; 0 where
    one of the two has no area."""
    zero = np.float32(0)
    area = (box[2] - box[0]) * (box[3] - box[1])
    areas = (others[:, 2] - others[:, 0]) * (others[:, 3] - others[:, 1])
    height = np.maximum(np.minimum(box[2], others[:, 2]) - np.maximum(box[0], others[:, 0]), zero)
    width = np.maximum(np.minimum(box[3], others[:, 3]) - np.maximum(box[1], others[:, 1]), zero)
    common = height * width
    ratio: Array = np.where((area <= 0) | (areas <= 0), zero, common / (area + areas - common))
    return ratio


def prepare_suppression(ctx: PrepareContext) -> None:
    """Check the operands of NON_MAX_SUPPRESSION_V4 and V5 and set the shapes of the outputs: the last is a scalar, the
    others vectors of max_output_size, dynamic if that is not constant."""
    boxes = ctx.input(0)
    require_rank(ctx, "boxes", boxes, 2)
    require_shape(ctx, "boxes", boxes, (boxes.shape[0], 4))
    require_shape(ctx, "scores", ctx.input(1), (boxes.shape[0],))
    for position, name in enumerate(ctx.op.inputs[2:], 2):
        require_rank(ctx, name, ctx.input(position), 0)
    for position, name in enumerate(ctx.op.outputs):
        (only,) = ctx.op.types[name]
        ctx.set_type(position, only)
    limit = ctx.constant(2)
    for position in range(len(ctx.outputs) - 1):
        if limit is None:
            ctx.set_dynamic(position)
        else:
            size = integers(limit)[0]
            ctx.require(size >= 0, f"max_output_size must not be negative, got {size}")
            ctx.set_shape(position, (size,))
    ctx.set_shape(len(ctx.outputs) - 1, ())


def suppressed(ctx: InvokeContext, sigma: float) -> tuple[Array, Array, Array]:
    """(indices, scores, count) of the boxes that stay, best first, filled up with zeros to max_output_size.

    Candidates with a score over the threshold wait in a queue, the best score first, equal ones as a C++
    priority_queue has them. The best is compared with the selected boxes it has not met, the latest first: an
    overlap of ``iou_threshold`` or more drops it; otherwise, with a ``sigma`` over 0, its score shrinks by
    ``exp(-0.5 / sigma * overlap ** 2)``. If its score did not change it is selected. In either case it returns to
    the queue, unless its score fell to the threshold; a selected box meets itself there, which drops it, but for a
    box without area.
    """
    limit = integers(ctx.value(2))[0]
    ctx.require(limit >= 0, f"max_output_size must not be negative, got {limit}")
    corners, scores = ctx.value(0), ctx.value(1)
    boxes = np.concatenate([np.minimum(corners[:, :2], corners[:, 2:]), np.maximum(corners[:, :2], corners[:, 2:])], 1)
    iou_threshold, score_threshold = np.float32(ctx.value(3)), np.float32(ctx.value(4))
    decay = np.float32(-0.5 / sigma) if sigma > 0 else None
    candidates = np.flatnonzero(scores > score_threshold)
    queue: list[_Scored] = []
    for candidate in candidates:
        heapq.heappush(queue, _Scored(-float(scores[candidate]), int(candidate)))
    selected: list[int] = []
    selected_scores: list[float] = []
    limit_here = min(limit, len(queue))
    while queue and len(selected) < limit_here:
        best = heapq.heappop(queue)
        score = np.float32(-best.key)
        keep = True
        for overlap in overlaps(boxes[best.index], boxes[selected[best.met :][::-1]]):
            if overlap >= iou_threshold:
                keep = False
                break
            if decay is not None:
                score = score * np.exp(decay * overlap * overlap)
            if score <= score_threshold:
                break
        if not keep:
            continue
        met = len(selected)
        if score == np.float32(-best.key):
            selected.append(best.index)
            selected_scores.append(float(score))
        if score > score_threshold:
            heapq.heappush(queue, _Scored(-float(score), best.index, met))
    indices, kept_scores = np.zeros(limit, np.int32), np.zeros(limit, np.float32)
    indices[: len(selected)] = selected
    kept_scores[: len(selected)] = selected_scores
    return indices, kept_scores, np.array(len(selected), np.int32)


class Taken(NamedTuple):
    """What suppression takes of each row of scores: indices, int32 [rows, limit], their scores, float32 of that shape,
    filled up with zeros, and how many, int32 [rows, 1]."""

    indices: View
    scores: View
    number: View


def lower_suppression(
    graph: Lowering,
    planes: View,
    scores: View,
    limit: int,
    score_threshold: View,
    iou_threshold: View,
    decay: View | None = None,
    *,
    repeats: bool = False,
) -> Taken:
    """Suppression of boxes, [4, n] (ymin, xmin, ymax, xmax), by each row of scores [rows, n]: see
    `gossamer.codegen.kernels.suppress`."""
    operands = [planes, scores, score_threshold, iou_threshold, *(() if decay is None else (decay,))]
    shape = (scores.shape[0], 2 * limit + 1)
    words = graph.kernel("suppress", *operands, shape=shape, type=TensorType.INT32, repeats=repeats)
    indices, bits, number = (
        words.slice(1, start, size) for start, size in ((0, limit), (limit, limit), (2 * limit, 1))
    )
    return Taken(indices, graph.kernel("bitcast", bits, shape=bits.shape, type=TensorType.FLOAT32), number)


def lower_suppressed(graph: Lowering, sigma: float) -> Taken:
    """`suppressed`. Where equal scores are the highest, which of them comes first is left to the reference kernel."""
    corners = graph.value(0).permute((1, 0))
    low, high = corners.slice(0, 0, 2), corners.slice(0, 2, 2)
    planes = graph.concat([graph.map("min", low, high), graph.map("max", low, high)], 0)
    scores = graph.value(1)
    decay = graph.array(np.array(-0.5 / sigma, np.float32)) if sigma > 0 else None
    limit = integers(graph.known(2))[0]
    rows = graph.reshape(scores, (1, scores.size))
    thresholds = graph.value(4), graph.value(3)
    return lower_suppression(graph, planes, rows, limit, *thresholds, decay, repeats=True)
