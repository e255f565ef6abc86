"""Pictures at other sizes, read at places between elements, and boxes in them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.convert.blocks import resize as blocks
from gossamer.convert.blocks import special
from gossamer.convert.blocks.elementwise import widened
from gossamer.convert.blocks.indexing import product, slice_axis
from gossamer.convert.blocks.moves import moved
from gossamer.convert.blocks.products import matmul
from gossamer.convert.blocks.shapes import cast, channels_first, channels_last, reshape, transpose
from gossamer.convert.blocks.vectors import elements, int32, open_size, per_world, size_of
from gossamer.convert.graph import Refused, Size, Value
from gossamer.convert.lowerings.onnx import Call, axis_of, lowers
from gossamer.convert.lowerings.onnx.shapes import known_size
from gossamer.schema.enums import Padding
from gossamer.schema.enums import TensorType as T

Floats = NDArray[np.float64]

CUBIC = -0.75
"""The parameter of cubic kernels where nothing else is said."""


# -- other sizes


@lowers("Resize", "Upsample")
def resize(call: Call) -> Value:
    """An operator of TFLite where it reads the same elements with the same weights; else the elements, or sums of them
    with weights, axis by axis."""
    x = call.value(0)
    axes = [axis_of(axis, x.rank) for axis in call.ints("axes", range(x.rank))]
    late = _late_scales(call)
    if late is not None:
        return _resized_late(call, x, axes, late)
    scales, sizes = _targets(call, x, axes)
    regions = _regions(call, axes)
    changed = [
        axis
        for axis in range(x.rank)
        if sizes[axis] != x.size(axis) or scales[axis] != 1 or regions[axis] != (0.0, 1.0)
    ]
    if not changed:
        return x
    found = _as_operator(call, x, changed, scales, sizes, regions)
    if found is not None:
        return found
    for axis in changed:
        x = _along(call, x, axis, scales[axis], sizes[axis], regions[axis])
    return x


def _late_scales(call: Call) -> Value | None:
    """Scales that only values tell."""
    place = 1 if call.op == "Upsample" or call.version < 11 else 2
    if call.op == "Upsample" and call.version < 9:
        return None
    value = call.optional(place)
    return None if value is None or value.known is not None or 0 in value.dims else value


def _resized_late(call: Call, x: Value, axes: Sequence[int], scales: Value) -> Value:
    """Axis by axis: where its elements lie is computed, how many there are the model states."""
    stated = call.declared(x.rank)
    for place, axis in enumerate(axes):
        size, new = known_size(x, axis), stated[axis]
        if not isinstance(new, int):
            raise Refused("the shape of its result must be stated, or its scales must be a constant")
        if size == 1 and new == 1:
            continue
        scale = call.add("STRIDED_SLICE", scales, [place], [place + 1], [1], shrink_axis_mask=1)
        where = _late_positions(call, size, scale, new)
        kind = call.string("mode", "nearest")
        x = _picked_late(call, x, axis, where) if kind == "nearest" else _mixed_late(call, x, axis, where, scale, kind)
    return x


def _late_positions(call: Call, size: int, scale: Value, count: int) -> Value:
    """As `positions`, computed: float32."""
    mode = _transformation(call)
    y = np.arange(count, dtype=np.float32)
    exact = call.add("MUL", scale, float(size))
    if mode == "align_corners":
        return call.add("DIV", y * np.float32(size - 1), call.add("MAXIMUM", call.add("SUB", exact, 1.0), 1e-6))
    if mode == "asymmetric":
        return call.add("DIV", y, scale)
    if mode == "tf_crop_and_resize":
        raise Refused("crops by scales that are computed; make them a constant")
    where = call.add("SUB", call.add("DIV", y + np.float32(0.5), scale), 0.5)
    if mode == "pytorch_half_pixel" and count == 1:
        return call.graph.constant(np.array([-0.5], np.float32))
    if mode == "half_pixel_symmetric":
        shift = call.add("SUB", 1.0, call.add("DIV", float(count), exact))
        return call.add("ADD", where, call.add("MUL", shift, size / 2))
    return where


def _picked_late(call: Call, x: Value, axis: int, where: Value) -> Value:
    rule = _nearest_mode(call)
    if rule == "round_prefer_floor":
        where = call.add("SUB", where, 0.5)
    elif rule == "round_prefer_ceil":
        where = call.add("ADD", where, 0.5)
    whole = call.add("CEIL" if rule in ("ceil", "round_prefer_floor") else "FLOOR", where)
    whole = call.add("MINIMUM", call.add("MAXIMUM", whole, 0.0), float(known_size(x, axis) - 1))
    return moved(call.graph, "GATHER", x, cast(call.graph, whole, T.INT32), axis=axis)


def _mixed_late(call: Call, x: Value, axis: int, where: Value, scale: Value, kind: str) -> Value:
    """A product with weights that are computed as `gossamer.convert.blocks.resize.weight_matrix` has them."""
    graph, size, new = call.graph, known_size(x, axis), where.shape[0]
    reach, antialias = 1 if kind == "linear" else 2, call.flag("antialias")
    room = math.ceil(reach * max(size / new, 1.0) if antialias else reach) + 2
    taps = np.arange(-room, size + room, dtype=np.float32)[None]
    d = graph.add("ABS", graph.add("SUB", taps, reshape(graph, where, [new, 1])))
    if antialias:
        d = graph.add("MUL", d, graph.add("MINIMUM", scale, 1.0))
    if kind == "linear":
        weights = graph.add("RELU", graph.add("SUB", 1.0, d))
    else:
        a = call.float("cubic_coeff_a", CUBIC)
        far = special.polynomial(graph, d, (-4 * a, 8 * a, -5 * a, a))
        near = special.polynomial(graph, d, (1.0, 0.0, -(a + 3), a + 2))
        far = graph.add("SELECT_V2", graph.add("LESS", d, 2.0), far, 0.0)
        weights = graph.add("SELECT_V2", graph.add("LESS_EQUAL", d, 1.0), near, far)
    last = np.array([1], np.int32)
    if call.flag("exclude_outside"):
        weights = slice_axis(graph, weights, 1, room, room + size)
    else:
        ends = [slice_axis(graph, weights, 1, 0, room + 1), slice_axis(graph, weights, 1, size + room - 1, None)]
        first, final = [graph.add("SUM", end, last, keep_dims=True) for end in ends]
        inner = slice_axis(graph, weights, 1, room + 1, size + room - 1)
        weights = graph.add("CONCATENATION", first, inner, final, axis=1) if size > 1 else first
    if antialias or call.flag("exclude_outside") or size == 1:
        weights = graph.add("DIV", weights, graph.add("SUM", weights, last, keep_dims=True))
    order = [*[n for n in range(x.rank) if n != axis], axis]
    turned = transpose(graph, cast(graph, x, T.FLOAT32), order)
    lead = [turned.size(n) for n in range(x.rank - 1)]
    flat = reshape(graph, turned, [product(lead), size])
    result = reshape(graph, graph.add("FULLY_CONNECTED", flat, weights), [*lead, new], turned)
    return cast(graph, transpose(graph, result, list(np.argsort(order))), x.type)


def _targets(call: Call, x: Value, axes: Sequence[int]) -> tuple[list[float], list[int | Size]]:
    """By how much each axis grows, and its new size."""
    scales: list[float] = [1.0] * x.rank
    sizes: list[int | Size] = [x.size(axis) for axis in range(x.rank)]
    given_scales: list[float] | None = None
    given_sizes: list[int | Size] | None = None
    if call.op == "Upsample" and call.version < 9:
        given_scales = call.floats("scales")
    else:
        place = 1 if call.op == "Upsample" or call.version < 11 else 2
        value = call.optional(place)
        target = call.optional(3) if place == 2 else None
        if value is not None and 0 in value.dims:
            value = None
        if value is not None and value.data is not None:
            given_scales = [float(one) for one in value.data.reshape(-1)]
        elif value is not None or (target is not None and target.known is None):
            stated = call.declared(x.rank)
            given_sizes = [stated[axis] for axis in axes]
        elif target is not None:
            given_sizes = [one for one in elements(target) if isinstance(one, (int, Size))]
    if given_sizes is not None:
        ratios = [per_world(size)[0] / max(x.shapes[0][axis], 1) for axis, size in zip(axes, given_sizes, strict=True)]
        policy = call.string("keep_aspect_ratio_policy", "stretch")
        if policy != "stretch":
            one = min(ratios) if policy == "not_larger" else max(ratios)
            ratios = [one] * len(axes)
            given_sizes = [size_of([math.floor(one * shape[axis] + 0.5) for shape in x.shapes]) for axis in axes]
        for axis, ratio, size in zip(axes, ratios, given_sizes, strict=True):
            scales[axis], sizes[axis] = ratio, size
        return scales, sizes
    if given_scales is None:
        raise Refused("has neither scales nor sizes")
    for axis, scale in zip(axes, given_scales, strict=True):
        scales[axis] = scale
        sizes[axis] = size_of([math.floor(shape[axis] * scale) for shape in x.shapes])
    return scales, sizes


def _regions(call: Call, axes: Sequence[int]) -> list[tuple[float, float]]:
    """The part of each axis that is shown, for a mode that crops."""
    regions = [(0.0, 1.0)] * call.value(0).rank
    if _transformation(call) != "tf_crop_and_resize":
        return regions
    roi = [float(one) for one in call.constant(1, "roi").reshape(-1)]
    for place, axis in enumerate(axes):
        regions[axis] = (roi[place], roi[place + len(axes)])
    return regions


def _transformation(call: Call) -> str:
    if call.op == "Upsample" or call.version < 11:
        return "asymmetric"
    return call.string("coordinate_transformation_mode", "half_pixel")


def _nearest_mode(call: Call) -> str:
    if call.op == "Upsample" or call.version < 11:
        return "floor"
    return call.string("nearest_mode", "round_prefer_floor")


def positions(mode: str, size: int, scale: float, count: int, region: tuple[float, float] = (0.0, 1.0)) -> Floats:
    """Where in an axis of ``size`` the ``count`` elements of a resized one lie."""
    y = np.arange(count, dtype=np.float64)
    exact = scale * size
    if mode == "align_corners":
        return np.zeros(count) if exact == 1 else y * (size - 1) / (exact - 1)
    if mode == "asymmetric":
        return y / scale
    if mode == "tf_crop_and_resize":
        begin, end = region
        if exact == 1:
            return np.full(count, (end - begin) * (size - 1) / 2 + begin * (size - 1))
        return y * (end - begin) * (size - 1) / (exact - 1) + begin * (size - 1)
    if mode == "pytorch_half_pixel" and exact == 1:
        return np.full(count, -0.5)
    if mode in ("half_pixel", "pytorch_half_pixel"):
        return (y + 0.5) / scale - 0.5
    if mode == "half_pixel_symmetric":
        return size / 2 * (1 - count / exact) + (y + 0.5) / scale - 0.5
    raise Refused(f"coordinate_transformation_mode {mode!r} is not known")


def nearest(mode: str, where: Floats) -> Floats:
    """The elements next to these places."""
    if mode == "floor":
        return np.floor(where)
    if mode == "ceil":
        return np.ceil(where)
    return np.ceil(where - 0.5) if mode == "round_prefer_floor" else np.floor(where + 0.5)


_FLAGS = ((False, False), (False, True), (True, False))
"""align_corners and half_pixel_centers."""


def _as_operator(
    call: Call,
    x: Value,
    changed: Sequence[int],
    scales: Sequence[float],
    sizes: Sequence[int | Size],
    regions: Sequence[tuple[float, float]],
) -> Value | None:
    """RESIZE_NEAREST_NEIGHBOR or RESIZE_BILINEAR, if one means the same in all worlds."""
    kind = call.string("mode", "nearest")
    if x.rank != 4 or not set(changed) <= {2, 3} or call.flag("antialias") or kind not in ("nearest", "linear"):
        return None
    if call.flag("exclude_outside") or _transformation(call) == "tf_crop_and_resize":
        return None
    for flags in _FLAGS:
        if all(
            _same(call, kind, flags, shape[axis], scales[axis], per_world(sizes[axis])[world], regions[axis])
            for world, shape in enumerate(x.shapes)
            for axis in (2, 3)
        ):
            graph = call.graph
            y = channels_last(graph, x if kind == "nearest" else cast(graph, x, T.FLOAT32))
            size = _size_value(call, x, scales, sizes)
            y = blocks.resize_nhwc(
                graph, y, size, nearest=kind == "nearest", align_corners=flags[0], half_pixel_centers=flags[1]
            )
            return cast(graph, channels_first(graph, y), x.type)
    return None


def _same(
    call: Call,
    kind: str,
    flags: tuple[bool, bool],
    size: int,
    scale: float,
    count: int,
    region: tuple[float, float],
) -> bool:
    """Whether TFLite reads an axis at the same places."""
    align, half = flags
    y = np.arange(count, dtype=np.float64)
    step = (size - 1) / (count - 1) if align and count > 1 else size / max(count, 1)
    wanted = positions(_transformation(call), size, scale, count, region)
    theirs = (y + 0.5) * step - 0.5 if half else y * step
    if kind == "linear":
        first, second = [np.clip(one, 0, size - 1) for one in (wanted, theirs)]
        return bool(np.allclose(first, second, rtol=0, atol=1e-5 * max(size, 1)))
    theirs = np.floor((y + 0.5) * step) if half else np.floor(y * step + 0.5) if align else np.floor(y * step)
    places = [np.clip(one, 0, size - 1) for one in (nearest(_nearest_mode(call), wanted), theirs)]
    return bool((places[0] == places[1]).all())


def _size_value(call: Call, x: Value, scales: Sequence[float], sizes: Sequence[int | Size]) -> Value | list[int]:
    if all(isinstance(sizes[axis], int) for axis in (2, 3)):
        return [per_world(sizes[axis])[0] for axis in (2, 3)]
    graph = call.graph
    target = call.optional(3) if call.version >= 11 and call.op == "Resize" else None
    if target is not None and 0 not in target.dims:
        wanted = elements(target)
        axes = [axis_of(axis, x.rank) for axis in call.ints("axes", range(x.rank))]
        if target.known is not None and all(axis in axes for axis in (2, 3)) and len(wanted) == len(axes):
            return graph.add("GATHER", int32(graph, target), np.array([axes.index(axis) for axis in (2, 3)], np.int32))
    shape = cast(graph, graph.add("SHAPE", x, type=T.INT32), T.FLOAT32)
    places = graph.add("STRIDED_SLICE", shape, [2], [4], [1])
    grown = graph.add("MUL", places, np.array([scales[2], scales[3]], np.float32))
    return cast(graph, graph.add("FLOOR", grown), T.INT32)


def _along(call: Call, x: Value, axis: int, scale: float, new: int | Size, region: tuple[float, float]) -> Value:
    """One axis resized by the elements that it shows, or by weights."""
    size = known_size(x, axis)
    if not isinstance(new, int):
        raise Refused(
            "resizes to a size that is computed, in a way that TFLite has no operator for; make it a constant"
        )
    mode, kind = _transformation(call), call.string("mode", "nearest")
    where = positions(mode, size, scale, new, region)
    outside = (where < 0) | (where > size - 1) if mode == "tf_crop_and_resize" else np.zeros(new, bool)
    if kind == "nearest":
        places = np.clip(nearest(_nearest_mode(call), where), 0, size - 1).astype(np.int64)
        result = blocks.picked(call.graph, x, axis, places.tolist())
    else:
        kernel = blocks.linear_kernel if kind == "linear" else blocks.cubic_kernel(call.float("cubic_coeff_a", CUBIC))
        stretch = max(1 / scale, 1.0) if call.flag("antialias") else 1.0
        weights = blocks.weight_matrix(
            size,
            where,
            kernel,
            1 if kind == "linear" else 2,
            stretch=stretch,
            exclude_outside=call.flag("exclude_outside"),
        )
        result = blocks.mixed(call.graph, x, axis, weights)
    if not outside.any():
        return result
    mask = outside.reshape([-1 if n == axis else 1 for n in range(x.rank)])
    return call.add("SELECT_V2", mask, call.scalar(call.float("extrapolation_value"), result), result)


# -- places between elements


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
    axes = [_taps(call, n, kind) for n in where]
    total: Value | None = None
    for taps in itertools.product(*axes):
        seen = _read(call, pictures, [tap[0] for tap in taps], dims, batch, count, padding, align)
        weights = [tap[1] for tap in taps if tap[1] is not None]
        for weight in weights:
            seen = graph.add("MUL", seen, reshape(graph, weight, [batch, count, 1]))
        total = seen if total is None else graph.add("ADD", total, seen)
    if total is None:
        raise Refused("reads nothing")
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


def _read(
    call: Call,
    pictures: Value,
    places: Sequence[Value],
    dims: Sequence[int],
    batch: int,
    count: int,
    padding: str,
    align: bool,
) -> Value:
    """[batch, count, channels] of pictures [batch * elements, channels] at whole places [batch, count]."""
    number: Value | None = None
    seen: Value | None = None
    for place, size in zip(places, dims, strict=True):
        if padding == "zeros":
            within = call.add(
                "LOGICAL_AND", call.add("GREATER_EQUAL", place, 0.0), call.add("LESS_EQUAL", place, float(size - 1))
            )
            seen = within if seen is None else call.add("LOGICAL_AND", seen, within)
        elif padding == "reflection":
            place = _reflected(call, place, size, align)
        place = call.add("MINIMUM", call.add("MAXIMUM", place, 0.0), float(size - 1))
        whole = cast(call.graph, place, T.INT32)
        number = whole if number is None else call.add("ADD", call.add("MUL", number, size), whole)
    if number is None:
        raise Refused("has no places")
    first = (np.arange(batch, dtype=np.int32) * math.prod(dims))[:, None]
    values = call.add("GATHER", pictures, call.add("ADD", number, first) if batch > 1 else number)
    if seen is None:
        return values
    return call.add("MUL", values, reshape(call.graph, cast(call.graph, seen, T.FLOAT32), [batch, count, 1]))


def sampled_bilinear(call: Call, pictures: Value, y: Value, x: Value) -> Value:
    """[batch, count, channels] of pictures [batch, height, width, channels] at places [batch, count], zero outside."""
    graph = call.graph
    batch, height, width, channels = pictures.shape
    flat = reshape(graph, pictures, [batch * height * width, channels])
    count = y.shape[1]
    total: Value | None = None
    for row, column in itertools.product(_taps(call, y, "linear"), _taps(call, x, "linear")):
        seen = _read(call, flat, [row[0], column[0]], [height, width], batch, count, "zeros", True)
        for weight in (row[1], column[1]):
            if weight is not None:
                seen = graph.add("MUL", seen, reshape(graph, weight, [batch, count, 1]))
        total = seen if total is None else graph.add("ADD", total, seen)
    return pictures if total is None else total


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
