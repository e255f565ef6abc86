"""Pools. A pool of volumes is one of pictures, then one along the depth: the windows are boxes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.convert.blocks.convolution import same_pads
from gossamer.convert.blocks.elementwise import widened
from gossamer.convert.blocks.indexing import product
from gossamer.convert.blocks.pooling import max_positions
from gossamer.convert.blocks.shapes import cast, reshape, sizes
from gossamer.convert.graph import Graph, Value, refuse
from gossamer.convert.lowerings.tensorflow import Call, lowers
from gossamer.convert.lowerings.tensorflow.convolution import in_layout, layout, spatial, with_padding
from gossamer.schema.enums import Padding, TensorType

T = TensorType

POOLS = {
    "MaxPool": "MAX_POOL_2D",
    "MaxPoolV2": "MAX_POOL_2D",
    "MaxPool3D": "MAX_POOL_2D",
    "AvgPool": "AVERAGE_POOL_2D",
    "AvgPool3D": "AVERAGE_POOL_2D",
}


@lowers("MaxPool", "AvgPool")
def pool(call: Call) -> Value:
    x, window = call.value(0), call.attributes.ints("ksize")
    channels = layout(call).index("C")
    if window[channels] != 1:
        return _of_channels(call, x, window, call.attributes.ints("strides"), channels)
    return in_layout(call, x, lambda x: _pooled(call, x, spatial(call, "ksize"), spatial(call, "strides")))


@lowers("MaxPoolV2")
def max_pool_v2(call: Call) -> Value:
    """As MaxPool, with window and strides as inputs."""
    window, strides = ([int(n) for n in call.constant(p, "window and strides")] for p in (1, 2))
    names = layout(call)
    space = [n for n, letter in enumerate(names) if letter in "HW"]
    return in_layout(
        call, call.value(0), lambda x: _pooled(call, x, [window[n] for n in space], [strides[n] for n in space])
    )


def _pooled(call: Call, x: Value, window: Sequence[int], strides: Sequence[int]) -> Value:
    op = POOLS[call.op]
    fill = None
    if op == "MAX_POOL_2D" and call.attributes.text("padding") == "EXPLICIT":
        fill = call.graph.constant(_lowest(x), x.type)
    x, padding = with_padding(call, x, fill)
    return pooled(call.graph, op, x, window, strides, padding)


def _lowest(x: Value) -> NDArray[Any]:
    """What is less than all elements."""
    if np.issubdtype(x.dtype, np.integer):
        return np.array(np.iinfo(x.dtype).min, x.dtype)
    return np.array(-np.inf).astype(x.dtype)


def pooled(graph: Graph, op: str, x: Value, window: Sequence[int], strides: Sequence[int], padding: Padding) -> Value:
    """A pool of pictures NHWC. Elements that are no floats are numbers, not quantized ones."""
    options: dict[str, Any] = {
        "filter_height": window[0],
        "filter_width": window[1],
        "stride_h": strides[0],
        "stride_w": strides[1],
        "padding": padding,
    }
    if x.type == T.FLOAT32:
        return graph.add(op, x, **options)
    if op == "MAX_POOL_2D" and x.type in (T.INT8, T.UINT8, T.INT16) and not x.quantization:
        return cast(graph, graph.add(op, cast(graph, x, T.FLOAT32), **options), x.type)
    return widened(graph, op, x, **options)


@lowers("MaxPoolWithArgmax")
def max_pool_with_argmax(call: Call) -> list[Value]:
    """Maxima of windows, and where each is: its number in the example that is laid out flat, or with
    ``include_batch_in_index`` in the whole value. Of several the first."""
    graph, x = call.graph, cast(call.graph, call.value(0), T.FLOAT32)
    window, strides = spatial(call, "ksize"), spatial(call, "strides")
    around = [(0, 0)] * 2
    if call.attributes.text("padding") == "SAME":
        sizes_ = zip(x.dims[1:3], window, strides, strict=True)
        around = [same_pads(size, taps, stride, 1) for size, taps, stride in sizes_]
    best, places = max_positions(graph, x, window, strides, around, (1, 1))
    channels = x.shape[3]
    numbers = graph.add("MUL", places, np.array(channels, np.int32))
    numbers = graph.add("ADD", numbers, np.arange(channels, dtype=np.int32))
    if call.attributes.bool("include_batch_in_index", False):
        example = np.arange(x.shape[0], dtype=np.int32).reshape(-1, 1, 1, 1) * math.prod(x.shape[1:])
        numbers = graph.add("ADD", numbers, example.astype(np.int32))
    return [cast(graph, best, call.value(0).type), cast(graph, numbers, call.attributes.type("Targmax", T.INT64))]


def _of_channels(call: Call, x: Value, window: Sequence[int], strides: Sequence[int], axis: int) -> Value:
    """A maximum over groups of channels that do not overlap, which is all that TensorFlow can."""
    size = window[axis]
    if call.op != "MaxPool" or any(n != 1 for k, n in enumerate(window) if k != axis) or strides[axis] != size:
        refuse(f"a pool with the window {list(window)} and the strides {list(strides)}: only pictures are pooled")
    shape = sizes(x)
    groups = reshape(call.graph, x, [*shape[:axis], x.shape[axis] // size, size, *shape[axis + 1 :]])
    return call.add("REDUCE_MAX", groups, [axis + 1])


@lowers("MaxPool3D", "AvgPool3D")
def pool_3d(call: Call) -> Value:
    window, strides = spatial(call, "ksize"), spatial(call, "strides")
    padding = Padding[call.attributes.text("padding")]
    return in_layout(call, call.value(0), lambda x: pooled_3d(call.graph, POOLS[call.op], x, window, strides, padding))


def pooled_3d(
    graph: Graph, op: str, x: Value, window: Sequence[int], strides: Sequence[int], padding: Padding
) -> Value:
    """A pool of volumes NDHWC."""
    batch, depth = x.size(0), x.size(1)
    pictures = reshape(graph, x, [product([batch, depth]), *sizes(x)[2:]])
    flat = pooled(graph, op, pictures, window[1:], strides[1:], padding)
    _, height, width, channels = sizes(flat)
    deep = reshape(graph, flat, [batch, depth, product([height, width]), channels])
    if window[0] > 1 or strides[0] > 1:
        deep = pooled(graph, op, deep, [window[0], 1], [strides[0], 1], padding)
    return reshape(graph, deep, [batch, deep.size(1), height, width, channels])


@lowers("FractionalMaxPool", "FractionalAvgPool")
def fractional(call: Call) -> Value:
    refuse("its windows are drawn by chance, which no operator of TFLite does; use a pool with fixed windows")
