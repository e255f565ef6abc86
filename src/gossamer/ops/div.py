"""DIV: x / y, element by element, with broadcasting and a fused activation.

Floats are clamped to the activation, or without one to their finite range: 1 / 0 gives the largest number, 0 / 0 is
NaN. (XNNPACK leaves infinity; LiteRT takes float16 through it alone.)

int32 truncates towards zero; -2**31 / -1 saturates. A divisor of zero among integers is refused when it turns up.

uint8, int8 and int16 (TFLite's ``DivElementwise``): with ``a = x - zero_x`` and ``b = y - zero_y``, both negated where
b is negative, 1 / b is found by Newton's method in fixed point, a is shifted left as far as it goes and multiplied by
it, and the quotient is brought back by the multiplier ``scale_x / (scale_y * scale_out)`` and all shifts at once; then
the output's zero point and the clamp. Where the shifts to the right come to more than 31, as they may for quotients far
below one step of the output, LiteRT shifts by a number that C++ does not define: 0 / y then is one step above 0, other
small quotients are arbitrary, and all are equal to LiteRT's here. The divisor must not be quantized per channel.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer.dtypes import numpy_dtype
from gossamer.ops._elementwise import (
    fused_activation,
    nonzero_divisor,
    prepare_binary,
    quantized_limits,
    require_nonzero,
    require_scale,
)
from gossamer.ops._fixed_point import quotients
from gossamer.ops._gather import slices
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, InPlace, InvokeContext, OpDef, PrepareContext, Version
from gossamer.ops.op_signature import broadcasts_above
from gossamer.quantization import (
    integer_range,
    quantize_multiplier,
)
from gossamer.records import record
from gossamer.schema.enums import TensorType
from gossamer.schema.options import DivOptions
from gossamer.views import View

_QUANTIZED = (TensorType.INT8, TensorType.UINT8, TensorType.INT16)
_TYPES = (TensorType.FLOAT32, TensorType.FLOAT16, TensorType.INT32, *_QUANTIZED)

op = OpDef(
    "DIV",
    inputs=("x", "y"),
    outputs=("output",),
    versions=(
        Version(1, "1.6.0"),
        Version(2, "2.3.0", broadcasts_above(4)),
    ),
    types={"x": _TYPES, "y": _TYPES, "output": _TYPES},
    options=DivOptions,
    in_place=InPlace.INPUT_0 | InPlace.INPUT_1,
)


@record(frozen=True)
class _Quantized:
    zero_points: tuple[int, int, int]
    multiplier: int
    shift: int
    low: int
    high: int
    dtype: np.dtype[Any]

    @property
    def numbers(self) -> tuple[int, ...]:
        """Those of `gossamer.ops._fixed_point.quotients`."""
        zero_x, _, zero_output = self.zero_points
        return zero_x, self.multiplier, self.shift, zero_output, self.low, self.high


@op.prepare
def prepare(ctx: PrepareContext) -> _Quantized | None:
    prepare_binary(ctx)
    x, y, output = ctx.input(0), ctx.input(1), ctx.output()
    if output.type in (TensorType.INT32, *_QUANTIZED):
        ctx.require(not y.quantization.per_channel, f"y has {y.quantization.scales.size} scales, must have one")
    if output.type not in _QUANTIZED:
        return None
    low, high = quantized_limits(ctx, ctx.options.fused_activation_function)
    divisor_scale = np.float32(require_scale(ctx, "y", y)) * np.float32(require_scale(ctx, "output", output))
    ctx.require(divisor_scale > 0, "the product of the scales of y and output is too small for float32")
    multiplier, shift = quantize_multiplier(float(np.float32(require_scale(ctx, "x", x)) / divisor_scale))
    zero_points = x.quantization.zero_point, y.quantization.zero_point, output.quantization.zero_point
    return _Quantized(zero_points, multiplier, shift, low, high, numpy_dtype(output.type))


@op.reference
def reference(ctx: InvokeContext) -> Array:
    x, y = ctx.value(0), ctx.value(1)
    if ctx.data is not None:
        require_nonzero(ctx, y, ctx.data.zero_points[1])
        return _divide_quantized(x, y, ctx.data)
    if x.dtype == np.int32:
        require_nonzero(ctx, y)
        wide = x.astype(np.int64)
        magnitude = np.abs(wide) // np.abs(y.astype(np.int64))
        quotient = np.where((wide < 0) != (y < 0), -magnitude, magnitude)
        return fused_activation(np.minimum(quotient, (1 << 31) - 1).astype(np.int32), _activation(ctx))
    return fused_activation(np.divide(x, y), _activation(ctx))


def _activation(ctx: InvokeContext) -> int:
    return int(ctx.options.fused_activation_function)


def _divide_quantized(x: Array, y: Array, quantized: _Quantized) -> Array:
    return quotients(x, y.astype(np.int64) - quantized.zero_points[1], quantized.numbers).astype(quantized.dtype)


@op.lower
def lower(graph: Lowering) -> None:
    if graph.output().type in (TensorType.INT8, TensorType.UINT8):
        graph.result(_lower_bytes(graph, graph.data))
        return
    if graph.output().type == TensorType.INT16:
        graph.result(_lower_int16(graph, graph.data))
        return
    is_integer = graph.output().type == TensorType.INT32
    quotient = graph.map("div", graph.value(0), nonzero_divisor(graph) if is_integer else graph.value(1))
    if graph.output().type == TensorType.FLOAT32:
        quotient = graph.map("finite", quotient)
    graph.result(graph.activation(quotient, graph.options.fused_activation_function))


def _lower_int16(graph: Lowering, quantized: _Quantized) -> View:
    divisor, numbers = _divisor(graph, quantized.zero_points[1]), graph.parameters(*quantized.numbers)
    return graph.map(("quotient", ("toi32", 0), 1, 2), graph.value(0), divisor, numbers, type=TensorType.INT16)


def _divisor(graph: Lowering, zero: int) -> View:
    """y less its zero point, which is not 0: that is known now, or found when the kernel runs."""
    known, y = graph.constant(1), graph.value(1)
    if known is not None and (known == zero).any():
        graph.refuse("y has zeros")
    divisor = graph.map(("sub", ("toi32", 0), 1), y, graph.array(np.array(zero, np.int32)), type=TensorType.INT32)
    return divisor if known is not None else graph.kernel("nonzero", divisor, shape=y.shape, type=TensorType.INT32)


def _lower_bytes(graph: Lowering, quantized: _Quantized) -> View:
    """All quotients that there are, looked up."""
    x, zero = graph.value(0), quantized.zero_points[1]
    least, greatest = integer_range(x.type)
    levels = np.arange(least, greatest + 1)
    quotients = _divide_quantized(levels[:, None], np.where(levels == zero, zero + 1, levels), quantized)
    start, size = (graph.array(np.array(n, np.int32)) for n in (zero - least - levels.size * least, levels.size))
    divisor = _divisor(graph, zero)
    place = ("add", ("add", ("mul", ("toi32", 0), 2), 1), 3)
    places = graph.map(place, x, divisor, size, start, type=TensorType.INT32)
    return slices(graph, graph.array(quotients.reshape(-1), x.type), places, 0)
