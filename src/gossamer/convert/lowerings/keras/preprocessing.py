"""Layers that prepare features, and operations of ``keras.ops.image``: scaling, sizes, categories.

Pictures may come alone, [height, width, channels], or in batches. What hashes or tokenizes strings has no counterpart.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.convert.blocks import shapes
from gossamer.convert.blocks.indexing import one_hot, pad, strided_slice
from gossamer.convert.blocks.reductions import reduce
from gossamer.convert.blocks.resize import cubic_kernel, linear_kernel, mixed, resize_nhwc, weight_matrix
from gossamer.convert.graph import Graph, Refused, Value, refuse
from gossamer.convert.lowerings.keras import Call, Masked, floating, lowers
from gossamer.convert.lowerings.keras.normalization import along
from gossamer.schema.enums import TensorType


@lowers("Rescaling")
def rescaling(call: Call) -> Masked:
    graph, x = call.graph, floating(call.graph, call.x)
    scale, offset = [np.asarray(_numbers(call.config(key, 0.0)), np.float32) for key in ("scale", "offset")]
    if call.channels_first and scale.ndim:
        scale, offset = [value.reshape(-1, 1, 1) if value.ndim else value for value in (scale, offset)]
    scaled = graph.add("MUL", x, scale)
    return call.keeping_mask(scaled if not offset.any() else graph.add("ADD", scaled, offset))


def _numbers(value: Any) -> Any:
    """A number or a list, out of what a config may wrap it in."""
    while isinstance(value, dict):
        value = value.get("config", value).get("value") if "config" in value else value.get("value")
    return value


@lowers("Normalization")
def normalization(call: Call) -> Masked:
    """(x - mean) / deviation, or back; the deviation counts as 1e-7 at least."""
    graph, x = call.graph, floating(call.graph, call.x)
    axis = call.layer.config.get("axis", -1)
    axes = [] if axis is None else [int(n) % x.rank for n in (axis if isinstance(axis, list) else [axis])]
    mean, variance = [_statistic(call, name, x, sorted(axes)) for name in ("mean", "variance")]
    deviation = np.maximum(np.sqrt(variance), 1e-7)
    if call.config("invert"):
        return call.keeping_mask(graph.add("ADD", graph.add("MUL", x, _short(deviation)), _short(mean)))
    return call.keeping_mask(graph.add("DIV", graph.add("SUB", x, _short(mean)), _short(deviation)))


def _statistic(call: Call, name: str, x: Value, axes: Sequence[int]) -> NDArray[np.float64]:
    given = call.config(name)
    value = call.weight(name) if given is None else np.asarray(_numbers(given))
    shape = [x.dims[axis] if axis in axes else 1 for axis in range(x.rank)]
    if value.size == math.prod(size or 1 for size in shape):
        return value.astype(np.float64).reshape([size or 1 for size in shape])
    if axes:
        return along(np.broadcast_to(value, [x.dims[axis] or 1 for axis in axes]).astype(np.float64), axes, x.rank)
    return np.asarray(value, np.float64)


def _short(array: NDArray[np.float64]) -> NDArray[np.float32]:
    """In float32, without leading axes of one."""
    while array.ndim and array.shape[0] == 1:
        array = array[0]
    return array.astype(np.float32)


# -- pictures


def _in_batches(graph: Graph, x: Value, function: Callable[[Value], Value]) -> Value:
    """A function of batches, for a picture alone as well."""
    if x.rank == 4:
        return function(x)
    result = function(graph.add("EXPAND_DIMS", x, 0))
    return shapes.reshape(graph, result, shapes.sizes(result)[1:])


def _places(x: Value) -> tuple[int, int]:
    height, width = x.dims[1:3]
    if height is None or width is None:
        refuse("the size of the pictures is open; give it with --shape")
    return height, width


def resized(graph: Graph, x: Value, size: Sequence[int], how: str, *, antialias: bool = False) -> Value:
    """Pictures NHWC of another size, as `tf.image.resize` makes them."""
    if how == "nearest" or (how == "bilinear" and not antialias):
        return resize_nhwc(graph, x, np.array(size, np.int32), nearest=how == "nearest", half_pixel_centers=True)
    for axis, (old, new) in enumerate(zip(_places(x), size, strict=True), 1):
        x = mixed(graph, x, axis, _weights(old, int(new), how, antialias))
    return x


def _weights(old: int, new: int, how: str, antialias: bool) -> NDArray[Any]:
    """The weights of elements for each place of a resized axis."""
    positions: NDArray[np.float64] = (np.arange(new, dtype=np.float64) + 0.5) * (old / new) - 0.5
    if how == "bicubic" and not antialias:  # a table of 1024 steps is looked up
        whole = np.floor(positions)
        positions = np.asarray(whole + np.rint((positions - whole) * 1024) / 1024, np.float64)
    kernels: dict[str, tuple[Callable[[Any], Any], int]] = {
        "bilinear": (linear_kernel, 1),
        "bicubic": (cubic_kernel(-0.5), 2),
        "lanczos3": (_lanczos(3), 3),
        "lanczos5": (_lanczos(5), 5),
    }
    if how not in kernels:
        refuse(f"interpolation {how!r} is not known")
    kernel, reach = kernels[how]
    stretch = max(old / new, 1.0) if antialias else 1.0
    return weight_matrix(old, positions, kernel, reach, stretch=stretch, exclude_outside=True)


def _lanczos(reach: int) -> Callable[[Any], Any]:
    return lambda distance: np.where(np.abs(distance) < reach, np.sinc(distance) * np.sinc(distance / reach), 0)


@lowers("Resizing", "ops.Resize")
def resizing(call: Call) -> Value:
    graph, x = call.graph, call.x
    size = call.config("size")
    size = [int(n) for n in (size if size is not None else (call.config("height"), call.config("width")))]
    how, antialias = str(call.config("interpolation", "bilinear")), bool(call.config("antialias"))
    own = x.type
    x = floating(graph, x) if how != "nearest" else x

    def fitted(x: Value) -> Value:
        height, width = x.dims[1:3]
        if call.config("crop_to_aspect_ratio"):
            height, width = _places(x)
            high = max(min(height, int(width * size[0] / size[1])), 1)
            wide = max(min(width, int(height * size[1] / size[0])), 1)
            top, left = (height - high) // 2, (width - wide) // 2
            x = strided_slice(graph, x, [1, 2], [top, left], [top + high, left + wide], [1, 1])
        elif call.config("pad_to_aspect_ratio"):
            height, width = _places(x)
            high = max(height, int(width * size[0] / size[1]))
            wide = max(width, int(height * size[1] / size[0]))
            top, left = (high - height) // 2, (wide - width) // 2
            pairs = [(0, 0), (top, top), (left, left), (0, 0)]  # as Keras does, which may leave one too few
            x = pad(graph, x, pairs, "constant", float(call.config("fill_value", 0.0)))
        return resized(graph, x, size, how, antialias=antialias)

    result = call.places_last(x, lambda x: _in_batches(graph, x, fitted))
    return shapes.cast(graph, result, own) if call.layer.is_operation else floating(graph, result)


@lowers("CenterCrop")
def center_crop(call: Call) -> Value:
    """The middle; pictures that are too small are enlarged first, to fill it."""
    graph, x = call.graph, floating(call.graph, call.x)
    size = [int(call.config("height", 1)), int(call.config("width", 1))]

    def cropped(x: Value) -> Value:
        height, width = _places(x)
        if height >= size[0] and width >= size[1]:
            top, left = (height - size[0]) // 2, (width - size[1]) // 2
            return strided_slice(graph, x, [1, 2], [top, left], [top + size[0], left + size[1]], [1, 1])
        high = min(height, int(width * size[0] / size[1])) or 1
        wide = min(width, int(height * size[1] / size[0])) or 1
        top, left = (height - high) // 2, (width - wide) // 2
        x = strided_slice(graph, x, [1, 2], [top, left], [top + high, left + wide], [1, 1])
        return resized(graph, x, size, "bilinear")

    return call.places_last(x, lambda x: _in_batches(graph, x, cropped))


@lowers("ops.RGBToGrayscale")
def grayscale(call: Call) -> Value:
    """Luminance by ITU-R BT.601."""
    graph, x = call.graph, call.x
    weights = np.array([[0.2989, 0.587, 0.114]], np.float32)
    own = x.type

    def gray(x: Value) -> Value:
        return graph.add("FULLY_CONNECTED", x, weights, keep_num_dims=True)

    return shapes.cast(graph, call.places_last(floating(graph, x), gray), own)


# -- categories


def encoded(call: Call, x: Value, tokens: int, mode: str) -> Value:
    """Categories as they are, or which of them there are ("multi_hot"), how often ("count"), or each ("one_hot").

    Of samples, along the first dimension behind that of the samples, as Keras has it for any rank."""
    graph = call.graph
    if mode == "int":
        return x
    x = shapes.cast(graph, x, TensorType.INT32)
    if mode == "one_hot":
        if x.rank and x.dims[-1] == 1:
            x = shapes.reshape(graph, x, shapes.sizes(x)[:-1])
        return one_hot(graph, x, tokens, graph.constant(1.0), graph.constant(0.0))
    if mode not in ("multi_hot", "count"):
        refuse(f"output mode {mode!r} depends on statistics that cannot be converted")
    if x.rank == 0:
        x = graph.add("EXPAND_DIMS", x, 0)
    each = one_hot(graph, x, tokens, graph.constant(1.0), graph.constant(0.0))
    weights = call.argument(1, "count_weights")
    if mode == "count" and weights is not None:
        each = graph.add("MUL", each, graph.add("EXPAND_DIMS", floating(graph, graph.value(weights)), -1))
    return reduce(graph, "REDUCE_MAX" if mode == "multi_hot" else "SUM", each, [min(x.rank, 2) - 1])


@lowers("CategoryEncoding")
def category_encoding(call: Call) -> Value:
    return encoded(call, call.x, int(call.config("num_tokens", 1)), str(call.config("output_mode", "multi_hot")))


@lowers("Discretization")
def discretization(call: Call) -> Value:
    """How many boundaries are not above each number."""
    given = call.config("bin_boundaries")
    if given is None:
        refuse("its boundaries are not in the file; give them as bin_boundaries")
    boundaries = [float(one) for one in given]
    mode = str(call.config("output_mode", "int"))
    buckets = call.graph.add("BUCKETIZE", floating(call.graph, call.x), boundaries=np.array(boundaries, np.float32))
    return encoded(call, buckets, len(boundaries) + 1, mode)


@lowers("Hashing", "HashedCrossing", "TextVectorization", "FeatureSpace")
def strings(call: Call) -> Value:
    raise Refused("takes strings apart or hashes them, which no operator does; do it before the model")


@lowers("MelSpectrogram", "STFTSpectrogram")
def spectrogram(call: Call) -> Value:
    raise Refused("spectrograms are not converted; compute them before the model")
