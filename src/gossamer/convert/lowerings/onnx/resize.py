"""Pictures at other sizes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from gossamer.arrays import NDArray
from gossamer.convert.blocks import resize as blocks
from gossamer.convert.blocks import special
from gossamer.convert.blocks.indexing import product, slice_axis
from gossamer.convert.blocks.moves import moved
from gossamer.convert.blocks.shapes import cast, channels_first, channels_last, reshape, transpose
from gossamer.convert.blocks.vectors import elements, int32, per_world, size_of
from gossamer.convert.graph import Refused, Size, Value
from gossamer.convert.lowerings.onnx import Call, axis_of, lowers
from gossamer.convert.lowerings.onnx.shapes import known_size
from gossamer.schema.enums import TensorType as T

Floats = NDArray[np.float64]

CUBIC = -0.75
"""The parameter of cubic kernels where nothing else is said."""


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
