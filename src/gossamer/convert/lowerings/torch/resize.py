"""Pictures of other sizes, and sampled at any places."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gossamer.convert.blocks import resize
from gossamer.convert.blocks.indexing import gather, vector
from gossamer.convert.blocks.shapes import cast, channels_first, channels_last, reshape, transpose
from gossamer.convert.graph import Value, refuse
from gossamer.convert.lowerings.torch import Call, Number, lowers
from gossamer.schema.enums import TensorType

_NAMES = [
    f"aten.{name}"
    for name in (
        "upsample_nearest1d",
        "upsample_nearest2d",
        "upsample_nearest3d",
        "_upsample_nearest_exact1d",
        "_upsample_nearest_exact2d",
        "_upsample_nearest_exact3d",
        "upsample_linear1d",
        "upsample_bilinear2d",
        "upsample_trilinear3d",
        "upsample_bicubic2d",
        "_upsample_bilinear2d_aa",
        "_upsample_bicubic2d_aa",
    )
]


@lowers(*_NAMES)
def upsample(
    call: Call,
    self: Value | None = None,
    output_size: Sequence[Number] | None = None,
    align_corners: bool = False,
    scale_factors: Sequence[float] | None = None,
    scales: float | None = None,
    scales_d: float | None = None,
    scales_h: float | None = None,
    scales_w: float | None = None,
    input: Value | None = None,
) -> Value:
    """TFLite's operators where sizes decide the positions; else elements or weighted sums of known positions.

    Factors that are given decide them instead of the sizes, which are rounded down.
    """
    x = self if self is not None else input
    if x is None:
        refuse("resizes nothing")
    rank = x.rank - 2
    given = scale_factors or {1: [scales], 2: [scales_h, scales_w], 3: [scales_d, scales_h, scales_w]}[rank]
    factors = list(given) if any(one is not None for one in given) else [None] * rank
    name = call.packet
    nearest, cubic, smooth = "nearest" in name, "cubic" in name, name.endswith("_aa")
    plain_ = not cubic and not smooth and rank < 3
    dims, new = x.dims[2:], call.result.shape[2:]
    if align_corners or all(
        factor is None
        or (isinstance(size, int) and isinstance(wanted, int) and wanted == size * factor)
        or (size is None and factor == int(factor))
        for size, wanted, factor in zip(dims, new, factors, strict=True)
    ):
        factors = [None] * rank
        if plain_:
            return _builtin(call, x, output_size, given, nearest, align_corners)
    y = x
    for axis, (size, wanted, factor) in enumerate(zip(dims, new, factors, strict=True), 2):
        if size is None or not isinstance(wanted, int):
            refuse("resizes an open size in a way that only known ones can be; give it with --shape")
        places = np.arange(wanted, dtype=np.float64)
        step = size / wanted if factor is None else 1 / float(factor)
        if nearest:
            offset = 0.5 if "exact" in name else 0.0
            chosen = np.floor(np.float32(places + offset) * np.float32(step)).astype(int)
            y = resize.picked(call.graph, y, axis, [int(n) for n in np.minimum(chosen, size - 1)])
            continue
        if align_corners:
            step = (size - 1) / (wanted - 1) if wanted > 1 else 0.0
            positions = places * step
        else:
            positions = (places + 0.5) * step - 0.5
            positions = positions if cubic or smooth else np.maximum(positions, 0)
        if smooth:
            weights = _smoothed(size, wanted, step, cubic, align_corners)
        else:
            kernel = resize.cubic_kernel(-0.75) if cubic else resize.linear_kernel
            weights = resize.weight_matrix(size, positions, kernel, 2 if cubic else 1)
        y = resize.mixed(call.graph, y, axis, weights)
    return y


def _smoothed(size: int, wanted: int, step: float, cubic: bool, align_corners: bool) -> np.ndarray[Any, Any]:
    """Weights of torch's antialiasing: a kernel as wide as the step, cut at the ends; a = -0.5."""
    kernel = resize.cubic_kernel(-0.5) if cubic else resize.linear_kernel
    wide = max(step, 1.0)
    reach = (2 if cubic else 1) * wide
    matrix = np.zeros((wanted, size))
    for place in range(wanted):
        center = step * (place + 0.5)
        first, last = max(int(center - reach + 0.5), 0), min(int(center + reach + 0.5), size)
        weights = kernel((np.arange(first, last, dtype=np.float64) - center + 0.5) / wide)
        matrix[place, first:last] = weights / weights.sum()
    return matrix


def _builtin(
    call: Call, x: Value, output_size: Sequence[Number] | None, factors: Sequence[Any], nearest: bool, corners: bool
) -> Value:
    graph = call.graph
    flat = x.rank == 3
    y = reshape(graph, x, [x.size(0), x.size(1), 1, x.size(2)]) if flat else x
    wanted: list[Number] = list(output_size or [])
    if not wanted:
        for axis, factor in enumerate(factors, 2):
            known = call.result.shape[axis]
            if isinstance(known, int):
                wanted.append(known)
                continue
            whole = call.add("STRIDED_SLICE", call.add("SHAPE", x), [axis], [axis + 1], [1], shrink_axis_mask=1)
            number = call.add("MUL", cast(graph, whole, TensorType.FLOAT32), float(factor))
            wanted.append(cast(graph, call.add("FLOOR", number), TensorType.INT32))
    size = vector(graph, [one if isinstance(one, Value) else int(one) for one in ([1] * flat + wanted)])
    exact = "exact" in call.packet
    made = resize.resize_nhwc(
        graph,
        channels_last(graph, y),
        size,
        nearest=nearest,
        align_corners=corners,
        half_pixel_centers=exact if nearest else not corners,
    )
    made = channels_first(graph, made)
    return reshape(graph, made, [made.size(0), made.size(1), made.size(3)]) if flat else made


# -- sampled at any places


@lowers("aten.grid_sampler", "aten.grid_sampler_2d", "aten.grid_sampler_3d")
def grid_sample(
    call: Call, input: Value, grid: Value, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Value:
    """Weighted sums of the elements around each place; ``grid`` counts from -1 to 1, the last axis first."""
    graph = call.graph
    rank = input.rank - 2
    if interpolation_mode == 2:
        refuse("samples with cubic weights; bilinear and nearest can be converted")
    lengths = input.dims[2:]
    if any(size is None for size in lengths):
        refuse("samples pictures of open sizes; give them with --shape")
    pictures = reshape(
        graph, channels_last(graph, input), [input.size(0), math.prod(input.shapes[0][2:]), input.size(1)]
    )
    numbers = []
    for axis in range(rank):
        size = int(lengths[axis] or 0)
        g = call.add("GATHER", grid, np.array(rank - 1 - axis, np.int32), axis=grid.rank - 1)
        numbers.append(_bounded(call, _unnormalized(call, g, size, align_corners), size, padding_mode, align_corners))
    total: Value | None = None
    for corner in np.ndindex(*([1] * rank if interpolation_mode == 1 else [2] * rank)):
        index: Value | None = None
        weight: Value | None = None
        for axis, (number, side) in enumerate(zip(numbers, corner, strict=True)):
            size = int(lengths[axis] or 0)
            low = call.add("ROUND" if interpolation_mode == 1 else "FLOOR", number)
            place = call.add("ADD", low, float(side)) if side else low
            inside = call.add("MINIMUM", call.add("MAXIMUM", place, 0.0), float(size - 1))
            whole = cast(graph, inside, TensorType.INT32)
            index = whole if index is None else call.add("ADD", call.add("MUL", index, size), whole)
            share = None
            if interpolation_mode == 0:
                gap = call.add("SUB", number, low)
                share = gap if side else call.add("SUB", 1.0, gap)
            if padding_mode == 0:
                seen = cast(graph, call.add("EQUAL", place, inside), TensorType.FLOAT32)
                share = seen if share is None else call.add("MUL", share, seen)
            if share is not None:
                weight = share if weight is None else call.add("MUL", weight, share)
        if index is None:
            continue
        found = gather(graph, pictures, index, 1, 1)
        if weight is not None:
            found = call.add("MUL", found, call.add("EXPAND_DIMS", weight, np.array(weight.rank, np.int32)))
        total = found if total is None else call.add("ADD", total, found)
    if total is None:
        refuse("samples nothing")
    return transpose(graph, total, [0, total.rank - 1, *range(1, total.rank - 1)])


def _unnormalized(call: Call, g: Value, size: int, align_corners: bool) -> Value:
    if align_corners:
        return call.add("MUL", call.add("ADD", g, 1.0), (size - 1) / 2)
    return call.add("SUB", call.add("MUL", call.add("ADD", g, 1.0), size / 2), 0.5)


def _bounded(call: Call, x: Value, size: int, padding_mode: int, align_corners: bool) -> Value:
    if padding_mode == 0:
        return x
    if padding_mode == 2:
        low, span = (0.0, float(size - 1)) if align_corners else (-0.5, float(size))
        if span == 0:
            return call.add("MUL", x, 0.0)
        away = call.add("ABS", call.add("SUB", x, low))
        turn = call.add("FLOOR_MOD", away, 2 * span)
        x = call.add("ADD", call.add("MINIMUM", turn, call.add("SUB", 2 * span, turn)), low)
    return call.add("MINIMUM", call.add("MAXIMUM", x, 0.0), float(size - 1))


@lowers("aten.affine_grid_generator")
def affine_grid(call: Call, theta: Value, size: Sequence[Number], align_corners: bool) -> Value:
    spans = [int(one) for one in size[2:] if not isinstance(one, Value)]
    if len(spans) < len(size) - 2:
        refuse("a grid of open sizes; give them with --shape")
    axes = []
    for span in spans:
        line = np.linspace(-1, 1, span) if span > 1 else np.zeros(1)
        axes.append(line if align_corners else line * (span - 1) / span)
    places = np.stack([*np.meshgrid(*axes, indexing="ij")[::-1], np.ones(spans)], -1).reshape(-1, len(spans) + 1)
    made = call.add("BATCH_MATMUL", places[None].astype(np.float32), theta, adj_y=True)
    return reshape(call.graph, made, [theta.size(0), *spans, len(spans)])
