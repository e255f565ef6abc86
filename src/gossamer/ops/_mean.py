"""Quantized MEAN and SUM: TFLite's reference QuantizedMeanOrSum; in machine code, XNNPACK's.

The sum of the quantized values less n zero points is a 32-bit integer. It is rescaled by input scale / output scale in
the 32-bit arithmetic of MultiplyByQuantizedMultiplier, moved to the output's zero point and clamped. For a mean the
significand is divided by n beforehand, shifted left as far as the total shift allows so that no bits are lost.

XNNPACK (operators/reduce-nd.c) takes int8 and uint8 on TFLite's default path: round(float32(sum) * ratio + zero point),
to the nearest integer, halves to even, saturated. All is float32: the ratio is input scale / output scale, times 1 / n
for a mean, and the zero point is output zero point - (n * input zero point) * ratio. Axes that are no constant of the
file it leaves to TFLite's kernels. Sums are float32(sum) * ratio - n * input zero point * ratio, halves away from zero;
of means, the reference kernel makes most, and optimized_ops::Mean those of images over rows and columns that stay
dimensions: it divides the scale by n, rounds the zero points apart from the sum, and halves of whole vectors of 16
channels upwards.
"""

from __future__ import annotations

import numpy as np

from gossamer.ops._elementwise import require_scale
from gossamer.ops._fixed_point import wrap_int32
from gossamer.ops._reduce import (
    BYTES,
    axes_of,
    grouped_axes,
    prepare_reduction,
    reduced_elements,
    reduced_shape,
    resolved_axes,
)
from gossamer.ops._requantization import requantized_by_channels
from gossamer.ops._rescaling import scale_out
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, InvokeContext, PrepareContext
from gossamer.quantization import (
    QuantizedMultiplier,
    integer_range,
    multiply_by_quantized_multiplier,
    quantize_multiplier,
    round_half_away,
    saturated,
)
from gossamer.schema.enums import TensorType
from gossamer.views import Requantization, View


def prepare_sum(ctx: PrepareContext) -> QuantizedMultiplier | None:
    """Prepare of MEAN and SUM; of quantized types the multiplier from the input's scale to the output's."""
    prepare_reduction(ctx, accumulator=True)
    x, output = ctx.input(0), ctx.output()
    if x.type not in BYTES:
        return None
    ratio = require_scale(ctx, "input", x) / require_scale(ctx, "output", output)
    return quantize_multiplier(ratio)


def _divided(to: QuantizedMultiplier, n: int) -> QuantizedMultiplier:
    """The multiplier over n."""
    left = max(min(n.bit_length() - 1, 32, 31 + to.shift), 0)
    return QuantizedMultiplier((to.multiplier << left) // n, to.shift - left)


def quantized_sum(ctx: InvokeContext, *, mean: bool) -> Array:
    """Sum or mean of a quantized input; nothing sums up to level 0."""
    x, axes, keep_dims, output = ctx.value(0), axes_of(ctx), ctx.options.keep_dims, ctx.output()
    if x.size == 0:
        return np.zeros(reduced_shape(x.shape, axes, keep_dims), x.dtype)
    n = reduced_elements(x.shape, axes)
    to: QuantizedMultiplier = _divided(ctx.data, n) if mean else ctx.data
    total = np.add.reduce(x, axis=axes, dtype=np.int64, keepdims=keep_dims)
    centred = wrap_int32(total - ctx.input(0).quantization.zero_point * n)
    levels = multiply_by_quantized_multiplier(centred, *to)
    return saturated(levels + output.quantization.zero_point, output.type)


MOST = 1 << 23
"""Bytes whose sum fits 32 bits."""

_MOST_DIMENSIONS = 6
"""Of a tensor that XNNPACK takes."""


def lower_quantized_sum(graph: Lowering, *, mean: bool) -> None:
    """State the sum or the mean: of int8 and uint8 as XNNPACK computes it, where the axes are constant."""
    x, output = graph.input(0), graph.output()
    axes = resolved_axes(graph, graph.known(1), len(x.shape))
    count = reduced_elements(x.shape, axes) or 1  # of nothing, nothing is computed
    wide = x.type == TensorType.INT16
    if not axes or (len(x.shape) > _MOST_DIMENSIONS and not wide):
        graph.refuse("XNNPACK does not take it")
    if count > MOST and not wide:
        graph.refuse(f"there are more than {MOST} elements in a sum")
    view, axes = grouped_axes(graph, graph.value(0), axes)
    shape = [1 if axis in axes else size for axis, size in enumerate(view.shape)]

    def total(type: TensorType, *rescaling: View, of: View = view) -> View:
        return graph.kernel("quantized_reduce", of, *rescaling, shape=shape, type=type, reduction="sum", axes=axes)

    if not wide and not graph.input(1).is_stored:
        sums = total(TensorType.INT32, of=graph.cast(view, TensorType.INT16))
        y = _by_builtin_kernels(graph, sums, count, mean=mean, of_image=axes == (1, 2) and len(x.shape) == 4)
    elif wide and not mean:  # TFLite's optimized kernel, halves away from zero
        ratio = np.float32(x.quantization.scale) / np.float32(output.quantization.scale)
        operands = total(TensorType.INT32), graph.array(np.array(ratio, np.float32))
        y = graph.map(("roundaway", ("mul", ("tof32", 0), 1)), *operands, type=TensorType.INT16)
    elif wide:
        limits = integer_range(TensorType.INT16)
        to = scale_out(graph, _divided(graph.data, count), output.quantization.zero_point, *limits)
        y = graph.map("scaleout", total(TensorType.INT32), to, type=TensorType.INT16)
    else:
        scale = np.float32(x.quantization.scale) / np.float32(output.quantization.scale)
        if mean:
            scale *= np.float32(1) / np.float32(count)
        zero_point = np.float32(output.quantization.zero_point)
        zero_point -= np.float32(count * x.quantization.zero_point) * scale
        y = total(x.type, graph.parameters(float(scale), float(zero_point)))
    graph.result(graph.reshape(y, output.shape))


def _by_builtin_kernels(graph: Lowering, sums: View, count: int, *, mean: bool, of_image: bool) -> View:
    """Bytes of int32 sums of ``count`` bytes, as TFLite's kernels make them."""
    x, output = graph.input(0).quantization, graph.output()
    scale, of_output = np.float32(x.scale), np.float32(output.quantization.scale)
    zero_point = output.quantization.zero_point
    if not mean:
        ratio = scale / of_output
        moved = np.float32(-x.zero_point) * ratio * np.float32(count)
        numbers = [graph.array(np.array(number, np.float32)) for number in (ratio, moved, zero_point)]
        real = ("add", ("mul", ("tof32", 0), 1), 2)
        return graph.map(("add", ("roundaway", real), 3), sums, *numbers, type=output.type)
    low, high = integer_range(output.type)
    if of_image and graph.options.keep_dims:
        zero_point -= int(round_half_away(float(np.float32(x.zero_point) * scale / of_output)))
        multiplier, shift = map(np.array, quantize_multiplier(float(scale / (np.float32(count) * of_output))))
        bounds = Requantization(0, 0, np.ones(1, np.float32), zero_point, low, high)
        return requantized_by_channels(graph, sums, 16, multiplier, shift, bounds, output.type)
    centred = graph.map("sub", sums, graph.scalar(count * x.zero_point, sums))
    parameters = scale_out(graph, _divided(graph.data, count), zero_point, low, high)
    return graph.map(("scaleout", 0, 1), centred, parameters, type=output.type)
