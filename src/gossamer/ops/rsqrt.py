"""RSQRT: 1 / sqrt(x), element by element; infinity at 0, NaN below. LiteRT takes float16 through XNNPACK alone.

int8 (TFLite's ``RsqrtEvalQuantizedInt8``): 1 / sqrt(x - zero_in) by Newton's method in fixed point, kept with 20 more
fractional bits, times ``1 / (sqrt(scale_in) * scale_out)`` as a 32-bit multiplier, plus the output's zero point,
saturated. int16, whose zero points must be 0, goes through a table of 513 float32 results and interpolation. Zero gives
the greatest value of the output; a negative real value is refused when it turns up.
"""

from __future__ import annotations

import numpy as np

from gossamer.ops._elementwise import checked_levels, lower_elementwise, not_negative
from gossamer.ops._fixed_point import inverse_sqrt_multiplier
from gossamer.ops._lookup_tables import apply_table, function_table, pairs, prepare_float_or_quantized
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import INT, Array, InvokeContext, OpDef, PrepareContext, Version
from gossamer.ops.op_signature import input_type
from gossamer.quantization import Quantization, multiply_by_quantized_multiplier, quantize_multiplier
from gossamer.schema.enums import TensorType

_TYPES = (TensorType.FLOAT32, TensorType.FLOAT16, TensorType.INT8, TensorType.INT16)
_FRACTION_BITS = 20

op = OpDef(
    "RSQRT",
    inputs=("x",),
    outputs=("output",),
    versions=(
        Version(1, "1.10.0"),
        Version(2, "2.5.0", input_type(0, TensorType.INT8)),
        Version(3, "2.15.0", input_type(0, TensorType.INT16)),
    ),
    types={"x": _TYPES, "output": _TYPES},
    quantizes=INT,
)


@op.prepare
def prepare(ctx: PrepareContext) -> Array | None:
    """The table of quantised types."""
    if not prepare_float_or_quantized(ctx):
        return None
    source, target = ctx.input(0).quantization, ctx.output().quantization
    if ctx.input(0).type == TensorType.INT8:
        return _table(source, target)
    greatest = np.float32(32767) * np.float32(target.scale)

    def inverse_root(x: Array) -> Array:
        root = np.sqrt(np.where(x > 0, x, 1))
        return np.where(x > 0, np.float32(1) / root, greatest)

    return function_table(ctx.input(0), ctx.output(), inverse_root)


def _table(source: Quantization, target: Quantization) -> Array:
    """Results for all int8 values in the order of the bytes; negative real values count as 0."""
    divisor = np.sqrt(np.float32(source.scale)) * np.float32(target.scale)
    multiplier, shift = quantize_multiplier(1.0 / float(divisor)) if divisor > 0 else (0, 0)
    value = np.maximum(np.arange(256, dtype=np.uint8).view(np.int8).astype(np.int64) - source.zero_point, 0)
    root_multiplier, root_shift = inverse_sqrt_multiplier(value)
    root = multiply_by_quantized_multiplier(np.ones(256, np.int64), root_multiplier, root_shift + _FRACTION_BITS)
    level = multiply_by_quantized_multiplier(root, multiplier, shift - _FRACTION_BITS) + target.zero_point
    result: Array = np.where(value == 0, 127, np.clip(level, -128, 127)).astype(np.int8)
    return result


@op.reference
def reference(ctx: InvokeContext) -> Array:
    x = ctx.value(0)
    if ctx.data is None:
        inverse: Array = np.reciprocal(np.sqrt(x))
        return inverse
    zero_point = ctx.input(0).quantization.zero_point
    if np.any(x < zero_point):
        ctx.fail(f"is only defined for positive values, got {int(x.min())} with zero point {zero_point}")
    return apply_table(x, ctx.data)


@op.lower
def lower(graph: Lowering) -> None:
    if graph.data is not None and graph.input(0).type == TensorType.INT8:
        levels = checked_levels(graph, graph.value(0), graph.input(0).quantization.zero_point)
        graph.result(graph.lookup(levels, graph.data))
        return
    if graph.data is not None:
        checked = not_negative(graph, graph.value(0))
        graph.result(graph.map(("interpolate", 0, 1), checked, pairs(graph, graph.data), type=TensorType.INT16))
        return
    lower_elementwise(graph, "rsqrt")
