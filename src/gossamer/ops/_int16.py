"""Contractions of int16 activations, and products of int16, in terms of the kernel graph.

LiteRT's default path has int64 sums, and runs its reference kernels; with a bias of int32 the sums are int32, which may
wrap, and it runs ruy, which rounds twice, halves upwards both times.
"""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np

from gossamer.ops._requantization import FixedPointRequantization
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array
from gossamer.records import replace
from gossamer.schema.enums import TensorType
from gossamer.views import POINTWISE, FixedPoint, Geometry, View

I16, I32, I64 = TensorType.INT16, TensorType.INT32, TensorType.INT64


def weights_of(graph: Lowering, position: int) -> Array:
    """int8 weights, of int4 ones their values. Refused if the model computes them."""
    weights = graph.known(position)
    if weights.dtype != np.int8:
        graph.refuse(f"there is no product of int16 and {weights.dtype}")
    return weights


def fixed_point(multipliers: Array, shifts: Array, low: int = -32768, high: int = 32767, *, wide: bool) -> FixedPoint:
    """The fixed-point multiplication of sums that are of 64 bits, if ``wide``, or of 32.

    TFLite's MultiplyByQuantizedMultiplier of int64 makes 16 bits of a multiplier.
    """
    if not wide:
        return FixedPoint("twice", multipliers, shifts, low, high)
    narrow = np.where(multipliers < 0x7FFF0000, (multipliers + (1 << 15)) >> 16, 0x7FFF)
    return FixedPoint("once", narrow, 15 - shifts, low, high)


def requantization(to: FixedPointRequantization) -> FixedPoint:
    """That of a convolution."""
    return fixed_point(to.multipliers, to.shifts, to.low, to.high, wide=to.wide)


def without_products(graph: Lowering, bias: View | None, to: FixedPoint, channels: int) -> View:
    """What a bias becomes by itself: [channels]."""
    nothing = graph.array(np.zeros(channels, np.int32))
    return requantized(graph, nothing, nothing if bias is None else graph.reshape(bias, (channels,)), to)


def requantized(graph: Lowering, sums: View, bias: View, to: FixedPoint) -> View:
    """int16 levels [..., N] of integer sums and a bias [N], of 32 or 64 bits each."""
    type = "i32" if to.rounding == "twice" else "i64"
    total, channels = ("add", (f"to{type}", 0), (f"to{type}", 1)), sums.shape[-1]
    if to.rounding == "double":
        multipliers = graph.array(np.broadcast_to(to.multipliers, channels).astype(np.float64))
        low, high = (graph.array(np.array(bound, np.float64)) for bound in (to.low, to.high))
        real = ("min", ("max", ("mul", ("tof64", total), 2), 3), 4)
        return graph.map(("roundawayi32", real), sums, bias, multipliers, low, high, type=I16)
    numbers = (to.multipliers, np.asarray(to.exponents))
    each = [graph.array(np.broadcast_to(row, channels).astype(f"int{type[1:]}")) for row in numbers]
    rounded = ("requant64" if to.rounding == "once" else "requantup", total, 2, 3)
    return graph.map(("limit", rounded, 4), sums, bias, *each, graph.parameters(0, to.low, to.high), type=I16)


def products(graph: Lowering, x: View, weights: View, zero_point: int) -> View:
    """The int32 sums [..., N], which wrap, of [..., K] of int8, less its zero point, with int8 constants [N, K]."""
    zero = graph.array(np.array(zero_point, np.int32))
    return products_of_levels(graph, graph.map(("sub", ("toi32", 0), 1), x, zero, type=I16), weights)


def products_of_levels(graph: Lowering, x: View, weights: View) -> View:
    """The same of [..., K] of int16."""
    units, depth = weights.shape
    rows = prod(x.shape[:-1])
    image, filter = graph.reshape(x, (1, 1, rows, depth)), graph.reshape(weights, (units, 1, 1, depth))
    sums = graph.quantized_convolution(image, filter, None, replace(POINTWISE, output=(1, rows)), None, I32)
    return graph.reshape(sums, (*x.shape[:-1], units))


def convolution_of_computed(
    graph: Lowering, x: View, filter: View, bias: View | None, windows: Geometry, to: FixedPoint | None
) -> View:
    """A convolution with int8 weights [O, h, w, C] that the model computes: the product of rows of what each window
    sees and a matrix, which need not be packed. Without ``to`` and a bias, its sums, of 64 bits."""
    units, *taps, depth = filter.shape
    if x.shape[3] != depth:
        graph.refuse("weights of several groups are only known when the model runs")
    after = windows.after(*x.shape[1:3])
    padded = graph.pad(x, (0, *windows.before, 0), (0, *after, 0))
    seen = []
    for place in product(*map(range, taps)):
        image = padded
        for axis, (at, dilation, stride, size) in enumerate(
            zip(place, windows.dilation, windows.stride, windows.output, strict=True), 1
        ):
            image = image.slice(axis, at * dilation, size, stride)
        seen.append(image)
    rows = graph.reshape(graph.concat(seen, 3), (x.shape[0] * prod(windows.output), prod(taps) * depth))
    matrix = graph.reshape(graph.cast(filter, I16), (units, prod(taps) * depth)).permute((1, 0))
    return graph.reshape(
        graph.quantized_matmul(rows, matrix, to, I64 if to is None else I16, bias), (x.shape[0], *windows.output, units)
    )
