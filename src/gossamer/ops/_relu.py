"""The RELU family: clamps to a fixed real range.

Quantized values are rescaled to the output's scale, round(multiplier * (q - input zero point)) + output zero point in
the 32-bit arithmetic of MultiplyByQuantizedMultiplier, and clamped to the levels of the two bounds and to the type
(TFLite's QuantizedReluX). The quotient of the scales and the levels are computed in float32.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.dtypes import numpy_dtype
from gossamer.ops._activation import clamp
from gossamer.ops._elementwise import prepare_unary, require_symmetric
from gossamer.ops._lookup_tables import look_up
from gossamer.ops._rescaling import FIRST, lower_rescaled, scale_ratio
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import InvokeContext, PrepareContext
from gossamer.quantization import (
    INT32_MAX,
    INT32_MIN,
    QuantizedMultiplier,
    integer_range,
    multiply_by_quantized_multiplier,
    round_half_away,
)
from gossamer.records import record, replace
from gossamer.schema.enums import TensorType

Array = NDArray[Any]


@record(frozen=True)
class QuantizedClamp:
    """The rescaling and the clamp of a quantized operator; ``table`` has the results for 8-bit values."""

    multiplier: QuantizedMultiplier
    low: int
    high: int
    input_zero: int
    output_zero: int
    table: Array | None = None

    def __call__(self, q: Array) -> NDArray[np.int64]:
        """The clamped levels, in int64."""
        scaled = multiply_by_quantized_multiplier(q.astype(np.int64) - self.input_zero, *self.multiplier)
        levels: NDArray[np.int64] = np.minimum(np.maximum(scaled + self.output_zero, self.low), self.high)
        return levels


def prepare_clamp(ctx: PrepareContext, low: float, high: float) -> QuantizedClamp | None:
    """Check the operands of a one-input clamp and set its output; data for quantized types."""
    prepare_unary(ctx)
    x, output = ctx.input(0), ctx.output()
    if x.type in (TensorType.FLOAT32, TensorType.FLOAT16):
        return None
    if x.type == TensorType.INT16:
        require_symmetric(ctx, x, output)
    multiplier = scale_ratio(ctx, x, output)
    input_zero, output_zero = x.quantization.zero_point, output.quantization.zero_point
    scale = np.float32(output.quantization.scale)
    least, greatest = integer_range(x.type)
    with np.errstate(over="ignore", invalid="ignore"):
        bounds = np.clip(round_half_away(np.array([low, high], np.float32) / scale), INT32_MIN, INT32_MAX)
    least, greatest = max(least, output_zero + int(bounds[0])), min(greatest, output_zero + int(bounds[1]))
    data = QuantizedClamp(multiplier, least, greatest, input_zero, output_zero)
    if x.type == TensorType.INT16:
        return data
    dtype = numpy_dtype(x.type)
    return replace(data, table=data(np.arange(256, dtype=np.uint8).view(dtype)).astype(dtype))


def clamped(ctx: InvokeContext, low: float, high: float) -> Array:
    """The input, clamped; NaN stays NaN."""
    x = ctx.value(0)
    data: QuantizedClamp | None = ctx.data
    if data is None:
        return clamp(x, low, high)
    if data.table is not None:
        return look_up(x, data.table)
    return data(x).astype(x.dtype)


def lower_clamp(graph: Lowering, data: QuantizedClamp) -> None:
    """State the clamp of an int16 operand."""
    lower_rescaled(graph, FIRST, data.multiplier, data.low, data.high, graph.value(0))
