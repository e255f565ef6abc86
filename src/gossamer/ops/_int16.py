"""Contractions of int16 activations in terms of the kernel graph: integer sums, then a map to the output's scale.

Sums are int32 where they fit or may wrap (a bias of int32), else int64. Where LiteRT's default path has int64 sums, it
runs its reference kernels; with int32 sums it runs ruy, which rounds twice, halves upwards both times.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from gossamer.ops._conv_geometry import Window
from gossamer.ops._conv_lowering import by_phase, phase_geometry
from gossamer.ops._requantization import FixedPointRequantization
from gossamer.ops.lowering import Expression, Lowering
from gossamer.ops.op_def import Array
from gossamer.records import record, replace
from gossamer.schema.enums import TensorType
from gossamer.views import POINTWISE, Geometry, View

I16, I32, I64 = TensorType.INT16, TensorType.INT32, TensorType.INT64

FITS_INT32 = 511
"""Products of int16 and int8 whose sum does not leave int32."""

PADDING = 16
MOST_PADDING = 1 << 20
"""Times the elements of an image, and elements beyond that, that it may have with its padding."""

MOST_TAPS = 256
"""Elements of the largest depthwise filter."""


def weights_of(graph: Lowering, position: int) -> Array:
    """int8 weights, of int4 ones their values. Refused if the model computes them."""
    weights = graph.known(position)
    if weights.dtype != np.int8:
        graph.refuse(f"there is no product of int16 and {weights.dtype}")
    return weights


def convolution(graph: Lowering, x: View, weights: Array, geometry: Geometry, wide: bool) -> View:
    """The sums [N, H', W', O] of [N, H, W, C] with [O, h, w, C / groups]."""
    channels, depth = weights.shape[0], weights.shape[3]
    groups = x.shape[3] // depth
    if groups > 1:
        share = channels // groups
        parts = [
            convolution(
                graph, x.slice(3, group * depth, depth), weights[group * share : (group + 1) * share], geometry, wide
            )
            for group in range(groups)
        ]
        return graph.concat(parts, 3)
    return _sums(graph, x, panels(graph, weights), channels, geometry, wide)


def panels(graph: Lowering, weights: Array) -> View:
    """Constant weights [O, h, w, C], of even depth: packed once, whoever they are multiplied with."""
    return graph.array(np.pad(weights, [(0, 0), (0, 0), (0, 0), (0, 1)]) if weights.shape[3] % 2 else weights)


def _sums(graph: Lowering, x: View, weights: View, channels: int, geometry: Geometry, wide: bool) -> View:
    _check_padding(graph, x, geometry)
    type = I64 if wide and prod(geometry.kernel) * x.shape[3] > FITS_INT32 else I32
    padded = 16 if channels <= 16 else -(-channels // 32) * 32
    shape = (x.shape[0], *geometry.output, padded)
    sums = graph.kernel("contract16", x, weights, shape=shape, type=type, geometry=geometry)
    return sums.slice(3, 0, channels)


def matrix(graph: Lowering, weights: Array) -> View:
    """Constant weights [N, K] for `products`."""
    units, depth = weights.shape
    return panels(graph, weights.reshape(units, 1, 1, depth))


def products(graph: Lowering, x: View, weights: View, zero_point: int) -> View:
    """The int32 sums [..., N], which wrap, of [..., K] of int8, less its zero point, with a `matrix` [N, K]."""
    zero = graph.array(np.array(zero_point, np.int32))
    return products_of_levels(graph, graph.map(("sub", ("toi32", 0), 1), x, zero, type=I16), weights)


def products_of_levels(graph: Lowering, x: View, weights: View) -> View:
    """The same of [..., K] of int16."""
    units, rows, depth = weights.shape[0], prod(x.shape[:-1]), x.shape[-1]
    image = graph.reshape(x, (1, 1, rows, depth))
    sums = _sums(graph, image, weights, units, replace(POINTWISE, output=(1, rows)), False)
    return graph.reshape(sums, (*x.shape[:-1], units))


def depthwise(graph: Lowering, x: View, weights: Array, geometry: Geometry) -> View:
    """The sums [N, H', W', C * m] of [N, H, W, C] with [h, w, C * m]."""
    height, width, channels = weights.shape
    if height * width > MOST_TAPS:
        graph.refuse(f"the filter has more than {MOST_TAPS} elements")
    *places, depth = x.shape
    if channels > depth:
        many = graph.reshape(x, (*x.shape, 1)).broadcast((*x.shape, channels // depth))
        x = graph.reshape(many, (*places, channels))
    _check_padding(graph, x, geometry)
    shape = (x.shape[0], *geometry.output, channels)
    return graph.kernel("depthwise16", x, graph.array(weights), shape=shape, type=I32, geometry=geometry)


def transposed(
    graph: Lowering, x: View, filter: View, bias: View | None, windows: Sequence[Window], to: Scaling
) -> View:
    """A transposed convolution of [N, H, W, C] with [O, h, w, C], requantized."""
    y = graph.empty((x.shape[0], *(window.input for window in windows), filter.shape[0]), I16)
    for place, image, part, phase, before in by_phase(graph, x, filter, windows, y):
        if image.size and part.size:
            sums = convolution(graph, image, values_of(part), phase_geometry(phase, before), to.wide)
        else:  # no tap meets anything
            sums = graph.array(np.zeros((), np.int32)).broadcast(place.shape)
        graph.copy(requantize(graph, sums, bias, to), place)
    return y


def values_of(constant: View) -> Array:
    """A view of a constant as an array."""
    array = constant.buffer.array
    if array is None:
        raise ValueError("a view of what the model computes")
    strides = [array.itemsize * stride for stride in constant.strides]
    return np.lib.stride_tricks.as_strided(array.reshape(-1)[constant.offset :], constant.shape, strides)


def product(graph: Lowering, x: View, y: View) -> View:
    """The sums [..., M, N], of int64, of [..., M, K] with [..., K, N]; leading dimensions are broadcast."""
    y = graph.cast(y, I16)
    if y.strides[-1] != 1:
        y = graph.copy(y)
    rank = max(len(x.shape), len(y.shape))
    batch = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    x, y = (graph.reshape(view, (1,) * (rank - len(view.shape)) + view.shape) for view in (x, y))
    x, y = (view.broadcast((*batch, *view.shape[-2:])) for view in (x, y))
    return graph.kernel("product16", x, y, shape=(*batch, x.shape[-2], y.shape[-1]), type=I64)


@record(frozen=True, eq=False)
class Scaling:
    """From sums to the output: a multiplier and a shift for each channel, or one, and the output's limits.

    ``wide``: sums are int64 and rounded once; else they are int32 and rounded twice, halves upwards.
    """

    multipliers: Array
    shifts: Array
    zero_point: int
    low: int
    high: int
    wide: bool


def scaling(to: FixedPointRequantization) -> Scaling:
    """That of a convolution."""
    return Scaling(to.multipliers, to.shifts, to.output_zero, to.low, to.high, to.wide)


def requantize(graph: Lowering, sums: View, bias: View | None, to: Scaling) -> View:
    """Sums to int16."""
    operands, total = _biased(graph, sums, bias, to.wide)
    multipliers, shifts = to.multipliers, to.shifts
    if to.wide:
        multipliers = np.where(multipliers < 0x7FFF0000, (multipliers + (1 << 15)) >> 16, 0x7FFF)
        shifts = 15 - shifts
    number = len(operands)
    scaled = ("requant64" if to.wide else "requantup", total, number, number + 1)
    type = np.int64 if to.wide else np.int32
    operands += [channel_numbers(graph, values.astype(type)) for values in (multipliers, shifts)]
    return limited(graph, scaled, operands, to.zero_point, to.low, to.high)


def requantize_double(graph: Lowering, sums: View, bias: View | None, reals: Array, to: Scaling) -> View:
    """Sums to int16 by real multipliers, in double precision, rounded once: TFLite's FULLY_CONNECTED."""
    operands, total = _biased(graph, sums, bias, True)
    rounded = ("roundawayi32", ("mul", ("tof64", total), len(operands)))
    operands.append(channel_numbers(graph, reals.astype(np.float64)))
    return limited(graph, rounded, operands, to.zero_point, to.low, to.high)


def _biased(graph: Lowering, sums: View, bias: View | None, wide: bool) -> tuple[list[View], Expression]:
    """The operands, and sums and bias as an expression of them."""
    total: Expression = ("toi64", 0) if wide and sums.type != I64 else 0
    if bias is None:
        return [sums], total
    one: Expression = ("toi64", 1) if wide and bias.type != I64 else 1
    return [sums, graph.reshape(bias, (sums.shape[-1],))], ("add", total, one)


def limited(graph: Lowering, expression: Expression, operands: list[View], zero: int, low: int, high: int) -> View:
    """An expression plus a zero point, clamped, as int16."""
    return graph.map(("limit", expression, len(operands)), *operands, graph.parameters(zero, low, high), type=I16)


def channel_numbers(graph: Lowering, values: Array) -> View:
    """A number for each channel, or one for all."""
    return graph.array(values if values.size > 1 else values.reshape(()))


def _check_padding(graph: Lowering, x: View, geometry: Geometry) -> None:
    """Padding is stored. Refused if that would be many times the image."""
    (top, left), (bottom, right) = geometry.before, geometry.after(*x.shape[1:3])
    images, height, width, channels = x.shape
    if images * (top + height + bottom) * (left + width + right) * channels > MOST_PADDING + PADDING * x.size:
        graph.refuse(f"its padding is more than {PADDING} times as large as the image")
