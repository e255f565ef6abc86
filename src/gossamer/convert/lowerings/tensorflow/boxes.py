"""Boxes: the best of those that overlap, and parts of pictures that they cut out."""

from __future__ import annotations

import numpy as np

from gossamer.convert.blocks.moves import moved
from gossamer.convert.blocks.shapes import cast, reshape, sizes
from gossamer.convert.blocks.vectors import Hidden, as_sizes, decided, elements, int32
from gossamer.convert.graph import Graph, Value, refuse
from gossamer.convert.lowerings.tensorflow import Call, lowers
from gossamer.schema.enums import TensorType

T = TensorType

LOWEST = float(np.finfo(np.float32).min)

MOST_UNROLLED = 256
"""Suppressions that one operator for a batch of several classes becomes at most."""


@lowers("NonMaxSuppression", "NonMaxSuppressionV2", "NonMaxSuppressionV3", "NonMaxSuppressionV4")
def non_max_suppression(call: Call) -> list[Value]:
    """The first versions give as many indices as there are boxes left; TFLite's fill up with zeros."""
    graph, inputs = call.graph, call.values()
    threshold = inputs[3] if len(inputs) > 3 else _number(graph, call.attributes.float("iou_threshold", 0.5))
    score = inputs[4] if len(inputs) > 4 else _number(graph, LOWEST)
    chosen, count = suppressed(graph, inputs[0], inputs[1], inputs[2], threshold, score)
    if call.op == "NonMaxSuppressionV4":
        return [chosen if call.attributes.bool("pad_to_max_output_size", False) else first(graph, chosen, count), count]
    return [first(graph, chosen, count)]


def suppressed(
    graph: Graph, boxes: Value, scores: Value, most: Value, threshold: Value, score: Value
) -> tuple[Value, Value]:
    """Indices of the best boxes, filled up with zeros, and how many there are."""
    most = int32(graph, most)
    chosen, count = graph.add_many(
        "NON_MAX_SUPPRESSION_V4",
        [*[cast(graph, x, T.FLOAT32) for x in (boxes, scores)], most, *_thresholds(graph, threshold, score)],
        2,
        shapes=[as_sizes(elements(most)), ()],
    )
    return chosen, count


def _thresholds(graph: Graph, *numbers: Value) -> list[Value]:
    return [cast(graph, number, T.FLOAT32) for number in numbers]


def _number(graph: Graph, number: float) -> Value:
    return graph.constant(np.array(number, np.float32))


def first(graph: Graph, x: Value, count: Value) -> Value:
    """As many of the first elements of a vector as a scalar says."""
    size = [decided(Hidden(count, 0))]
    return graph.add("SLICE", x, np.zeros(1, np.int32), reshape(graph, count, [1]), shape=size)


@lowers("NonMaxSuppressionV5")
def non_max_suppression_v5(call: Call) -> list[Value]:
    graph, inputs = call.graph, call.values()
    most = int32(graph, inputs[2])
    operands = [*_thresholds(graph, *inputs[:2]), most, *_thresholds(graph, *inputs[3:])]
    size = as_sizes(elements(most))
    chosen, scores, count = graph.add_many("NON_MAX_SUPPRESSION_V5", operands, 3, shapes=[size, size, ()])
    if not call.attributes.bool("pad_to_max_output_size", False):
        chosen, scores = (first(graph, x, count) for x in (chosen, scores))
    return [chosen, cast(graph, scores, inputs[1].type), count]


@lowers("CombinedNonMaxSuppression")
def combined_non_max_suppression(call: Call) -> list[Value]:
    """One suppression for each class of each example; of all that is left the best ones.

    Boxes are [batch, boxes, classes or 1, 4], scores [batch, boxes, classes].
    """
    graph = call.graph
    boxes, scores = call.values(0, 2)
    batch, _, classes = scores.shape
    if batch * classes > MOST_UNROLLED:
        refuse(f"{batch} examples of {classes} classes: {batch * classes} suppressions; at most {MOST_UNROLLED}")
    per_class = min(int(call.constant(2, "the most of a class")), scores.shape[1])
    total = int(call.constant(3, "the most of all"))
    if call.attributes.bool("pad_per_class", False):
        total = min(total, per_class * classes)
    results = [_example(call, boxes, scores, n, per_class, total) for n in range(batch)]
    return [graph.add("PACK", *parts, values_count=batch) for parts in zip(*results, strict=True)]


def _example(call: Call, boxes: Value, scores: Value, number: int, per_class: int, total: int) -> list[Value]:
    graph = call.graph
    count, classes = scores.shape[1:]
    most = graph.constant(np.array(per_class, np.int32))
    found_boxes, found_scores, found_classes = [], [], []
    for c in range(classes):
        own = _part(graph, boxes, [number, 0, c if boxes.shape[2] > 1 else 0, 0], [1, count, 1, 4])
        points = reshape(graph, _part(graph, scores, [number, 0, c], [1, count, 1]), [count])
        own = reshape(graph, own, [count, 4])
        chosen, many = suppressed(graph, own, points, most, call.value(4), call.value(5))
        real = graph.add("LESS", np.arange(per_class, dtype=np.int32), many)
        found_boxes.append(graph.add("GATHER", own, chosen))
        found_scores.append(graph.add("SELECT_V2", real, graph.add("GATHER", points, chosen), _number(graph, -np.inf)))
        found_classes.append(np.full(per_class, c, np.float32))
    all_boxes = graph.add("CONCATENATION", *found_boxes, axis=0) if classes > 1 else found_boxes[0]
    all_scores = graph.add("CONCATENATION", *found_scores, axis=0) if classes > 1 else found_scores[0]
    available = min(total, per_class * classes)
    best, places = graph.add_many("TOPK_V2", [all_scores, np.array(available, np.int32)], 2)
    real = graph.add("GREATER", best, _number(graph, -np.inf))
    valid = graph.add("SUM", graph.add("CAST", real, type=T.INT32, in_data_type=T.BOOL), [0])
    kept = graph.add("GATHER", all_boxes, places)
    if call.attributes.bool("clip_boxes", True):
        kept = graph.add("MINIMUM", graph.add("MAXIMUM", kept, _number(graph, 0)), _number(graph, 1))
    classes_ = graph.add("GATHER", np.concatenate(found_classes), places)
    zero = _number(graph, 0)
    kept = graph.add("SELECT_V2", reshape(graph, real, [available, 1]), kept, zero)
    parts = [kept, graph.add("SELECT_V2", real, best, zero), graph.add("SELECT_V2", real, classes_, zero)]
    if total > available:
        more = total - available
        parts = [graph.add("PAD", x, np.array([[0, more]] + [[0, 0]] * (x.rank - 1), np.int32)) for x in parts]
    return [*parts, valid]


def _part(graph: Graph, x: Value, begin: list[int], size: list[int]) -> Value:
    return graph.add("SLICE", x, np.array(begin, np.int32), np.array(size, np.int32))


@lowers("CropAndResize")
def crop_and_resize(call: Call) -> Value:
    """Pictures [n, height, width, channels]; boxes (y1, x1, y2, x2) as parts of a picture, each of the picture that
    ``box_ind`` names. The crops are [boxes, *crop_size, channels], float32; ``extrapolation_value`` outside."""
    graph = call.graph
    image, boxes = (cast(graph, x, T.FLOAT32) for x in call.values(0, 2))
    which, crop = int32(graph, call.value(2)), call.constant(3, "crop_size")
    method = call.attributes.text("method", "bilinear")
    corners = [_column(graph, boxes, n) for n in range(4)]
    count = boxes.size(0)
    rows = _places(graph, corners[0], corners[2], image.shape[1], int(crop[0]))
    columns = _places(graph, corners[1], corners[3], image.shape[2], int(crop[1]))
    return sampled(
        graph,
        image,
        reshape(graph, which, [count, 1, 1]),
        reshape(graph, rows, [count, int(crop[0]), 1]),
        reshape(graph, columns, [count, 1, int(crop[1])]),
        method == "bilinear",
        call.attributes.float("extrapolation_value", 0.0),
    )


def _column(graph: Graph, x: Value, n: int) -> Value:
    return _part(graph, x, [0, n], [-1, 1])


def _places(graph: Graph, low: Value, high: Value, size: int, count: int) -> Value:
    """Where the rows or columns of a crop lie: [boxes, count]."""
    if count == 1:
        return graph.add("MUL", graph.add("ADD", low, high), _number(graph, 0.5 * (size - 1)))
    step = graph.add("MUL", graph.add("SUB", high, low), _number(graph, (size - 1) / (count - 1)))
    return graph.add(
        "ADD",
        graph.add("MUL", low, _number(graph, size - 1)),
        graph.add("MUL", step, np.arange(count, dtype=np.float32)[None]),
    )


def sampled(
    graph: Graph,
    image: Value,
    which: Value,
    rows: Value,
    columns: Value,
    is_bilinear: bool,
    outside: float,
    *,
    fades: bool = False,
) -> Value:
    """Pixels of pictures at places between them, float32: of picture ``which``, at ``rows`` and ``columns``, which
    broadcast together to [n, height, width]. Places that are not on the picture are ``outside``; if it ``fades``,
    pixels beyond the edge are, and what lies between is a mean with them."""
    count, height, width, channels = image.shape
    pixels = reshape(graph, image, [count * height * width, channels])

    def taken(y: Value, x: Value) -> Value:
        """Pixels at whole places, the nearest on the picture."""
        row = _whole(graph, y, height)
        place = graph.add("ADD", graph.add("MUL", which, np.array(height, np.int32)), row)
        place = graph.add("ADD", graph.add("MUL", place, np.array(width, np.int32)), _whole(graph, x, width))
        found = moved(graph, "GATHER", pixels, place, axis=0)
        if not fades:
            return found
        inside = graph.add("LOGICAL_AND", _inside(graph, y, height), _inside(graph, x, width))
        return graph.add("SELECT_V2", reshape(graph, inside, [*sizes(inside), 1]), found, _number(graph, outside))

    if not is_bilinear:
        half = _number(graph, 0.5)
        whole = [graph.add("FLOOR", graph.add("ADD", places, half)) for places in (rows, columns)]
        result = taken(*whole)
    else:
        top, left = graph.add("FLOOR", rows), graph.add("FLOOR", columns)
        bottom, right = (graph.add("ADD", x, _number(graph, 1)) for x in (top, left))
        down, across = graph.add("SUB", rows, top), graph.add("SUB", columns, left)
        down, across = (reshape(graph, x, [*sizes(x), 1]) for x in (down, across))
        upper = _between(graph, taken(top, left), taken(top, right), across)
        lower = _between(graph, taken(bottom, left), taken(bottom, right), across)
        result = _between(graph, upper, lower, down)
    if fades:
        return result
    inside = graph.add("LOGICAL_AND", _inside(graph, rows, height), _inside(graph, columns, width))
    return graph.add("SELECT_V2", reshape(graph, inside, [*sizes(inside), 1]), result, _number(graph, outside))


def _whole(graph: Graph, places: Value, size: int) -> Value:
    clipped = graph.add("MINIMUM", graph.add("MAXIMUM", places, _number(graph, 0)), _number(graph, size - 1))
    return graph.add("CAST", clipped, type=T.INT32, in_data_type=T.FLOAT32)


def _inside(graph: Graph, places: Value, size: int) -> Value:
    first_, last = graph.add("GREATER_EQUAL", places, _number(graph, 0)), _number(graph, size - 1)
    return graph.add("LOGICAL_AND", first_, graph.add("LESS_EQUAL", places, last))


def _between(graph: Graph, first_: Value, second: Value, part: Value) -> Value:
    return graph.add("ADD", first_, graph.add("MUL", graph.add("SUB", second, first_), part))


@lowers("ImageProjectiveTransformV2", "ImageProjectiveTransformV3")
def projective_transform(call: Call) -> Value:
    """Pixel (x, y) of the result is that at ((a0 x + a1 y + a2) / k, (b0 x + b1 y + b2) / k), k = c0 x + c1 y + 1, of
    the transform [a0, a1, a2, b0, b1, b2, c0, c1] of the picture, or of all."""
    graph, image, transforms = call.graph, call.value(0), cast(call.graph, call.value(1), T.FLOAT32)
    height, width = (int(size) for size in call.constant(2, "output_shape"))
    mode = call.attributes.text("fill_mode", "CONSTANT")
    if mode not in ("CONSTANT", "NEAREST"):
        refuse(f"fill_mode {mode}: pixels beyond the edge may be CONSTANT or NEAREST")
    outside = float(call.constant(3, "fill_value")) if len(call.inputs) > 3 else 0.0
    batch = image.shape[0]
    x = np.arange(width, dtype=np.float32).reshape(1, 1, width)
    y = np.arange(height, dtype=np.float32).reshape(1, height, 1)
    rows = transforms.size(0)
    a0, a1, a2, b0, b1, b2, c0, c1 = (reshape(graph, _column(graph, transforms, n), [rows, 1, 1]) for n in range(8))

    def line(p: Value, q: Value, r: Value) -> Value:
        return graph.add("ADD", graph.add("ADD", graph.add("MUL", p, x), graph.add("MUL", q, y)), r)

    below = line(c0, c1, _number(graph, 1))
    columns, lines = graph.add("DIV", line(a0, a1, a2), below), graph.add("DIV", line(b0, b1, b2), below)
    if mode == "NEAREST":
        columns, lines = (
            graph.add("MINIMUM", graph.add("MAXIMUM", places, _number(graph, 0)), _number(graph, size - 1))
            for places, size in ((columns, image.shape[2]), (lines, image.shape[1]))
        )
    which = graph.constant(np.arange(batch, dtype=np.int32).reshape(batch, 1, 1))
    bilinear = call.attributes.text("interpolation") == "BILINEAR"
    found = sampled(graph, cast(graph, image, T.FLOAT32), which, lines, columns, bilinear, outside, fades=True)
    return cast(graph, found, image.type)
