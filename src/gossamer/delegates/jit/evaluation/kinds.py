"""Kinds of kernels on arrays: a function for each, from a kernel and its operands to its result without the epilogue.

`gossamer.codegen.kinds` lists them, and the modules of `gossamer.codegen.commands` and `gossamer.codegen.kernels` say
what they compute. Only kinds that passes make of others are not here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.codegen.graph import Boxes, Kernel
from gossamer.delegates.jit.evaluation.functions import (
    fma,
    interpolated,
    requantize_up,
    rounded,
    rounding_shift_up,
)
from gossamer.dtypes import numpy_dtype, pack, unpack
from gossamer.ops._boxes import overlaps
from gossamer.ops._conv_geometry import ALL, Window, taps
from gossamer.ops._convolution import convolve, convolve_depthwise, exact_type
from gossamer.ops._distinct import distinct
from gossamer.ops._embedding import combined
from gossamer.ops._farm_hash import signs_of_hashes
from gossamer.ops._fixed_point import count_leading_zeros, inverse_sqrt_multiplier
from gossamer.ops._gemm import integer_matmul
from gossamer.ops._layout import add_at
from gossamer.ops._qd8 import HEADER, ZERO_POINT
from gossamer.ops._random_bits import PHILOX_WORDS, THREEFRY_WORDS, counted, philox, threefry
from gossamer.ops._search import found_at, place_of
from gossamer.quantization import high_mul, multiply_by_quantized_multiplier, round_half_away, rounding_divide_by_pot
from gossamer.schema.enums import TensorType
from gossamer.views import FixedPoint, Geometry, Requantization

Array = NDArray[Any]

RECIPROCAL = 8
"""Where in the header of quantized floats the reciprocal of the scale is; behind scale and zero point."""


class Fault(Exception):
    """An index out of range, or a divisor of 0: the reference kernel says what is wrong."""


def windows_of(x: Array, geometry: Geometry) -> tuple[Window, Window]:
    """The windows of a geometry over the rows and columns of images."""
    rows, columns = (
        Window(x.shape[1 + axis], size, stride, dilation, output, before)
        for axis, (size, stride, dilation, output, before) in enumerate(
            zip(geometry.kernel, geometry.stride, geometry.dilation, geometry.output, geometry.before, strict=True)
        )
    )
    return rows, columns


def _image_windows(kernel: Kernel, x: Array, geometry: Geometry) -> tuple[Window, Window]:
    # Of windows of one element the geometry need not know how large the image is.
    if geometry.is_pointwise:
        return windows_of(x, Geometry((1, 1), (1, 1), (1, 1), (0, 0), (kernel.y.shape[1], kernel.y.shape[2])))
    return windows_of(x, geometry)


def _centred(x: Array, zero: int, weights: Array, output_axis: int) -> Array:
    """Integers less a zero point, in a type in which sums of products with the weights are exact."""
    limits = np.iinfo(x.dtype)
    kind = exact_type(max(limits.max - zero, zero - limits.min), weights, output_axis)
    x = x.astype(kind)
    if zero:
        x -= kind(zero)
    return x


# Data to other places


def _bitcast(kernel: Kernel, x: Array) -> Array:
    y = np.ascontiguousarray(x).reshape(-1).view(numpy_dtype(kernel.y.type))
    part = (kernel.settings or {}).get("part")
    return (y if part is None else y.reshape(-1, x.itemsize // y.itemsize)[:, part]).reshape(kernel.y.shape)


def _copy(kernel: Kernel, x: Array) -> Array:
    return x


def _pad(kernel: Kernel, x: Array, value: Array) -> Array:
    y = np.full(kernel.y.shape, value.reshape(-1)[0], x.dtype)
    y[tuple([slice(before, before + size) for before, size in zip(kernel.settings, x.shape, strict=True)])] = x
    return y


def _starts(boxes: Boxes, vectors: Array, shape: Sequence[int]) -> Array:
    """Where boxes begin, none of which leads outside a tensor of a shape. Raises `Fault`."""
    last = np.array([shape[axis] - boxes.sizes[axis] for axis in boxes.axes], np.int64)
    vectors = vectors.astype(np.int64)
    if not boxes.clamps and ((vectors < 0) | (vectors > last)).any():
        raise Fault
    return np.clip(vectors, 0, last)


def _gather(kernel: Kernel, x: Array, vectors: Array) -> Array:
    boxes: Boxes = kernel.settings
    places, starts = vectors.shape[:-1], _starts(boxes, vectors, x.shape)
    first: list[Any] = [0] * x.ndim
    for axis in range(boxes.batch_dims):
        first[axis] = np.arange(places[axis]).reshape([-1 if dim == axis else 1 for dim in range(len(places))])
    for component, axis in enumerate(boxes.axes):
        first[axis] = starts[..., component]
    found = np.lib.stride_tricks.sliding_window_view(x, boxes.sizes)[tuple(first)]
    return np.broadcast_to(found, (*places, *boxes.sizes))


def _put(kernel: Kernel, box: Array, vector: Array, y: Array) -> Array:
    starts = _starts(kernel.settings, vector.reshape(-1), y.shape).tolist()
    y = y.copy()
    y[tuple([slice(start, start + size) for start, size in zip(starts, box.shape, strict=True)])] = box
    return y


def _push(kernel: Kernel, x: Array, y: Array) -> Array:
    return np.concatenate([y[..., 1:], x.reshape(*y.shape[:-1], 1)], axis=-1)


_COMBINES: dict[str, np.ufunc] = {"add": np.add, "mul": np.multiply, "max": np.fmax, "min": np.fmin}


def _scatter(kernel: Kernel, x: Array, places: Array, before: Array) -> Array:
    combine, inside = kernel.settings["combine"], (places >= 0) & (places < len(before))
    if not (kernel.settings["skips"] or inside.all()):
        raise Fault
    y, x, places = before.copy(), x[inside], places[inside]
    if combine == "set":
        y[places] = x  # of several, the last
        return y
    _COMBINES[combine].at(y, places, x)
    return np.where(before == before, y, before)  # NaN stays


RESIZE_BITS = 11
"""Of the weights of bytes."""


def _resize(kernel: Kernel, x: Array) -> Array:
    rows, columns = kernel.settings["rows"], kernel.settings["columns"]
    if not isinstance(rows[0], tuple):
        return x[:, list(rows)][:, :, list(columns)]
    is_real = x.dtype == np.float32

    def between(x: Array, places: Sequence[tuple[int, int, float]], axis: int) -> Array:
        first, second, weights = (np.array(one) for one in zip(*places, strict=True))
        low, high = x.take(first, axis), x.take(second, axis)
        weights = weights.astype(x.dtype).reshape([-1 if dim == axis else 1 for dim in range(x.ndim)])
        return fma(weights, high - low, low) if is_real else (low << RESIZE_BITS) + (high - low) * weights

    mean = between(between(x if is_real else x.astype(np.int32), columns, 2), rows, 1)
    return mean if is_real else ((mean + (1 << (2 * RESIZE_BITS - 1))) >> (2 * RESIZE_BITS)).astype(x.dtype)


# Elementwise


def _map(kernel: Kernel, x: Array) -> Array:
    return x  # all that it does is its epilogue


def _nonzero(kernel: Kernel, x: Array) -> Array:
    if not x.all():
        raise Fault
    return x


# Sums of products of floats


def _contract(kernel: Kernel, x: Array, weights: Array, bias: Array) -> Array:
    return convolve(x, weights, _image_windows(kernel, x, kernel.settings)) + bias


def _conv3d(kernel: Kernel, x: Array, weights: Array, bias: Array) -> Array:
    stride, dilation, places = kernel.settings["stride"], kernel.settings["dilation"], kernel.y.shape[1:4]
    sizes = zip(x.shape[1:4], weights.shape[1:4], stride, dilation, places, strict=True)
    return convolve(x, weights, [Window(*size, 0) for size in sizes]) + bias


def _depthwise(kernel: Kernel, x: Array, weights: Array, bias: Array) -> Array:
    return convolve_depthwise(x, weights, windows_of(x, kernel.settings)) + bias


def _matmul(kernel: Kernel, x: Array, y: Array, bias: Array | None = None) -> Array:
    product: Array = np.matmul(x, y)
    return product if bias is None else product + bias


# Sums of products of quantized numbers


def _int32(sums: Array) -> Array:
    """Exact sums in 32 bits, in which they wrap."""
    return sums.astype(np.int32) if sums.dtype == np.float32 else sums.astype(np.int64).astype(np.int32)


def _requantized(kernel: Kernel, sums: Array, bias: Array, numbers: Requantization | FixedPoint | None) -> Array:
    """Exact sums of products and the bias as `Requantization` or `FixedPoint` has them; as they are where sums are what
    is wanted."""
    dtype = numpy_dtype(kernel.y.type)
    if isinstance(numbers, FixedPoint):
        return _in_fixed_point(sums.astype(np.int64) + bias, numbers).astype(dtype)
    if numbers is None or kernel.y.type in (TensorType.INT32, TensorType.INT64):
        return np.asarray((sums.astype(np.int64) + bias).astype(dtype))
    real, scales = (_int32(sums) + bias).astype(np.float32), np.asarray(numbers.scales, np.float32)
    real = fma(real, scales, np.copysign(np.float32(numbers.nudge), real)) if numbers.nudge else real * scales
    np.rint(real, out=real)
    real += np.float32(numbers.zero_point)
    return np.clip(real, numbers.low, numbers.high, out=real).astype(dtype)


def _in_fixed_point(total: Array, numbers: FixedPoint) -> Array:
    multipliers, exponents = numbers.multipliers, np.asarray(numbers.exponents)
    if numbers.rounding == "once":
        levels = rounding_shift_up(total * multipliers, exponents)
    elif numbers.rounding == "twice":
        levels = requantize_up(_int32(total), multipliers, exponents)
    else:
        levels = rounded(round_half_away(total.astype(np.float64) * multipliers))
    return np.clip(levels, numbers.low, numbers.high)


def _weights_less_zero(weights: Array, numbers: Requantization | FixedPoint | None) -> Array:
    zero = numbers.weight_zero if isinstance(numbers, Requantization) else 0
    return weights.astype(np.int64) - zero if zero else weights


def _zero_of(numbers: Requantization | FixedPoint | None) -> int:
    return numbers.x_zero if isinstance(numbers, Requantization) else 0  # of int16 it is 0


def _quantized_contract(kernel: Kernel, x: Array, weights: Array, bias: Array) -> Array:
    numbers = kernel.settings.requantization
    weights = _weights_less_zero(weights, numbers)
    x = _centred(x, _zero_of(numbers), weights, 0)
    sums = convolve(x, weights, _image_windows(kernel, x, kernel.settings.geometry))
    return _requantized(kernel, sums, bias, numbers)


def _quantized_depthwise(kernel: Kernel, x: Array, weights: Array, bias: Array) -> Array:
    numbers = kernel.settings.requantization
    weights = _weights_less_zero(weights, numbers)
    x = _centred(x, _zero_of(numbers), weights, -1)
    return _requantized(kernel, convolve_depthwise(x, weights, windows_of(x, kernel.settings.geometry)), bias, numbers)


def _quantized_matmul(kernel: Kernel, x: Array, y: Array, bias: Array) -> Array:
    numbers = kernel.settings.requantization
    sums = integer_matmul(x.astype(np.int64) - _zero_of(numbers), _weights_less_zero(y, numbers).astype(np.int64))
    return _requantized(kernel, sums, bias, numbers)


def _dot16(kernel: Kernel, x: Array, weights: Array) -> Array:
    return np.asarray(np.einsum("rcd,cd->rc", x.astype(np.int64), weights.astype(np.int64)).astype(np.int32))


# Floats on grids of their own: see `gossamer.codegen.kernels.dynamic`.


def _headers(scales: Array, points: Array, reciprocals: Array) -> Array:
    """[N, 16] bytes of N grids."""
    headers = np.zeros((*scales.shape, HEADER // 4), np.int32)
    for at, value in ((0, scales), (ZERO_POINT, points), (RECIPROCAL, reciprocals)):
        headers[..., at // 4] = value.view(np.int32)
    return headers.view(np.int8)


def _number(headers: Array, at: int, type: type[np.generic]) -> Array:
    """A number of each header, by where it is."""
    return np.ascontiguousarray(headers[..., at : at + 4]).view(type)[..., 0]


def _grids(rule: str, low: Array, high: Array) -> tuple[Array, Array, Array]:
    """The scales, zero points and reciprocals that a rule makes of ranges."""
    empty = low == high
    one = np.float32(1)
    if rule == "qd8":
        steps = np.where(empty, one, np.float32(255) / (high - low))
        below, above = low * steps, high * steps
        errors = (below + np.float32(-128)) + (above + np.float32(127))
        points = np.where(errors > 0, np.float32(-128) - below, np.float32(127) - above)
        return one / steps, np.rint(np.clip(points, -128, 127)).astype(np.int32), steps
    scale = (high - low).astype(np.float64) / 255
    below, above = low / scale, high / scale
    points = np.where(np.abs(below) + 128 < np.abs(above) + 127, -128 - below, 127 - above)
    points = np.where(empty, 0, round_half_away(np.clip(points, -128, 127))).astype(np.int32)
    scales = np.where(empty, one, scale.astype(np.float32))
    return scales, points, one / scales


def _levels_of(x: Array, steps: Array, points: Array) -> Array:
    """Floats as levels of int8, after the rule ``qd8``."""
    # As in `gossamer.codegen.kernels.dynamic.levels`: for numbers that no grid has a level for, too.
    scaled = x * steps
    shifted = np.where(scaled < 32767, scaled, np.float32(32767)) + np.float32(12582912)
    return np.clip(shifted.view(np.int32) + (points - np.int32(0x4B400000)), -128, 127).astype(np.int8)


def _quantize(kernel: Kernel, x: Array) -> Array:
    low, high = np.fmin.reduce(x, axis=-1, initial=0), np.fmax.reduce(x, axis=-1, initial=0)
    scales, points, steps = _grids("qd8", low, high)
    levels = _levels_of(x, steps[..., None], points[..., None])
    if kernel.y.type == TensorType.UINT8:
        levels, points = levels ^ np.int8(-128), points + np.int32(128)
    y = np.zeros(kernel.y.shape, np.int8)
    y[..., :HEADER] = _headers(scales, points, steps)
    y[..., HEADER : HEADER + x.shape[-1]] = levels
    return y.view(numpy_dtype(kernel.y.type))


def _dynamic_range(kernel: Kernel, x: Array) -> Array:
    rows = x.reshape(len(x), -1)
    bounds = np.stack([np.fmin.reduce(rows, axis=1, initial=0), np.fmax.reduce(rows, axis=1, initial=0)], 1)
    return np.broadcast_to(bounds[:, :, None], kernel.y.shape)  # of all blocks, the same


def _dynamic_parameters(kernel: Kernel, ranges: Array) -> Array:
    return _headers(*_grids(kernel.settings["rule"], ranges[:, 0].min(axis=1), ranges[:, 1].max(axis=1)))


def _dynamic_quantize(kernel: Kernel, x: Array, headers: Array) -> Array:
    each = (-1, 1, 1, 1)
    points, steps = _number(headers, ZERO_POINT, np.int32).reshape(each), _number(headers, RECIPROCAL, np.float32)
    if kernel.settings["rule"] == "qd8":
        return _levels_of(x, steps.reshape(each), points)
    zero = points.astype(np.float32)
    scaled = x * steps.reshape(each)
    centred = np.trunc(scaled + np.copysign(np.float32(0.5), scaled))
    return np.asarray(np.minimum(np.maximum(centred, np.float32(-128) - zero), np.float32(127) - zero))


def _hybrid(
    kernel: Kernel, levels: Array, weights: Array, scales: Array, bias: Array, headers: Array | None = None
) -> Array:
    geometry: Geometry | None = kernel.settings.get("geometry")
    if headers is None or geometry is None:
        headers, matrix = levels[..., :HEADER], weights.reshape(len(weights), -1)
        points = _number(headers, ZERO_POINT, np.int32)[..., None]
        rows = levels[..., HEADER : HEADER + matrix.shape[1]].astype(np.int32) - points
        sums = integer_matmul(rows.reshape(-1, matrix.shape[1]), matrix.T).reshape(kernel.y.shape)
        image_scales = _number(headers, 0, np.float32)[..., None]
    else:
        points, image_scales = (
            _number(headers, at, type).reshape(-1, 1, 1, 1) for at, type in ((ZERO_POINT, np.int32), (0, np.float32))
        )
        # What is around the images is their zero point, and in the images already.
        inside = Geometry(geometry.kernel, geometry.stride, geometry.dilation, (0, 0), geometry.output)
        x = (levels.astype(np.int32) - points).astype(exact_type(255, weights, 0))
        sums = convolve(x, weights, windows_of(x, inside))
    return fma(sums.astype(np.int64).astype(np.float32) * image_scales, scales, bias)


def _hybrid_depthwise(kernel: Kernel, x: Array, weights: Array, scales: Array, bias: Array, headers: Array) -> Array:
    sums = convolve_depthwise(x, weights.astype(np.float32), windows_of(x, kernel.settings))
    of_image = _number(headers, 0, np.float32).reshape(-1, 1, 1, 1)
    whole = sums.shape[3] & -4
    scales = np.broadcast_to(scales, sums.shape[3])
    scaled = np.concatenate(
        [sums[..., :whole] * scales[:whole] * of_image, sums[..., whole:] * of_image * scales[whole:]], axis=3
    )
    return scaled + bias


# Over several elements


def _totals(x: Array, windows: Sequence[Window], start: float, add: Callable[[Array, Array], Array]) -> Array:
    """What the elements inside each window come to, one after the other."""
    y = np.full((len(x), *(window.output for window in windows), x.shape[-1]), start, x.dtype)
    for _, elements, at in taps(*windows):
        y[ALL + at] = add(y[ALL + at], x[ALL + elements])
    return y


def _window(kernel: Kernel, x: Array) -> Array:
    reduction, geometry = kernel.settings
    windows = windows_of(x, geometry)
    if reduction == "max":
        return _totals(x, windows, float(np.finfo(np.float32).min), lambda y, x: np.where(x > y, x, y))
    counts = _totals(np.ones((1, *x.shape[1:3], 1), np.float32), windows, 0, np.add)
    if reduction == "mean":
        return _totals(x, windows, 0, np.add) / counts
    return np.sqrt(_totals(x * x, windows, 0, np.add) / counts)


def _quantized_window(kernel: Kernel, x: Array) -> Array:
    settings = kernel.settings
    windows = windows_of(x, settings["geometry"])
    if settings["reduction"] == "max":
        y = _totals(x, windows, np.iinfo(x.dtype).min, np.maximum)
    else:
        sums = _totals(x.astype(np.int64), windows, 0, np.add)
        counts = _totals(np.ones((1, *x.shape[1:3], 1), np.int64), windows, 0, np.add)
        y = np.sign(sums) * ((np.abs(sums) + counts // 2) // counts)
    return np.clip(y, settings["low"], settings["high"]).astype(x.dtype)


_REDUCTIONS: dict[str, np.ufunc] = {
    **dict.fromkeys(("sum", "mean"), np.add),
    "prod": np.multiply,
    "max": np.fmax,
    "min": np.fmin,
}


def _reduce(kernel: Kernel, x: Array) -> Array:
    reduction, axes, _ = kernel.settings  # prologues come of passes
    y: Array = _REDUCTIONS[reduction].reduce(x, axis=axes, keepdims=True, dtype=numpy_dtype(kernel.y.type))
    return y / np.float32(x.size // y.size) if reduction == "mean" else y


def _quantized_product(kernel: Kernel, x: Array, numbers: Array) -> Array:
    x_zero, multiplier, exponent, y_zero, low, high = numbers.tolist()
    axes = kernel.settings["axes"]
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    first, *factors = x.transpose(*axes, *kept).reshape(-1, kernel.y.size).astype(np.int64) - x_zero

    def rescaled(product: Array) -> Array:
        return rounding_shift_up(product * multiplier, exponent).astype(np.int32).astype(np.int64)

    product = rescaled(reduce(lambda product, factor: rescaled(product * factor), factors, first))
    levels: Array = np.clip(product + y_zero, low, high).astype(x.dtype)
    return levels.reshape(kernel.y.shape)


def _quantized_reduce(kernel: Kernel, x: Array, rescaling: Array | None = None) -> Array:
    reduction, axes = kernel.settings["reduction"], kernel.settings["axes"]
    if reduction != "sum":
        return np.asarray(_REDUCTIONS[reduction].reduce(x, axis=axes, keepdims=True))
    total = np.add.reduce(x, axis=axes, dtype=np.int64, keepdims=True).astype(np.int32)
    if rescaling is None:
        return total
    scale, zero_point = rescaling.reshape(-1).view(np.float32)
    limits = np.iinfo(x.dtype)
    return np.asarray(
        np.rint(np.clip(total.astype(np.float32) * scale + zero_point, limits.min, limits.max)).astype(x.dtype)
    )


def _arg_reduce(kernel: Kernel, x: Array) -> Array:
    axis, greatest = kernel.settings["axis"], kernel.settings["greatest"]
    if x.dtype.kind == "f":
        x = np.where(np.isnan(x), x.dtype.type(-np.inf if greatest else np.inf), x)
    return np.asarray((np.argmax if greatest else np.argmin)(x, axis))


def _topk(kernel: Kernel, x: Array) -> Array:
    # ~x reverses the order of integers of every kind. Of equal elements the first comes first, NaN last.
    descending = -x if x.dtype.kind == "f" else ~x
    return np.argsort(descending, axis=-1, kind="stable")[..., : kernel.y.shape[-1]]


def _scan(kernel: Kernel, x: Array) -> Array:
    axis, settings = kernel.settings["axis"], kernel.settings
    x = np.flip(x, axis) if settings["reverse"] else x
    y = np.add.accumulate(x, axis=axis, dtype=x.dtype)
    if settings["exclusive"]:
        y = np.roll(y, 1, axis)
        y[(slice(None),) * (axis % x.ndim) + (0,)] = 0
    return np.flip(y, axis) if settings["reverse"] else y


def _normalize(kernel: Kernel, x: Array) -> Array:
    norm, epsilon = kernel.settings["norm"], np.float32(kernel.settings["epsilon"])
    if norm == "layer":
        x = x - x.mean(axis=-1, keepdims=True)
    squares = np.square(x)
    if norm == "l2":
        size = np.maximum(np.sqrt(squares.sum(axis=-1, keepdims=True)), epsilon)
    else:
        size = np.sqrt(squares.mean(axis=-1, keepdims=True) + epsilon)
    return np.asarray(x * (np.float32(1) / size))


def _quantized_normalize(kernel: Kernel, x: Array) -> Array:
    q = x.astype(np.int64) - kernel.settings["zero_point"]
    sums = np.square(q).sum(axis=-1, keepdims=True).astype(np.int32).astype(np.int64)
    multiplier, exponent = inverse_sqrt_multiplier(sums)
    if x.dtype == np.int8:
        levels = multiply_by_quantized_multiplier(q, multiplier, exponent + 7)
    else:
        levels = rounding_divide_by_pot(high_mul(q << 7, multiplier), -exponent) + 128
    limits = np.iinfo(x.dtype)
    return np.clip(levels, limits.min, limits.max).astype(x.dtype)


def _local_response(kernel: Kernel, x: Array) -> Array:
    settings, depth = kernel.settings, x.shape[-1]
    radius, bias = min(settings["radius"], depth), np.float32(settings["bias"])
    weighted, scale = np.square(x) * np.float32(settings["alpha"]), np.empty_like(x)
    # A sum that slides: its roundings are those of TFLite's optimized kernel.
    total = np.add.accumulate(weighted[..., :radius], axis=-1)[..., -1] if radius else np.zeros_like(x[..., 0])
    for channel in range(depth):
        if channel + radius < depth:
            total = total + weighted[..., channel + radius]
        scale[..., channel] = bias + total
        if channel >= radius:
            total = total - weighted[..., channel - radius]
    return scale


def _softmax(kernel: Kernel, x: Array) -> Array:
    beta, log = kernel.settings
    x = (x - x.max(axis=-1, keepdims=True)) * np.float32(beta)
    exponentials = np.exp(x)
    total = exponentials.sum(axis=-1, keepdims=True)
    return np.asarray(x - np.log(total) if log else exponentials / total)


def _quantized_softmax(kernel: Kernel, x: Array, table: Array, output: Array) -> Array:
    scale, x_scale = output.view(np.float32)[:2]
    zero_point, dtype = output[2], numpy_dtype(kernel.y.type)
    greatest = x.max(axis=-1, keepdims=True)
    kept = table[255 - (greatest.astype(np.int32) - x)]
    total = np.add.accumulate(kept, axis=-1)[..., -1:]  # one after the other
    if kernel.settings["log"]:
        logarithm = np.log(total.astype(np.float64)).astype(np.float32)
        least = (x_scale * greatest.astype(np.float32) + logarithm) / scale
        levels = np.rint((x_scale / scale) * x.astype(np.float32) - least).astype(np.int64) + zero_point
    else:
        real = kept * (np.float32(1) / (total * scale))
        if dtype == np.uint8:
            levels = np.trunc(real + np.float32(0.5)).astype(np.int64)
        else:
            levels = round_half_away(real).astype(np.int64) + zero_point
    limits = np.iinfo(dtype)
    return np.asarray(np.clip(levels, limits.min, limits.max).astype(dtype))


def _softmax16(kernel: Kernel, x: Array, scale: Array, exponentials: Array, reciprocals: Array) -> Array:
    multiplier, left, right = scale[:3].tolist()
    steps = x.astype(np.int64) - x.max(axis=-1, keepdims=True)
    scaled = multiply_by_quantized_multiplier(steps, multiplier, left - right)
    levels = interpolated(np.clip(scaled + 32767, -32768, 32767).astype(np.int32), exponentials).astype(np.int64)
    total = levels.sum(axis=-1, keepdims=True)
    headroom = count_leading_zeros(total)
    fraction = ((total << (headroom - 1)) + (1 << 13)) >> 14  # of [1, 2), 1 is 65536
    place = np.clip(fraction - (1 << 16) - (1 << 15), -32768, 32767).astype(np.int32)
    inverse = interpolated(place, reciprocals)
    return np.clip(rounding_shift_up(levels * inverse, 31 - headroom), 0, 32767).astype(np.int16)


# As many as there are: what is behind them is never read


def _where(kernel: Kernel, x: Array) -> tuple[Array, int]:
    found = np.array(x.reshape(kernel.settings["sizes"]).nonzero(), np.int64).T
    return _filled(kernel, found), len(found)


def _unique(kernel: Kernel, x: Array) -> tuple[Array, Array, int]:
    values, indices = distinct(x)
    return _filled(kernel, values), indices, len(values)


def _search(kernel: Kernel, keys: Array, x: Array) -> Array:
    search = place_of if kernel.settings["rule"] == "upper" else found_at
    return np.stack([search(*row) for row in zip(keys, x, strict=True)])


def _hash_signs(kernel: Kernel, seeds: Array, x: Array, weights: Array) -> Array:
    data = np.ascontiguousarray(x).reshape(-1).view(np.uint8)
    width = data.size // weights.size
    signs = signs_of_hashes(seeds.reshape(-1), data[: width * weights.size].reshape(-1, width), weights)
    return signs.reshape(kernel.y.shape)


def _pack_bits(kernel: Kernel, x: Array) -> Array:
    return pack(x, TensorType.INT4 if kernel.settings["bits"] == 4 else TensorType.INT2)


def _unpack_bits(kernel: Kernel, x: Array) -> Array:
    signed = TensorType.INT4 if kernel.settings["bits"] == 4 else TensorType.INT2
    return unpack(x, signed if kernel.settings["signed"] else TensorType.UINT4, kernel.y.size)


def _segments(kernel: Kernel, x: Array, ids: Array) -> tuple[Array, int]:
    if ids[0] != 0 or not np.isin(np.diff(ids.astype(np.int64)), (0, 1)).all():
        raise Fault
    sums = np.zeros((int(ids[-1]) + 1, *x.shape[1:]), x.dtype)
    add_at(sums, ids, x)
    return _filled(kernel, sums), len(sums)


def _embed(kernel: Kernel, ids: Array, places: Array, weights: Array, table: Array) -> Array:
    rows = kernel.y.shape[0]
    if not ((ids >= 0) & (ids < len(table)) & (places >= 0) & (places < rows)).all():
        raise Fault
    return combined(ids, places, weights, table, rows, kernel.settings["combiner"])


def _filled(kernel: Kernel, rows: Array) -> Array:
    y = np.zeros(kernel.y.shape, rows.dtype)
    y[: len(rows)] = rows
    return y


# Boxes, and random numbers


def _suppress(
    kernel: Kernel, boxes: Array, scores: Array, least: Array, most: Array, decay: Array | None = None
) -> Array:
    """See `gossamer.codegen.kernels.suppress`."""
    repeats, y = kernel.settings["repeats"], np.zeros(kernel.y.shape, np.int32)
    limit, none = y.shape[1] // 2, np.float32(-np.inf)
    for row, given in zip(y, scores, strict=True):
        rest = np.where(given > least, given, none)
        for turn in range(min(limit, int((given > least).sum()))):
            best = int(rest.argmax())
            if rest[best] == none:
                break
            row[[turn, limit + turn, -1]] = best, rest[best].view(np.int32), turn + 1
            if repeats and np.count_nonzero(rest == rest[best]) > 1:
                raise Fault
            if not repeats:
                rest[best] = none
            overlap = overlaps(boxes[:, best], boxes.T)
            goes = overlap >= most
            if decay is not None:
                rest = rest * np.exp(decay * overlap * overlap)
                goes |= ~(rest > least)
            rest[goes] = none
    return y


def _random(kernel: Kernel, state: Array) -> Array:
    size, (key, start, *upper) = kernel.y.size, state.tolist()
    is_philox = kernel.settings["algorithm"] == "philox"
    counters = list(counted(start, -(-size // (PHILOX_WORDS if is_philox else THREEFRY_WORDS))))
    if is_philox:
        counters += [np.full_like(counters[0], half) for half in divmod(upper[0], 1 << 32)[::-1]]
    high, low = divmod(key, 1 << 32)
    words = (philox if is_philox else threefry)((low, high), np.stack(counters, 1))
    return words.reshape(-1)[:size].reshape(kernel.y.shape)


KINDS: dict[str, Callable[..., Any]] = {
    "arg_reduce": _arg_reduce,
    "bitcast": _bitcast,
    "contract": _contract,
    "conv3d": _conv3d,
    "copy": _copy,
    "depthwise": _depthwise,
    "dot16": _dot16,
    "dynamic_parameters": _dynamic_parameters,
    "dynamic_quantize": _dynamic_quantize,
    "dynamic_range": _dynamic_range,
    "gather": _gather,
    "hashsigns": _hash_signs,
    "hybrid": _hybrid,
    "hybrid_depthwise": _hybrid_depthwise,
    "localresponse": _local_response,
    "map": _map,
    "matmul": _matmul,
    "nonzero": _nonzero,
    "normalize": _normalize,
    "packbits": _pack_bits,
    "pad": _pad,
    "push": _push,
    "put": _put,
    "quantize": _quantize,
    "quantized_contract": _quantized_contract,
    "quantized_depthwise": _quantized_depthwise,
    "quantized_matmul": _quantized_matmul,
    "quantized_normalize": _quantized_normalize,
    "quantized_product": _quantized_product,
    "quantized_reduce": _quantized_reduce,
    "quantized_softmax": _quantized_softmax,
    "quantized_window": _quantized_window,
    "random": _random,
    "reduce": _reduce,
    "resize": _resize,
    "scan": _scan,
    "scatter": _scatter,
    "softmax": _softmax,
    "softmax16": _softmax16,
    "suppress": _suppress,
    "topk": _topk,
    "embed": _embed,
    "search": _search,
    "segments": _segments,
    "unique": _unique,
    "unpackbits": _unpack_bits,
    "where": _where,
    "window": _window,
}
"""Every kind that operators ask for, by name. `push`, `put` and `scatter` are given what they write to as a last
operand."""
