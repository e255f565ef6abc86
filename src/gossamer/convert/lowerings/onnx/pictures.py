"""Pictures read at places between elements, and boxes in them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gossamer.convert.blocks.elementwise import widened
from gossamer.convert.blocks.indexing import slice_axis
from gossamer.convert.blocks.products import matmul
from gossamer.convert.blocks.shapes import cast, channels_first, channels_last, reshape, transpose
from gossamer.convert.blocks.vectors import elements, open_size
from gossamer.convert.graph import Refused, Size, Value
from gossamer.convert.lowerings.onnx import Call, lowers
from gossamer.convert.lowerings.onnx.resize import CUBIC
from gossamer.convert.lowerings.onnx.shapes import known_size
from gossamer.schema.enums import Padding
from gossamer.schema.enums import TensorType as T


@lowers("AffineGrid")
def affine_grid(call: Call) -> Value:
    """Where a transformation puts the elements of a picture, as GridSample reads them."""
    graph, theta = call.graph, call.value(0)
    given = elements(call.value(1))
    stated = [one for one in given if isinstance(one, int)]
    if len(stated) < len(given):
        shape = call.declared(len(given))
        stated = [0, 0, *[size for size in shape[1:-1] if isinstance(size, int)]]
    dims = stated[2:]
    rank = theta.dims[1] or 2
    if len(dims) != rank:
        raise Refused("the size of the picture must be known; make it a constant")
    lines = []
    for size in dims:
        if call.flag("align_corners"):
            lines.append(np.linspace(-1, 1, size) if size > 1 else np.zeros(1))
        else:
            lines.append((2 * np.arange(size) + 1) / size - 1)
    grid = np.stack([*np.meshgrid(*lines, indexing="ij")[::-1], np.ones(dims)], -1).reshape(-1, rank + 1)
    homogeneous = np.ascontiguousarray(grid.T).astype(np.float32)
    found = transpose(graph, matmul(graph, theta, graph.constant(homogeneous[None])), (0, 2, 1))
    return reshape(graph, found, [theta.size(0), *dims, rank])


@lowers("GridSample")
def grid_sample(call: Call) -> Value:
    """Every element that has a weight is read, for all places at once."""
    graph, x, grid = call.graph, call.value(0), call.value(1)
    rank = x.rank - 2
    dims = [known_size(x, axis) for axis in range(2, x.rank)]
    batch, channels = known_size(x, 0), known_size(x, 1)
    align, padding = call.flag("align_corners"), call.string("padding_mode", "zeros")
    kind = {"bilinear": "linear", "bicubic": "cubic"}.get(call.string("mode", "linear"), call.string("mode", "linear"))
    count = math.prod(grid.shape[1:-1])
    flat = reshape(graph, grid, [batch, count, rank])
    where = []
    for axis, size in enumerate(dims):
        n = reshape(graph, slice_axis(graph, flat, 2, rank - 1 - axis, rank - axis), [batch, count])
        if align:
            n = graph.add("MUL", graph.add("ADD", n, 1.0), (size - 1) / 2)
        else:
            n = graph.add("SUB", graph.add("MUL", graph.add("ADD", n, 1.0), size / 2), 0.5)
        n = graph.add("ROUND", n) if kind == "nearest" else n
        where.append(_inside(call, n, size, padding, align))
    pictures = reshape(graph, channels_last(graph, x), [batch * math.prod(dims), channels])
    axes = [
        [_tap(call, place, weight, size, padding, align) for place, weight in _taps(call, n, kind)]
        for n, size in zip(where, dims, strict=True)
    ]
    total = _weighted(call, pictures, axes, dims, batch, count)
    return channels_first(graph, reshape(graph, total, [batch, *grid.shape[1:-1], channels]))


def _inside(call: Call, n: Value, size: int, padding: str, align: bool) -> Value:
    """Places beyond the ends brought back, as the padding says."""
    if padding == "border":
        return call.add("MINIMUM", call.add("MAXIMUM", n, 0.0), float(size - 1))
    return _reflected(call, n, size, align) if padding == "reflection" else n


def _reflected(call: Call, n: Value, size: int, align: bool) -> Value:
    low, high = (0.0, size - 1.0) if align else (-0.5, size - 0.5)
    if high <= low:
        return call.add("MUL", n, 0.0)
    turn = call.add("FLOOR_MOD", call.add("ABS", call.add("SUB", n, low)), 2 * (high - low))
    return call.add("ADD", call.add("MINIMUM", turn, call.add("SUB", 2 * (high - low), turn)), low)


def _taps(call: Call, n: Value, kind: str) -> list[tuple[Value, Value | None]]:
    """The elements of an axis next to each place, as floats, and their weights."""
    if kind == "nearest":
        return [(n, None)]
    first = call.add("FLOOR", n)
    rest = call.add("SUB", n, first)
    if kind == "linear":
        return [(first, call.add("SUB", 1.0, rest)), (call.add("ADD", first, 1.0), rest)]
    taps: list[tuple[Value, Value | None]] = []
    for shift in (-1, 0, 1, 2):
        distance = call.add("ABS", call.add("SUB", rest, float(shift)))
        far = shift in (-1, 2)
        a = CUBIC
        numbers = (a, -5 * a, 8 * a, -4 * a) if far else (a + 2, -(a + 3), 0.0, 1.0)
        weight = call.add("MUL", distance, numbers[0])
        for number in numbers[1:-1]:
            weight = call.add("MUL", call.add("ADD", weight, number), distance)
        weight = call.add("ADD", weight, numbers[-1])
        taps.append((call.add("ADD", first, float(shift)), weight))
    return taps


Tap = tuple[Value, "Value | None"]
"""An element of an axis next to each place, [batch, count], int32, and its weight."""


def _tap(call: Call, place: Value, weight: Value | None, size: int, padding: str, align: bool) -> Tap:
    """A whole place as an element that is there: for zeros beyond the ends it has no weight."""
    if padding == "zeros":
        within = call.add(
            "LOGICAL_AND", call.add("GREATER_EQUAL", place, 0.0), call.add("LESS_EQUAL", place, float(size - 1))
        )
        seen = cast(call.graph, within, T.FLOAT32)
        weight = seen if weight is None else call.add("MUL", weight, seen)
    elif padding == "reflection":
        place = _reflected(call, place, size, align)
    place = call.add("MINIMUM", call.add("MAXIMUM", place, 0.0), float(size - 1))
    return cast(call.graph, place, T.INT32), weight


def _weighted(
    call: Call, pictures: Value, axes: Sequence[Sequence[Tap]], dims: Sequence[int], batch: int, count: int
) -> Value:
    """[batch, count, channels]: the sum of the elements of pictures [batch * elements, channels] that taps of all axes
    name, times their weights."""
    first = (np.arange(batch, dtype=np.int32) * math.prod(dims))[:, None]
    total: Value | None = None
    for taps in itertools.product(*axes):
        number: Value = call.graph.constant(first)
        weight: Value | None = None
        for axis, (place, share) in enumerate(taps):
            step = math.prod(dims[axis + 1 :])
            number = call.add("ADD", number, call.add("MUL", place, step) if step != 1 else place)
            if share is not None:
                weight = share if weight is None else call.add("MUL", weight, share)
        seen = call.add("GATHER", pictures, number)
        if weight is not None:
            seen = call.add("MUL", seen, reshape(call.graph, weight, [batch, count, 1]))
        total = seen if total is None else call.add("ADD", total, seen)
    if total is None:
        raise Refused("reads nothing")
    return total


def sampled_bilinear(call: Call, pictures: Value, y: Value, x: Value) -> Value:
    """[batch, count, channels] of pictures [batch, height, width, channels] at places [batch, count], zero outside."""
    graph = call.graph
    batch, height, width, channels = pictures.shape
    flat = reshape(graph, pictures, [batch * height * width, channels])
    count = y.shape[1]
    axes = [
        [_tap(call, place, weight, size, "zeros", True) for place, weight in _taps(call, n, "linear")]
        for n, size in ((y, height), (x, width))
    ]
    return _weighted(call, flat, axes, [height, width], batch, count)


@lowers("RoiAlign")
def roi_align(call: Call) -> Value:
    """Parts of pictures in a fixed size: the mean, or the largest, of elements weighted by how near samples are."""
    graph, x, rois = call.graph, call.value(0), call.value(1)
    _, channels, height, width = x.shape
    rows, columns, ratio = call.int("output_height", 1), call.int("output_width", 1), call.int("sampling_ratio")
    if ratio <= 0:
        raise Refused("takes as many samples as boxes are large (sampling_ratio 0); give it a number")
    half = call.version >= 16 and call.string("coordinate_transformation_mode", "half_pixel") == "half_pixel"
    scale, count = call.float("spatial_scale", 1.0), known_size(rois, 0)
    numbers = cast(graph, call.value(2), T.INT32)
    corners = graph.add("SUB", graph.add("MUL", rois, scale), 0.5 if half else 0.0)
    x1, y1, x2, y2 = [slice_axis(graph, corners, 1, n, n + 1) for n in range(4)]
    spans = [graph.add("SUB", y2, y1), graph.add("SUB", x2, x1)]
    if not half:
        spans = [graph.add("MAXIMUM", span, 1.0) for span in spans]
    taps = []
    for begin, span, bins, size in zip((y1, x1), spans, (rows, columns), (height, width), strict=True):
        steps = (np.arange(bins * ratio) + 0.5) / (bins * ratio)
        place = graph.add("ADD", begin, graph.add("MUL", span, steps[None].astype(np.float32)))
        near = graph.add(
            "LOGICAL_AND", graph.add("GREATER_EQUAL", place, -1.0), graph.add("LESS_EQUAL", place, float(size))
        )
        place = graph.add("MINIMUM", graph.add("MAXIMUM", place, 0.0), float(size - 1))
        first = graph.add("FLOOR", place)
        rest = graph.add("SUB", place, first)
        seen = cast(graph, near, T.FLOAT32)
        second = graph.add("MINIMUM", graph.add("ADD", first, 1.0), float(size - 1))
        taps.append(
            [
                (cast(graph, first, T.INT32), graph.add("MUL", graph.add("SUB", 1.0, rest), seen)),
                (cast(graph, second, T.INT32), graph.add("MUL", rest, seen)),
            ]
        )
    tall, wide = rows * ratio, columns * ratio
    flat = reshape(graph, channels_last(graph, x), [x.shape[0] * height * width, channels])
    base = graph.add("MUL", reshape(graph, numbers, [count, 1, 1]), height * width)
    parts = []
    for (row, row_weight), (column, column_weight) in itertools.product(*taps):
        line = graph.add("ADD", base, graph.add("MUL", reshape(graph, row, [count, tall, 1]), width))
        values = graph.add("GATHER", flat, graph.add("ADD", line, reshape(graph, column, [count, 1, wide])))
        weight = graph.add(
            "MUL", reshape(graph, row_weight, [count, tall, 1]), reshape(graph, column_weight, [count, 1, wide])
        )
        parts.append(graph.add("MUL", values, reshape(graph, weight, [count, tall, wide, 1])))
    is_max = call.string("mode", "avg") == "max"
    total = parts[0]
    for part in parts[1:]:
        total = graph.add("MAXIMUM" if is_max else "ADD", total, part)
    options: dict[str, Any] = {
        "filter_height": ratio,
        "filter_width": ratio,
        "stride_h": ratio,
        "stride_w": ratio,
        "padding": Padding.VALID,
    }
    return channels_first(graph, graph.add("MAX_POOL_2D" if is_max else "AVERAGE_POOL_2D", total, **options))


@lowers("NonMaxSuppression")
def non_max_suppression(call: Call) -> Value:
    """NON_MAX_SUPPRESSION_V4 for each picture and class; rows of picture, class and box."""
    graph, boxes, scores = call.graph, call.value(0), call.value(1)
    batch, classes, count = known_size(boxes, 0), known_size(scores, 1), known_size(boxes, 1)
    most = call.optional(2)
    if most is None:
        return graph.constant(np.zeros((0, 3), np.int64))
    limit = reshape(graph, cast(graph, graph.add("MINIMUM", most, call.scalar(count, most)), T.INT32), [])
    thresholds = []
    for position, default in ((3, 0.0), (4, float(np.finfo(np.float32).min))):
        given = call.optional(position)
        thresholds.append(graph.constant(default) if given is None else reshape(graph, given, []))
    beyond = np.nextafter(np.float32(1), np.float32(2))  # TFLite drops at the threshold, ONNX above it
    thresholds[0] = graph.add("MUL", thresholds[0], beyond)
    if call.flag("center_point_box"):
        places, spans = slice_axis(graph, boxes, 2, 0, 2), graph.add("MUL", slice_axis(graph, boxes, 2, 2, 4), 0.5)
        boxes = graph.add("CONCATENATION", graph.add("SUB", places, spans), graph.add("ADD", places, spans), axis=2)
    found = []
    for picture in range(batch):
        own = reshape(graph, slice_axis(graph, boxes, 0, picture, picture + 1), [count, 4])
        for kind in range(classes):
            mine = slice_axis(graph, slice_axis(graph, scores, 0, picture, picture + 1), 1, kind, kind + 1)
            found.append(_suppressed(call, own, reshape(graph, mine, [count]), limit, thresholds, picture, kind))
    rows = found[0] if len(found) == 1 else graph.add("CONCATENATION", *found, axis=0)
    return cast(graph, rows, T.INT64)


def _suppressed(
    call: Call, boxes: Value, scores: Value, limit: Value, thresholds: Sequence[Value], picture: int, kind: int
) -> Value:
    graph = call.graph
    most = None if limit.data is None else int(limit.data)
    room: int | Size = open_size() if most is None else most
    indices, number = graph.add_many(
        "NON_MAX_SUPPRESSION_V4", [boxes, scores, limit, *thresholds], 2, types=[T.INT32, T.INT32], shapes=[(room,), ()]
    )
    ends = reshape(graph, number, [1])
    kept = graph.add(
        "STRIDED_SLICE", indices, np.array([0], np.int32), ends, np.array([1], np.int32), shape=(open_size(),)
    )
    column = reshape(graph, kept, [kept.size(0), 1])
    same = graph.add("MUL", column, 0)
    return graph.add("CONCATENATION", graph.add("ADD", same, picture), graph.add("ADD", same, kind), column, axis=1)


@lowers("MaxRoiPool")
def max_roi_pool(call: Call) -> Value:
    """The largest element of each bin of each box: first over columns, then over rows."""
    graph, x, rois = call.graph, call.value(0), call.value(1)
    height, width = x.shape[2:]
    bins = call.ints("pooled_shape")
    count, scale = known_size(rois, 0), call.float("spatial_scale", 1.0)
    rounded = cast(graph, _half_up(call, graph.add("MUL", slice_axis(graph, rois, 1, 1, 5), scale)), T.FLOAT32)
    corners = [slice_axis(graph, rounded, 1, n, n + 1) for n in range(4)]
    masks = []
    for begin, end, number, size in (
        (corners[1], corners[3], bins[0], height),
        (corners[0], corners[2], bins[1], width),
    ):
        span = graph.add("MAXIMUM", graph.add("ADD", graph.add("SUB", end, begin), 1.0), 1.0)
        step = graph.add("MUL", span, 1 / number)
        lows, highs = [np.arange(n, n + number, dtype=np.float32)[None] for n in (0, 1)]
        low = graph.add("ADD", graph.add("FLOOR", graph.add("MUL", step, lows)), begin)
        high = graph.add("ADD", graph.add("CEIL", graph.add("MUL", step, highs)), begin)
        low, high = [reshape(graph, one, [count, number, 1]) for one in (low, high)]
        places = np.arange(size, dtype=np.float32)[None, None]
        masks.append(graph.add("LOGICAL_AND", graph.add("LESS_EQUAL", low, places), graph.add("LESS", places, high)))
    numbers = cast(graph, reshape(graph, slice_axis(graph, rois, 1, 0, 1), [count]), T.INT32)
    own = graph.add("GATHER", x, numbers)
    lowest = np.array(np.finfo(np.float32).min, np.float32)
    columns = []
    for n in range(bins[1]):
        mask = reshape(graph, slice_axis(graph, masks[1], 1, n, n + 1), [count, 1, 1, width])
        columns.append(graph.add("REDUCE_MAX", graph.add("SELECT_V2", mask, own, lowest), np.array([3], np.int32)))
    seen = graph.add("PACK", *columns, values_count=len(columns), axis=3)  # [count, channels, height, columns]
    rows = []
    for n in range(bins[0]):
        mask = reshape(graph, slice_axis(graph, masks[0], 1, n, n + 1), [count, 1, height, 1])
        rows.append(graph.add("REDUCE_MAX", graph.add("SELECT_V2", mask, seen, lowest), np.array([2], np.int32)))
    result = graph.add("PACK", *rows, values_count=len(rows), axis=2)
    empty = graph.add("EQUAL", result, lowest)
    return graph.add("SELECT_V2", empty, np.float32(0), result)


def _half_up(call: Call, x: Value) -> Value:
    return widened(call.graph, "FLOOR", call.add("ADD", x, 0.5))
