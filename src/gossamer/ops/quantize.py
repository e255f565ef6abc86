"""QUANTIZE: floats to the integers of the output's quantization, or integers from one quantization to another.

The output must have a quantization. float32 to uint8, int8, int16, int4 or uint4: round(x / scale) + zero point in
float32, halves away from zero, clamped to the type; NaN gives the least value. (Numbers beyond int32 are undefined in
TFLite, which turns large positive ones into the least value, too.) With several scales (uint8, int8, int16 only), each
index along ``quantized_dimension`` has its own scale, and its own zero point or the only one.

Integer to integer: q - zero point times input scale / output scale (in double precision) in the 32-bit arithmetic of
MultiplyByQuantizedMultiplier, moved to the output's zero point and clamped. uint8 and int8 go to uint8, int8 or int16;
int16 to int8, int16 (zero points 0) or int32; int32 to int8 or int16.
"""

from __future__ import annotations

import numpy as np

from gossamer.dtypes import type_name
from gossamer.ops._elementwise import refuse_quantized, require_scale, require_symmetric
from gossamer.ops._fixed_point import saturated
from gossamer.ops._per_channel import along_dimension, require_channels
from gossamer.ops.lowering import Expression, Lowering
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, Version
from gossamer.ops.op_signature import in_or_out, output_per_channel, output_type
from gossamer.quantization import (
    Quantization,
    multiply_by_quantized_multiplier,
    quantize_multiplier,
    round_half_away,
)
from gossamer.records import record
from gossamer.schema.enums import TensorType
from gossamer.schema.options import QuantizeOptions

_BYTES = (TensorType.UINT8, TensorType.INT8, TensorType.INT16)
_OUTPUTS = {
    TensorType.FLOAT32: (*_BYTES, TensorType.INT4, TensorType.UINT4),
    TensorType.UINT8: _BYTES,
    TensorType.INT8: _BYTES,
    TensorType.INT16: (TensorType.INT8, TensorType.INT16, TensorType.INT32),
    TensorType.INT32: (TensorType.INT8, TensorType.INT16),
}
_ELEMENTS = {TensorType.UINT8: "u8", TensorType.INT8: "i8", TensorType.INT16: "i16"}

op = OpDef(
    "QUANTIZE",
    inputs=("x",),
    outputs=("output",),
    versions=(
        Version(1, "1.14.0"),
        Version(2, "1.15.0", output_type(0, TensorType.INT16)),
        Version(3, "2.7.0", output_per_channel(0, least=2)),
        Version(4, "2.21.0", in_or_out(TensorType.INT4)),
        Version(5, "2.21.0", in_or_out(TensorType.UINT4)),
        Version(6, "2.21.0"),
    ),
    types={
        "x": tuple(_OUTPUTS),
        "output": (*_BYTES, TensorType.INT4, TensorType.UINT4, TensorType.INT32),
    },
    options=QuantizeOptions,
)


@record(frozen=True)
class Rescaling:
    """Multiplier from integers to integers."""

    multiplier: int
    shift: int


@op.prepare
def prepare(ctx: PrepareContext) -> Rescaling | None:
    x, output = ctx.input(0), ctx.output()
    if output.type not in _OUTPUTS[x.type]:
        allowed = ", ".join(type_name(one) for one in _OUTPUTS[x.type])
        ctx.fail(f"{type_name(x.type)} can become {allowed}; the output is {type_name(output.type)}")
    ctx.require(output.quantization, "output needs quantization")
    ctx.set_shape(0, x.shape)
    if x.type == TensorType.FLOAT32:
        if output.quantization.per_channel:
            if output.type not in _BYTES:
                ctx.fail(f"{type_name(output.type)} must have one scale, got {output.quantization.scales.size}")
            require_channels(ctx, "output", output, x.shape)
        else:
            require_scale(ctx, "output", output)
        return None
    if x.type == output.type == TensorType.INT16:
        require_symmetric(ctx, x, output)
    ratio = require_scale(ctx, "input", x) / require_scale(ctx, "output", output)
    return Rescaling(*quantize_multiplier(ratio))


@op.reference
def reference(ctx: InvokeContext) -> Array:
    x, output = ctx.value(0), ctx.output()
    if ctx.data is None:
        return saturated(np.nan_to_num(_levels(x, output.quantization), nan=-np.inf), output.type)
    q = x.astype(np.int64) - ctx.input(0).quantization.zero_point
    levels = multiply_by_quantized_multiplier(q, ctx.data.multiplier, ctx.data.shift) + output.quantization.zero_point
    return saturated(levels, output.type)


def _levels(x: Array, quantization: Quantization) -> Array:
    scales, points = along_dimension(quantization, x.ndim)
    levels: Array = np.add(round_half_away(x / scales), points, dtype=np.float64)
    return levels


@op.lower
def lower(graph: Lowering) -> None:
    """One scale for bytes as XNNPACK has it: the quotient is a product with 1 / scale, halves are rounded to even."""
    refuse_quantized(graph)
    output, name = graph.output(), _ELEMENTS.get(graph.output().type)
    if name is None:
        graph.refuse(f"{type_name(output.type)} runs on the reference kernel")
    expression: Expression = (f"quantize{name}", 0, 1, 2)
    scales, points = along_dimension(output.quantization, len(output.shape))
    if output.type != TensorType.INT16 and not output.quantization.per_channel:
        expression, scales = ("add", ("round", ("mul", 0, 1)), 2), np.float32(1) / scales
    operands = (graph.value(0), graph.array(scales), graph.array(points))
    graph.result(graph.map(expression, *operands, type=output.type))
