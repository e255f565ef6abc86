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

from typing import Any, NamedTuple

import numpy as np

from gossamer.ops._boxes import Taken, best_classes, lower_suppression, overlaps
from gossamer.ops._gather import slices
from gossamer.ops._layout import checked_shape, require_rank, require_shape, require_type
from gossamer.ops._reduce import folded
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, Context, InvokeContext, OpDef, PrepareContext, TensorInfo, versions
from gossamer.quantization import dequantize
from gossamer.records import record
from gossamer.schema.enums import TensorType
from gossamer.views import View

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


class _Chosen(NamedTuple):
    """Detections in terms of the kernel graph, in as many slots as there may be."""

    rows: View
    """Of the boxes: int32 [slots]."""
    columns: View
    """Of the scores: int32 [slots, ranks]."""
    scores: View
    """float32 [slots, ranks]."""
    number: View
    """Of slots that are taken, the first ones: int32 [1]."""
    places: tuple[int, int]
    """In the output, where slots and ranks are the first."""


@op.lower
def lower(graph: Lowering) -> None:
    parameters: Parameters = graph.data
    planes, predictions = _lower_decoded(graph, parameters), graph.value(1)
    _, boxes, classes = predictions.shape
    scores = predictions.slice(2, classes - parameters.num_classes, parameters.num_classes)
    scores = graph.reshape(scores, (boxes, parameters.num_classes))
    chosen = (_lower_regular if parameters.use_regular_nms else _lower_fast)(graph, planes, scores, parameters)
    slots, ranks = chosen.columns.shape
    numbers, zero = graph.array(np.arange(slots, dtype=np.int32)), graph.array(np.zeros((), np.float32))
    is_taken = graph.map("less", numbers, chosen.number, type=TensorType.BOOL)
    corners = graph.reshape(slices(graph, planes.permute((1, 0)), chosen.rows, 0), (slots, 1, 4))
    found = corners.broadcast((slots, ranks, 4)), graph.cast(chosen.columns, TensorType.FLOAT32), chosen.scores
    for position, view in enumerate(found):
        others = view.shape[1:]
        flags = graph.reshape(is_taken, (slots, *(1 for _ in others))).broadcast(view.shape)
        view = graph.map("select", flags, view, zero, type=TensorType.FLOAT32)
        free = [chosen.places[0] - slots, chosen.places[1] - ranks, *(0 for _ in others[1:])]
        view = graph.pad(view, [0 for _ in free], free)
        graph.result(graph.reshape(view, graph.output(position).shape), position)
    graph.result(graph.cast(chosen.number, TensorType.FLOAT32), 3)


def _lower_real(graph: Lowering, view: View, position: int) -> View:
    """What an input stands for, or some of it."""
    tensor = graph.input(position)
    if tensor.type == TensorType.FLOAT32:
        return view
    if tensor.quantization.per_channel:
        graph.refuse("each channel has a scale of its own")
    grid = tensor.quantization.zero_point, tensor.quantization.scale
    point, scale = (graph.array(np.array(number, np.float32)) for number in grid)
    return graph.map(("mul", ("sub", 0, 1), 2), graph.cast(view, TensorType.FLOAT32), point, scale)


def _lower_decoded(graph: Lowering, parameters: Parameters) -> View:
    """The corners of all boxes as planes, float32 [4, boxes]. All in float64, but for the exponential."""
    encodings = graph.value(0)
    encodings = graph.reshape(encodings, encodings.shape[1:]).slice(1, 0, 4)
    encoded, anchors = (
        graph.cast(_lower_real(graph, view, position).permute((1, 0)), TensorType.FLOAT64)
        for view, position in ((encodings, 0), (graph.value(2), 2))
    )
    scaled = graph.map("div", encoded, graph.array(np.array(parameters.scales).reshape(4, 1)))
    places, sizes = (anchors.slice(0, start, 2) for start in (0, 2))
    centre = graph.map(("add", ("mul", 0, 1), 2), scaled.slice(0, 0, 2), sizes, places)
    stretch = graph.map("exp", graph.cast(scaled.slice(0, 2, 2), TensorType.FLOAT32))
    half = graph.map(
        ("mul", ("mul", 1, 0), 2), graph.cast(stretch, TensorType.FLOAT64), graph.array(np.array(0.5)), sizes
    )
    centre, half = graph.cast(centre, TensorType.FLOAT32), graph.cast(half, TensorType.FLOAT32)
    low, high = graph.map("sub", centre, half), graph.map("add", centre, half)
    one, zero = (graph.array(np.array(n, np.float32)) for n in (1, 0))
    right = graph.map(("select", ("greater", 0, 1), 3, 2), low, high, one, zero)
    right = graph.kernel("nonzero", right, shape=right.shape, type=right.type)
    return graph.concat([graph.map("mul", low, right), high], 0)


def _lower_suppressed(graph: Lowering, planes: View, scores: View, limit: int, parameters: Parameters) -> Taken:
    """Kept is what has the least score itself, and what overlaps by just the threshold."""
    least = np.nextafter(np.float32(parameters.score_threshold), np.float32(-np.inf))
    most = np.nextafter(np.float32(parameters.iou_threshold), np.float32(np.inf))
    return lower_suppression(
        graph, planes, scores, limit, graph.array(least.reshape(())), graph.array(most.reshape(()))
    )


def _lower_fast(graph: Lowering, planes: View, scores: View, parameters: Parameters) -> _Chosen:
    limit, ranks = parameters.max_detections, min(parameters.max_classes_per_detection, parameters.num_classes)
    boxes = scores.shape[0]
    if scores.type == TensorType.FLOAT32:
        best = graph.reduce("max", scores, [1])
    else:
        best = graph.kernel("quantized_reduce", scores, shape=(boxes, 1), type=scores.type, reduction="max", axes=(1,))
    best = graph.reshape(_lower_real(graph, best, 1), (1, boxes))
    taken = _lower_suppressed(graph, planes, best, limit, parameters)
    rows = graph.reshape(taken.indices, (limit,))
    of_rows = slices(graph, scores, rows, 0)
    if ranks == 1:
        columns = graph.kernel("arg_reduce", of_rows, shape=(limit,), type=TensorType.INT32, axis=1, greatest=True)
        columns, best = graph.reshape(columns, (limit, 1)), graph.reshape(taken.scores, (limit, 1))
    else:
        columns, best = _lower_ranks(graph, of_rows, ranks)
        best = _lower_real(graph, best, 1)
    number = graph.reshape(taken.number, (1,))
    return _Chosen(rows, columns, best, number, (limit, parameters.max_classes_per_detection))


def _lower_ranks(graph: Lowering, scores: View, ranks: int) -> tuple[View, View]:
    """The best classes [rows, ranks] and their scores. Equal ones are left to the reference kernel, which has them in
    the order of a heap."""
    rows, classes = scores.shape
    more = min(ranks + 1, classes)
    columns = graph.kernel("topk", scores, shape=(rows, more), type=TensorType.INT32)
    best = graph.reshape(slices(graph, scores, columns, 1, batch_dims=1), (rows, more))
    falls = graph.map("notequal", best.slice(1, 0, more - 1), best.slice(1, 1, more - 1), type=TensorType.BOOL)
    falls = graph.cast(falls, TensorType.INT32)
    falls = graph.kernel("nonzero", falls, shape=falls.shape, type=TensorType.INT32)
    columns = graph.map("mul", columns.slice(1, 0, ranks), falls.slice(1, 0, 1))  # which are all 1
    return columns, best.slice(1, 0, ranks)


def _lower_regular(graph: Lowering, planes: View, scores: View, parameters: Parameters) -> _Chosen:
    classes = parameters.num_classes
    limit = min(parameters.detections_per_class, parameters.max_detections)
    slots = min(parameters.max_detections, classes * limit)
    by_class = _lower_real(graph, scores, 1).permute((1, 0))
    taken = _lower_suppressed(graph, planes, by_class, limit, parameters)
    numbers, none = graph.array(np.arange(limit, dtype=np.int32)), graph.array(np.array(-np.inf, np.float32))
    is_taken = graph.map("less", numbers, taken.number, type=TensorType.BOOL)
    keys = graph.map("select", is_taken, taken.scores, none, type=TensorType.FLOAT32)
    keys, rows = (graph.reshape(view, (classes * limit,)) for view in (keys, taken.indices))
    order = graph.kernel("topk", keys, shape=(slots,), type=TensorType.INT32)
    columns = graph.map("div", order, graph.array(np.array(limit, np.int32)))
    number = folded(graph, "add", taken.number, 0)
    number = graph.map("min", graph.reshape(number, (1,)), graph.array(np.array(slots, np.int32)))
    columns, scores = (graph.reshape(view, (slots, 1)) for view in (columns, slices(graph, keys, order, 0)))
    places = parameters.max_detections * parameters.max_classes_per_detection, 1
    return _Chosen(slices(graph, rows, order, 0), columns, scores, number, places)
