"""What the six comparisons share.

Quantised operands are compared after TFLite's rescaling (``ComparisonWithScaling``): ``x - zero_point`` is shifted left
by 8 and multiplied by the scale as a 32-bit multiplier, with rounding, so values that differ by less than 1/256 real
units may count as equal. That is meant for scales below 1. LiteRT shifts by a negative number at greater ones, and then
knows little more of an operand than its sign; results are equal to LiteRT's there too. At a scale of just 1 it aborts;
here the comparison is right.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gossamer.ops._elementwise import prepare_binary, require_scale
from gossamer.ops._fixed_point import divide_by_any_pot
from gossamer.ops._rescaling import FIRST, SECOND, OperandScale, scale_in
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, InvokeContext, PrepareContext, TensorInfo
from gossamer.quantization import high_mul, quantize_multiplier
from gossamer.records import record
from gossamer.schema.enums import TensorType

NUMBERS = (
    TensorType.FLOAT32,
    TensorType.FLOAT16,
    TensorType.INT16,
    TensorType.INT32,
    TensorType.INT64,
    TensorType.UINT8,
    TensorType.INT8,
)
"""What every comparison takes."""

_LEFT_SHIFT = 8


@record(frozen=True)
class _LargeScale:
    """An operand whose scale is above 1, as LiteRT's undefined shift has it.

    Compilers count 64-bit shifts modulo 64: of scales like that of infinity, some are shifts that are defined."""

    zero_point: int
    multiplier: int
    shift: int

    def __call__(self, x: Array) -> Array:
        product = high_mul((x.astype(np.int64) - self.zero_point) << _LEFT_SHIFT, self.multiplier)
        return divide_by_any_pot(product, -self.shift)


@record(frozen=True)
class Rescaled:
    """How to bring two quantised operands to one scale."""

    first: OperandScale | _LargeScale
    second: OperandScale | _LargeScale


def prepare_comparison(ctx: PrepareContext, *, rescale_int16: bool = False) -> Rescaled | None:
    """Shapes and types, and how to rescale 8-bit operands, and int16 ones if told so and the first is quantised.

    8-bit operands without any quantization, at which TFLite aborts, are compared as they are.
    """
    prepare_binary(ctx, TensorType.BOOL)
    x, y = ctx.input(0), ctx.input(1)
    quantized = x.type in (TensorType.INT8, TensorType.UINT8) and (x.quantization or y.quantization)
    if quantized or (rescale_int16 and x.type == TensorType.INT16 and x.quantization):
        scales = require_scale(ctx, "x", x), require_scale(ctx, "y", y)
        litert_aborts = 1.0 in scales
        return Rescaled(_operand(x, litert_aborts), _operand(y, litert_aborts))
    return None


def _operand(tensor: TensorInfo, exact: bool) -> OperandScale | _LargeScale:
    zero_point = tensor.quantization.zero_point
    multiplier, shift = quantize_multiplier(tensor.quantization.scale)
    if shift > 0 and not exact:
        if (right := -shift & 63) > 31:
            return _LargeScale(zero_point, multiplier, shift)
        shift = -right
    return OperandScale(zero_point, _LEFT_SHIFT, multiplier, shift)


def compare(ctx: InvokeContext, comparison: Callable[..., Any]) -> Array:
    """The NumPy comparison of the inputs, after rescaling; strings are bytes, compared whole."""
    x, y = ctx.value(0), ctx.value(1)
    if ctx.data is not None:
        x, y = ctx.data.first(x), ctx.data.second(y)
    return np.asarray(comparison(x, y)).astype(np.bool_, copy=False)


def lower_comparison(graph: Lowering, function: str) -> None:
    """State the operator as a function of both inputs."""
    if graph.data is not None:
        rescaled: Rescaled = graph.data
        operands = [scale_in(graph, scale) for scale in (rescaled.first, rescaled.second)]
        expression = (function, ("scalein", FIRST, 2), ("scalein", SECOND, 3))
        graph.result(graph.map(expression, graph.value(0), graph.value(1), *operands, type=TensorType.BOOL))
        return
    graph.result(graph.map(function, graph.value(0), graph.value(1), type=TensorType.BOOL))
