"""What the six comparisons share.

Quantised operands with different scales are compared after TFLite's rescaling (``ComparisonWithScaling``): ``x -
zero_point`` is shifted left by 8 and multiplied by the scale as a 32-bit multiplier, with rounding, so values that
differ by less than 1/256 real units may count as equal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gossamer.ops._elementwise import prepare_binary, require_scale
from gossamer.ops._rescale import OperandScale
from gossamer.ops.op_def import Array, InvokeContext, PrepareContext, TensorInfo
from gossamer.quantization import quantize_multiplier
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


@dataclass(frozen=True)
class Rescaled:
    """How to bring two quantised operands to one scale."""

    first: OperandScale
    second: OperandScale


def prepare_comparison(ctx: PrepareContext, *, rescale_int16: bool = False) -> Rescaled | None:
    """Shapes and types, and how to rescale 8-bit operands, and int16 ones if told so and the first is quantised.

    8-bit operands without any quantization, at which TFLite aborts, are compared as they are.
    """
    prepare_binary(ctx, TensorType.BOOL)
    x, y = ctx.input(0), ctx.input(1)
    quantized = x.type in (TensorType.INT8, TensorType.UINT8) and (x.quantization or y.quantization)
    if quantized or (rescale_int16 and x.type == TensorType.INT16 and x.quantization):
        return Rescaled(_operand(ctx, x, "x"), _operand(ctx, y, "y"))
    return None


def _operand(ctx: PrepareContext, tensor: TensorInfo, name: str) -> OperandScale:
    multiplier, shift = quantize_multiplier(require_scale(ctx, name, tensor))
    return OperandScale(tensor.quantization.zero_point, _LEFT_SHIFT, multiplier, shift)


def compare(ctx: InvokeContext, comparison: Callable[..., Any]) -> Array:
    """The NumPy comparison of the inputs, after rescaling; strings are bytes, compared whole."""
    x, y = ctx.value(0), ctx.value(1)
    if ctx.data is not None:
        x, y = ctx.data.first(x), ctx.data.second(y)
    result: Array = comparison(x, y, dtype=np.bool_ if x.dtype == object else None)
    return result
