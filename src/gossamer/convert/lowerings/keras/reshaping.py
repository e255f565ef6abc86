"""Layers that move elements or repeat them, and resize pictures."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gossamer.convert.blocks import shapes
from gossamer.convert.blocks.indexing import pad, product, repeat_each, strided_slice
from gossamer.convert.blocks.resize import resize_nhwc
from gossamer.convert.graph import Graph, Size, Value, refuse
from gossamer.convert.lowerings.keras import Call, floating, lowers, pair
from gossamer.convert.lowerings.keras.preprocessing import resized


@lowers("Reshape")
def reshape(call: Call) -> Value:
    target = [int(size) for size in call.layer.config.get("target_shape", ())]
    return with_batch(call.graph, call.x, target)


def with_batch(graph: Graph, x: Value, target: list[int]) -> Value:
    """The samples of x in another shape, of which one size may be -1."""
    sizes: list[int | Size] = [x.size(0), *target]
    if -1 in target:
        rest, others = product(shapes.sizes(x)[1:]), math.prod(size for size in target if size != -1)
        if isinstance(rest, Size):
            sizes[1 + target.index(-1)] = Size(tuple([one // max(others, 1) for one in rest.worlds]))
        else:
            sizes[1 + target.index(-1)] = rest // max(others, 1)
    return shapes.reshape(graph, x, sizes)


@lowers("Flatten")
def flatten(call: Call) -> Value:
    graph, x = call.graph, call.x
    if call.channels_first and x.rank > 2:
        x = shapes.transpose(graph, x, [0, *range(2, x.rank), 1])
    return shapes.reshape(graph, x, [x.size(0), product(shapes.sizes(x)[1:])])


@lowers("Permute")
def permute(call: Call) -> Value:
    return shapes.transpose(call.graph, call.x, [0, *[int(axis) for axis in call.config("dims", ())]])


@lowers("RepeatVector")
def repeat_vector(call: Call) -> Value:
    graph, x, count = call.graph, call.x, int(call.config("n", 1))
    return graph.add("TILE", graph.add("EXPAND_DIMS", x, 1), np.array([1, count, 1], np.int32))


def _pairs(value: Any, rank: int) -> list[tuple[int, int]]:
    """Numbers before and after each place: one for all, one for each, or two for each."""
    if rank == 1 and isinstance(value, list) and len(value) == 2 and not isinstance(value[0], list):
        return [(int(value[0]), int(value[1]))]
    values = value if isinstance(value, list) else [value] * rank
    return [(int(v[0]), int(v[1])) if isinstance(v, list) else (int(v), int(v)) for v in values]


def _first_place(call: Call) -> int:
    return 2 if call.channels_first else 1


@lowers("ZeroPadding1D", "ZeroPadding2D", "ZeroPadding3D")
def zero_padding(call: Call) -> Value:
    x, first = call.x, _first_place(call)
    places = _pairs(call.config("padding", 1), x.rank - 2)
    paddings = [(0, 0)] * x.rank
    paddings[first : first + len(places)] = places
    return pad(call.graph, x, paddings)


@lowers("Cropping1D", "Cropping2D", "Cropping3D")
def cropping(call: Call) -> Value:
    x, first = call.x, _first_place(call)
    places = _pairs(call.config("cropping", 1), x.rank - 2)
    axes = list(range(first, first + len(places)))
    ends = [-after if after else None for _, after in places]
    return strided_slice(call.graph, x, axes, [before for before, _ in places], ends, [1] * len(axes))


@lowers("UpSampling1D")
def up_sampling_1d(call: Call) -> Value:
    return repeat_each(call.graph, call.x, int(call.config("size", 2)), 1)


@lowers("UpSampling2D")
def up_sampling_2d(call: Call) -> Value:
    graph, factors = call.graph, pair(call.config("size", 2), 2)
    how = call.config("interpolation", "nearest")

    def enlarged(x: Value) -> Value:
        sizes = [product([x.size(axis), factor]) for axis, factor in zip((1, 2), factors, strict=True)]
        known = [size for size in sizes if isinstance(size, int)]
        if len(known) == 2:
            return resized(graph, x, known, how)
        if how not in ("nearest", "bilinear"):
            refuse(f"interpolation {how!r} of pictures whose size is open; give it with --shape")
        places = graph.add("STRIDED_SLICE", graph.add("SHAPE", x), [1], [3], [1])
        size = graph.add("MUL", places, np.array(factors, np.int32))
        return resize_nhwc(graph, x, size, nearest=how == "nearest", half_pixel_centers=True)

    return call.places_last(floating(graph, call.x), enlarged)


@lowers("UpSampling3D")
def up_sampling_3d(call: Call) -> Value:
    graph, x = call.graph, call.x
    for axis, factor in enumerate(pair(call.config("size", 2), 3), _first_place(call)):
        x = repeat_each(graph, x, factor, axis)
    return x
