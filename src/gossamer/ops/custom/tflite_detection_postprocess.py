"""TFLite_Detection_PostProcess: boxes of an SSD detector decoded, overlapping ones suppressed, the best ones kept.

Inputs: ``box_encodings`` [1, n, 4 or more] (y, x, h, w, ...), ``class_predictions`` [1, n, classes, or one more with
the background first], ``anchors`` [n, 4] (y, x, h, w of the default boxes). float32, or uint8 with its quantization.
Custom options (flexbuffer map): max_detections, max_classes_per_detection, num_classes, nms_score_threshold,
nms_iou_threshold, y_scale, x_scale, h_scale, w_scale; detections_per_class (100), use_regular_nms (false); others
that are missing are 0.

Decoding, in float64 and rounded to float32: ``centre = encoded / scale * anchor_size + anchor_centre``, ``half size
= 0.5 * exp(encoded / scale) * anchor_size``; corners are centre minus and plus half size.

Suppression of one list of scores: those of at least the score threshold, highest first (equal ones in order); each
is kept unless its intersection over union with one kept before exceeds the threshold.

- Fast (default): every box is judged by its best class; max_detections boxes are kept, each with its
  min(max_classes_per_detection, num_classes) best classes.
- Regular: every class for itself, min(detections_per_class, max_detections) of each; the max_detections best of all
  classes are kept, equal scores in the order of classes.

Outputs, float32: boxes [1, k, 4], classes [1, k], scores [1, k] with k = max_detections * max_classes_per_detection,
and the number of detections [1]. What lies behind the last detection is zero (TFLite leaves it undefined in the fast
case).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer.ops._boxes import best_classes, overlaps
from gossamer.ops._layout import checked_shape, require_rank, require_shape, require_type
from gossamer.ops.op_def import Array, Context, InvokeContext, OpDef, PrepareContext, TensorInfo, versions
from gossamer.quantization import dequantize
from gossamer.records import record
from gossamer.schema.enums import TensorType

TYPES = (TensorType.FLOAT32, TensorType.UINT8)
FLOAT = (TensorType.FLOAT32,)

op = OpDef(
    "TFLite_Detection_PostProcess",
    inputs=("box_encodings", "class_predictions", "anchors"),
    outputs=("boxes", "classes", "scores", "num_detections"),
    versions=versions("1.10.0"),
    types={
        "box_encodings": TYPES,
        "class_predictions": TYPES,
        "anchors": TYPES,
        "boxes": FLOAT,
        "classes": FLOAT,
        "scores": FLOAT,
        "num_detections": FLOAT,
    },
    custom=True,
    reserved_tensors=(2, 0),
    reference_only="boxes are chosen one after the other",
)


@record(frozen=True)
class Parameters:
    """The custom options."""

    max_detections: int
    max_classes_per_detection: int
    detections_per_class: int
    use_regular_nms: bool
    score_threshold: float
    iou_threshold: float
    num_classes: int
    scales: tuple[float, float, float, float]


@op.prepare
def prepare(ctx: PrepareContext) -> Parameters:
    """Returns the custom options."""
    encodings, predictions, anchors = ctx.input(0), ctx.input(1), ctx.input(2)
    require_rank(ctx, "box_encodings", encodings, 3)
    require_rank(ctx, "class_predictions", predictions, 3)
    batch, boxes, coordinates = encodings.shape
    classes = predictions.shape[2]
    ctx.require(batch == 1, f"box_encodings must have batch size 1, got {batch}")
    ctx.require_shapes(coordinates >= 4, f"box_encodings must have 4 coordinates or more, got {coordinates}")
    require_shape(ctx, "class_predictions", predictions, (1, boxes, classes))
    require_shape(ctx, "anchors", anchors, (boxes, 4))
    require_type(ctx, "anchors", anchors, encodings.type)
    parameters = _parameters(ctx, classes)
    kept = parameters.max_detections * parameters.max_classes_per_detection
    for position in range(4):
        ctx.set_type(position, TensorType.FLOAT32)
    ctx.set_shape(0, checked_shape(ctx, [1, kept, 4]))
    ctx.set_shape(1, (1, kept))
    ctx.set_shape(2, (1, kept))
    ctx.set_shape(3, (1,))
    ctx.temporary(TensorType.FLOAT32, (boxes, 4))
    ctx.temporary(TensorType.FLOAT32, (boxes, classes))
    return parameters


@op.reference
def reference(ctx: InvokeContext) -> tuple[Array, Array, Array, Array]:
    parameters: Parameters = ctx.data
    boxes = _decoded(ctx, parameters)
    if (boxes[:, :2] > boxes[:, 2:]).any():
        ctx.fail("a decoded box has its lower right corner above or left of its upper left one")
    scores = _real(ctx.value(1)[0], ctx.input(1))
    scores = scores[:, scores.shape[1] - parameters.num_classes :]
    chosen = _regular(boxes, scores, parameters) if parameters.use_regular_nms else _fast(boxes, scores, parameters)
    places, rows, columns, detections = chosen
    kept = parameters.max_detections * parameters.max_classes_per_detection
    out_boxes = np.zeros((1, kept, 4), np.float32)
    out_classes, out_scores = np.zeros((1, kept), np.float32), np.zeros((1, kept), np.float32)
    out_boxes[0, places] = boxes[rows]
    out_classes[0, places] = columns
    out_scores[0, places] = scores[rows, columns]
    return out_boxes, out_classes, out_scores, np.array([detections], np.float32)


def _parameters(ctx: Context, classes: int) -> Parameters:
    values = ctx.attributes()
    try:
        whole = {
            name: int(values.get(name) or 0) for name in ("max_detections", "max_classes_per_detection", "num_classes")
        }
        real = {
            name: float(np.float32(values.get(name) or 0))
            for name in ("nms_score_threshold", "nms_iou_threshold", "y_scale", "x_scale", "h_scale", "w_scale")
        }
        per_class: Any = values.get("detections_per_class")
        parameters = Parameters(
            max_detections=whole["max_detections"],
            max_classes_per_detection=whole["max_classes_per_detection"],
            detections_per_class=100 if per_class is None else int(per_class),
            use_regular_nms=bool(values.get("use_regular_nms")),
            score_threshold=real["nms_score_threshold"],
            iou_threshold=real["nms_iou_threshold"],
            num_classes=whole["num_classes"],
            scales=(real["y_scale"], real["x_scale"], real["h_scale"], real["w_scale"]),
        )
    except (TypeError, ValueError, OverflowError) as error:
        ctx.fail(f"custom options: {error}")
    ctx.require(parameters.max_detections >= 0, f"max_detections must not be negative, got {parameters.max_detections}")
    ctx.require(
        parameters.max_classes_per_detection >= (0 if parameters.use_regular_nms else 1),
        f"max_classes_per_detection must be positive, got {parameters.max_classes_per_detection}",
    )
    ctx.require(
        0 < parameters.iou_threshold <= 1, f"nms_iou_threshold must be in (0, 1], got {parameters.iou_threshold:g}"
    )
    ctx.require(
        parameters.num_classes >= 1 and classes - parameters.num_classes in (0, 1),
        f"{classes} class predictions must be num_classes {parameters.num_classes}, or one more",
    )
    if parameters.use_regular_nms:
        ctx.require(
            min(parameters.detections_per_class, parameters.max_detections) > 0,
            f"detections_per_class {parameters.detections_per_class} and max_detections {parameters.max_detections} "
            "must be positive",
        )
        ctx.require(parameters.max_classes_per_detection >= 1, "max_classes_per_detection must be positive")
    return parameters


def _real(value: Array, tensor: TensorInfo) -> Array:
    return value if tensor.type == TensorType.FLOAT32 else dequantize(value, tensor.quantization)


def _decoded(ctx: InvokeContext, parameters: Parameters) -> Array:
    encoded = _real(ctx.value(0)[0, :, :4], ctx.input(0)).astype(np.float64)
    anchors = _real(ctx.value(2), ctx.input(2)).astype(np.float64)
    with np.errstate(all="ignore"):
        scaled = encoded / np.array(parameters.scales)
        centre = (scaled[:, :2] * anchors[:, 2:] + anchors[:, :2]).astype(np.float32)
        half = (0.5 * np.exp(scaled[:, 2:]) * anchors[:, 2:]).astype(np.float32)
    return np.concatenate([centre - half, centre + half], 1)


def _suppressed(boxes: Array, scores: Array, limit: int, parameters: Parameters) -> Array:
    """Indices of the boxes that are kept, best first, at most ``limit``."""
    candidates = np.flatnonzero(scores >= np.float32(parameters.score_threshold))
    candidates = candidates[np.argsort(-scores[candidates], kind="stable")]
    kept: list[int] = []
    while candidates.size and len(kept) < limit:
        best, candidates = candidates[0], candidates[1:]
        kept.append(int(best))
        overlap = overlaps(boxes[best], boxes[candidates])
        candidates = candidates[~(overlap > np.float32(parameters.iou_threshold))]
    return np.array(kept, np.int64)


def _fast(boxes: Array, scores: Array, parameters: Parameters) -> tuple[Array, Array, Array, int]:
    """(places in the output, rows, classes, number of detections)."""
    ranks = min(parameters.max_classes_per_detection, parameters.num_classes)
    rows = _suppressed(boxes, scores.max(1, initial=-np.inf), parameters.max_detections, parameters)
    classes = np.array([best_classes(scores[row], ranks) for row in rows], np.int64)
    places = np.arange(rows.size)[:, None] * parameters.max_classes_per_detection + np.arange(ranks)
    return places.reshape(-1), rows.repeat(ranks), classes.reshape(-1), rows.size


def _regular(boxes: Array, scores: Array, parameters: Parameters) -> tuple[Array, Array, Array, int]:
    limit = min(parameters.detections_per_class, parameters.max_detections)
    rows = [_suppressed(boxes, scores[:, column], limit, parameters) for column in range(parameters.num_classes)]
    columns = np.repeat(np.arange(parameters.num_classes), [kept.size for kept in rows])
    row = np.concatenate(rows)
    order = np.argsort(-scores[row, columns], kind="stable")[: parameters.max_detections]
    return np.arange(order.size), row[order], columns[order], order.size
