"""Pictures: other sizes, patches, colours. Values are NHWC.

A resize that TFLite has no operator for is linear in the pixels and the same for all columns and rows: a product with
a matrix along each axis, made here for sizes that are known.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from gossamer.arrays import NDArray
from gossamer.convert.blocks.moves import moved
from gossamer.convert.blocks.resize import cubic_kernel, linear_kernel, mixed, weight_matrix
from gossamer.convert.blocks.shapes import cast, reshape
from gossamer.convert.blocks.vectors import as_sizes, elements, int32
from gossamer.convert.graph import Graph, Value, refuse
from gossamer.convert.lowerings.tensorflow import Call, lowers
from gossamer.convert.lowerings.tensorflow.padding import padded
from gossamer.schema.enums import Padding, TensorType

T = TensorType
Matrix = NDArray[np.float64]


@lowers("ResizeBilinear", "ResizeNearestNeighbor")
def resize(call: Call) -> Value:
    graph, x, size = call.graph, call.value(0), int32(call.graph, call.value(1))
    op = "RESIZE_BILINEAR" if call.op == "ResizeBilinear" else "RESIZE_NEAREST_NEIGHBOR"
    if op == "RESIZE_BILINEAR":
        x = cast(graph, x, T.FLOAT32)
    return moved(
        graph,
        op,
        x,
        size,
        align_corners=call.attributes.bool("align_corners", False),
        half_pixel_centers=call.attributes.bool("half_pixel_centers", False),
        shape=[x.size(0), *as_sizes(elements(size)), x.size(3)],
    )


def resampled(call: Call, matrix: Callable[[int, int, int], Matrix]) -> Value:
    """A picture in the size that input 1 says; ``matrix`` gives that of an axis from its number, old and new size."""
    x = cast(call.graph, call.value(0), T.FLOAT32)
    for number, size in enumerate(call.constant(1, "the new size").tolist()):
        old = x.dims[number + 1]
        if old is None:
            refuse("the size of the picture is open; give it with --shape")
        x = mixed(call.graph, x, number + 1, matrix(number, old, size))
    return x


def _scale(old: int, new: int, align_corners: bool) -> np.float32:
    if align_corners and new > 1:
        return np.float32(old - 1) / np.float32(new - 1)
    return np.float32(old) / np.float32(new)


@lowers("ResizeBicubic")
def resize_bicubic(call: Call) -> Value:
    """Cubic convolution (Keys) with a = -0.5 around centres of pixels, -0.75 without; its weights are rounded to a
    table of 1024 places between two pixels. Pixels beyond the edge are those at the edge, with half_pixel_centers none.
    """
    align, half = (call.attributes.bool(name, False) for name in ("align_corners", "half_pixel_centers"))
    kernel = cubic_kernel(-0.5 if half else -0.75)

    def matrix(number: int, old: int, new: int) -> Matrix:
        scale, places = _scale(old, new, align), np.arange(new, dtype=np.float32)
        at = (places + np.float32(0.5)) * scale - np.float32(0.5) if half else places * scale
        base = np.floor(at)
        rounded = base + np.rint((at - base) * 1024) / 1024
        return weight_matrix(old, rounded.astype(np.float64), kernel, 2, exclude_outside=half)

    return resampled(call, matrix)


@lowers("ResizeArea")
def resize_area(call: Call) -> Value:
    """The mean of what each new pixel covers."""
    align = call.attributes.bool("align_corners", False)

    def matrix(number: int, old: int, new: int) -> Matrix:
        scale = float(_scale(old, new, align))
        made = np.zeros((new, old))
        for row in range(new):
            low, high = row * scale, (row + 1) * scale
            for place in range(math.floor(low), math.ceil(high)):
                made[row, min(max(place, 0), old - 1)] += (min(place + 1, high) - max(place, low)) / scale
        return made

    return resampled(call, matrix)


def _lanczos(radius: int) -> Callable[[NDArray[np.float64]], NDArray[np.float64]]:
    return lambda x: np.where(np.abs(x) <= radius, np.sinc(x) * np.sinc(x / radius), 0)


def _mitchell(x: NDArray[np.float64]) -> NDArray[np.float64]:
    x = np.abs(x)
    near = ((7 * x - 12) * x * x + 16 / 3) / 6
    return np.where(x < 1, near, np.where(x < 2, (((-7 / 3 * x + 12) * x - 20) * x + 32 / 3) / 6, 0))


KERNELS: dict[str, tuple[int, Callable[[NDArray[np.float64]], NDArray[np.float64]]]] = {
    "lanczos1": (1, _lanczos(1)),
    "lanczos3": (3, _lanczos(3)),
    "lanczos5": (5, _lanczos(5)),
    "gaussian": (2, lambda x: np.where(np.abs(x) < 1.5, np.exp(-x * x / (2 * 0.5**2)), 0)),
    "box": (1, lambda x: np.where(np.abs(x) < 0.5, 1, np.where(np.abs(x) == 0.5, 0.5, 0))),
    "triangle": (1, linear_kernel),
    "keyscubic": (2, cubic_kernel(-0.5)),
    "mitchellcubic": (2, _mitchell),
}
"""Filters of ScaleAndTranslate: how far each reaches at most, and the weight at a distance."""


@lowers("ScaleAndTranslate")
def scale_and_translate(call: Call) -> Value:
    """Pixel i is the mean around ``(i + 0.5 - translation) / scale`` by a filter, which ``antialias`` widens where the
    picture gets smaller."""
    scales, shifts = call.constant(2, "the scale"), call.constant(3, "the translation")
    radius, kernel = KERNELS[call.attributes.text("kernel_type", "lanczos3")]
    antialias = call.attributes.bool("antialias", True)

    def matrix(number: int, old: int, new: int) -> Matrix:
        inverse = 1 / float(scales[number])
        wide = max(inverse, 1.0) if antialias else 1.0
        at = (np.arange(new, dtype=np.float64) + 0.5) * inverse - inverse * float(shifts[number])
        made = weight_matrix(old, at - 0.5, kernel, radius, stretch=wide, exclude_outside=True)
        made[(at < 0) | (at > old)] = 0
        return made

    return resampled(call, matrix)


@lowers("ExtractImagePatches")
def extract_image_patches(call: Call) -> Value:
    """What lies under a window, along the channels: a convolution that takes each element once."""
    graph, x = call.graph, call.value(0)
    (kh, kw), (sh, sw), (rh, rw) = ([*call.attributes.ints(name)[1:3]] for name in ("ksizes", "strides", "rates"))
    _, height, width, channels = x.dims
    if channels is None:
        refuse("the number of channels is open; give it with --shape")
    if kh == kw == sh == sw and rh == rw == 1 and all(size is not None and size % kh == 0 for size in (height, width)):
        return moved(graph, "SPACE_TO_DEPTH", x, block_size=kh)
    count = kh * kw * channels
    found = graph.add(
        "CONV_2D",
        cast(graph, x, T.FLOAT32),
        np.eye(count, dtype=np.float32).reshape(count, kh, kw, channels),
        np.zeros(count, np.float32),
        padding=Padding[call.attributes.text("padding")],
        stride_h=sh,
        stride_w=sw,
        dilation_h_factor=rh,
        dilation_w_factor=rw,
    )
    return cast(graph, found, x.type)


@lowers("ExtractVolumePatches")
def extract_volume_patches(call: Call) -> Value:
    graph, x = call.graph, call.value(0)
    window, strides = (call.attributes.ints(name)[1:4] for name in ("ksizes", "strides"))
    channels = x.shape[4]
    count = math.prod(window) * channels
    found = graph.add(
        "CONV_3D",
        cast(graph, x, T.FLOAT32),
        np.eye(count, dtype=np.float32).reshape(*window, channels, count),
        np.zeros(count, np.float32),
        padding=Padding[call.attributes.text("padding")],
        stride_d=strides[0],
        stride_h=strides[1],
        stride_w=strides[2],
    )
    return cast(graph, found, x.type)


@lowers("Dilation2D")
def dilation_2d(call: Call) -> Value:
    """The maximum over a window of pixel plus filter, an element of the filter after the other; beyond the edge there
    is nothing."""
    graph = call.graph
    x, filters = (cast(graph, value, T.FLOAT32) for value in call.values(0, 2))
    strides, rates = (call.attributes.ints(name)[1:3] for name in ("strides", "rates"))
    same = call.attributes.text("padding") == "SAME"
    around, counts = np.zeros((4, 2), np.int32), []
    for axis in (0, 1):
        size, wide = x.dims[axis + 1], (filters.shape[axis] - 1) * rates[axis] + 1
        if size is None:
            refuse("the size of the picture is open; give it with --shape")
        count = -(-size // strides[axis]) if same else (size - wide) // strides[axis] + 1
        more = max((count - 1) * strides[axis] + wide - size, 0) if same else 0
        around[axis + 1] = more // 2, more - more // 2
        counts.append(count)
    x = padded(graph, x, graph.constant(around), graph.constant(np.array(np.finfo(np.float32).min)))
    best: Value | None = None
    for row in range(filters.shape[0]):
        for column in range(filters.shape[1]):
            start = [row * rates[0], column * rates[1]]
            stop = [s + (n - 1) * step + 1 for s, n, step in zip(start, counts, strides, strict=True)]
            part = graph.add(
                "STRIDED_SLICE",
                x,
                np.array([0, *start, 0], np.int32),
                np.array([0, *stop, 0], np.int32),
                np.array([1, *strides, 1], np.int32),
                begin_mask=0b1001,
                end_mask=0b1001,
            )
            weight = graph.add("SLICE", filters, np.array([row, column, 0], np.int32), np.array([1, 1, -1], np.int32))
            moved_ = graph.add("ADD", part, reshape(graph, weight, [filters.shape[2]]))
            best = moved_ if best is None else graph.add("MAXIMUM", best, moved_)
    if best is None:
        refuse("a filter without elements")
    return cast(graph, best, call.value(0).type)


# -- colours


def _channel(graph: Graph, x: Value, number: int) -> Value:
    begin, size = np.zeros(x.rank, np.int32), np.full(x.rank, -1, np.int32)
    begin[-1], size[-1] = number, 1
    return graph.add("SLICE", x, begin, size)


def _scalar(number: float) -> NDArray[np.float32]:
    return np.array(number, np.float32)


@lowers("RGBToHSV")
def rgb_to_hsv(call: Call) -> Value:
    x = cast(call.graph, call.value(0), T.FLOAT32)
    return cast(call.graph, call.add("CONCATENATION", *_hsv(call.graph, x), axis=x.rank - 1), call.value(0).type)


def _hsv(graph: Graph, x: Value) -> list[Value]:
    """Hue, saturation and value, all from 0 to 1, of red, green and blue."""
    red, green, blue = (_channel(graph, x, n) for n in range(3))
    last = np.array([x.rank - 1], np.int32)
    value, least = (graph.add(op, x, last, keep_dims=True) for op in ("REDUCE_MAX", "REDUCE_MIN"))
    spread = graph.add("SUB", value, least)
    coloured = graph.add("GREATER", spread, _scalar(0))
    safe = graph.add("SELECT_V2", coloured, spread, _scalar(1))

    def sixth(first: Value, second: Value, base: float) -> Value:
        part = graph.add("DIV", graph.add("SUB", first, second), graph.add("MUL", safe, _scalar(6)))
        return graph.add("ADD", part, _scalar(base))

    hue = graph.add("SELECT_V2", graph.add("EQUAL", green, value), sixth(blue, red, 2 / 6), sixth(red, green, 4 / 6))
    hue = graph.add("SELECT_V2", graph.add("EQUAL", red, value), sixth(green, blue, 0), hue)
    hue = graph.add("SELECT_V2", graph.add("LESS", hue, _scalar(0)), graph.add("ADD", hue, _scalar(1)), hue)
    hue = graph.add("SELECT_V2", coloured, hue, _scalar(0))
    bright = graph.add("GREATER", value, _scalar(0))
    saturation = graph.add("DIV", spread, graph.add("SELECT_V2", bright, value, _scalar(1)))
    return [hue, graph.add("SELECT_V2", bright, saturation, _scalar(0)), value]


@lowers("HSVToRGB")
def hsv_to_rgb(call: Call) -> Value:
    graph, x = call.graph, cast(call.graph, call.value(0), T.FLOAT32)
    return cast(graph, _rgb(graph, *(_channel(graph, x, n) for n in range(3))), call.value(0).type)


def _rgb(graph: Graph, hue: Value, saturation: Value, value: Value) -> Value:
    six = graph.add("MUL", hue, _scalar(6))

    def share(offset: float, sign: float, base: float) -> Value:
        off = graph.add("ABS", graph.add("SUB", six, _scalar(offset)))
        found = graph.add("ADD", graph.add("MUL", off, _scalar(sign)), _scalar(base))
        return graph.add("MINIMUM", graph.add("MAXIMUM", found, _scalar(0)), _scalar(1))

    shares = [share(3, 1, -1), share(2, -1, 2), share(4, -1, 2)]
    white = graph.add("SUB", _scalar(1), saturation)
    parts = [graph.add("MUL", graph.add("ADD", white, graph.add("MUL", saturation, s)), value) for s in shares]
    return graph.add("CONCATENATION", *parts, axis=hue.rank - 1)


@lowers("AdjustHue", "AdjustSaturation")
def adjust_colour(call: Call) -> Value:
    """The hue further on by a part of the circle, or the saturation times a factor, at most 1."""
    graph, x = call.graph, cast(call.graph, call.value(0), T.FLOAT32)
    number = cast(graph, call.value(1), T.FLOAT32)
    hue, saturation, value = _hsv(graph, x)
    if call.op == "AdjustHue":
        hue = graph.add("FLOOR_MOD", graph.add("ADD", hue, number), _scalar(1))
    else:
        saturation = graph.add("MUL", saturation, number)
        saturation = graph.add("MINIMUM", graph.add("MAXIMUM", saturation, _scalar(0)), _scalar(1))
    return cast(graph, _rgb(graph, hue, saturation, value), call.value(0).type)


@lowers("AdjustContrastv2", "AdjustContrast")
def adjust_contrast(call: Call) -> Value:
    """Pixels further from the mean of their channel by a factor; the first version has bounds for the result."""
    graph, x = call.graph, cast(call.graph, call.value(0), T.FLOAT32)
    mean = graph.add("MEAN", x, np.array([x.rank - 3, x.rank - 2], np.int32), keep_dims=True)
    factor = cast(graph, call.value(1), T.FLOAT32)
    found = graph.add("ADD", graph.add("MUL", graph.add("SUB", x, mean), factor), mean)
    if call.op == "AdjustContrast":
        return graph.add("MINIMUM", graph.add("MAXIMUM", found, call.value(2)), call.value(3))
    return cast(graph, found, call.value(0).type)
