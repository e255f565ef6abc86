"""Real functions of int8 and int16 through TFLite's lookup tables: EXP, LOG and RSQRT, and when a table is needed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gossamer.ops._elementwise import prepare_unary, require_scale, require_symmetric
from gossamer.ops._fixed_point import byte_table, in_double, interpolate, interpolation_table, look_up
from gossamer.ops.op_def import Array, PrepareContext, TensorInfo
from gossamer.schema.enums import TensorType


def prepare_unary_quantized(ctx: PrepareContext) -> bool:
    """`prepare_unary`, and whether the operand is quantized: int8 always, int16 if it has a scale, with zero points of
    0. Raises for a quantized operand without one scale above 0."""
    prepare_unary(ctx)
    x, output = ctx.input(0), ctx.output()
    if x.type != TensorType.INT8 and not (x.type == TensorType.INT16 and x.quantization):
        return False
    require_scale(ctx, "input", x)
    require_scale(ctx, "output", output)
    if x.type == TensorType.INT16:
        require_symmetric(ctx, x, output)
    return True


def prepare_float_or_quantized(ctx: PrepareContext) -> bool:
    """The same for operators that have no use for plain integers: int16 must be quantized too."""
    quantized = prepare_unary_quantized(ctx)
    if not quantized and ctx.input(0).type == TensorType.INT16:
        require_scale(ctx, "input", ctx.input(0))
    return quantized


def function_table(x: TensorInfo, output: TensorInfo, function: Callable[[Array], Array]) -> Array:
    """The table of a real function, given in float64, for int8 or int16 operands: `apply_table` reads it."""
    single = in_double(function)
    if x.type == TensorType.INT8:
        return byte_table(x, output, single)
    source, target = x.quantization, output.quantization
    return interpolation_table(single, (source.scale, source.zero_point), (target.scale, target.zero_point))


def apply_table(x: Array, table: Array) -> Array:
    """Values of int8 looked up, of int16 interpolated."""
    return look_up(x, table) if x.dtype == np.int8 else interpolate(x, table)
