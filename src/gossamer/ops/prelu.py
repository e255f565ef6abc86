"""PRELU: x where x >= 0, alpha * x elsewhere; alpha broadcasts to the shape of x.

float32, uint8, int8, and int16 with zero points 0. alpha has the type of x; for int16 it may also be int8 (TFLite reads
any alpha of an int16 PRELU as int8 bytes, even one declared int16; here an int16 alpha is int16).

Quantized (TFLite's reference_ops::Prelu): x - zero point is rescaled by scale / output scale where it is at least 0,
else its product with alpha - alpha's zero point by scale * alpha scale / output scale; both quotients are computed in
float32. The result is moved to the output's zero point and clamped to the type.
"""

from __future__ import annotations

import numpy as np

from gossamer.dtypes import type_name
from gossamer.ops._broadcast import broadcast_shape
from gossamer.ops._elementwise import lower_elementwise, require_scale
from gossamer.ops._fixed_point import wrap_int32
from gossamer.ops._rescaling import lower_slopes, scale_out, scale_ratio
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, Quantizes, versions
from gossamer.quantization import QuantizedMultiplier, integer_range, multiply_by_quantized_multiplier, saturated
from gossamer.records import record
from gossamer.schema.enums import TensorType

_TYPES = (TensorType.FLOAT32, TensorType.FLOAT16, TensorType.UINT8, TensorType.INT8, TensorType.INT16)

op = OpDef(
    "PRELU",
    inputs=("x", "alpha"),
    outputs=("output",),
    versions=versions("1.8.0"),
    types={"x": _TYPES, "alpha": _TYPES, "output": _TYPES},
    quantizes=Quantizes(weights=1),
)


@record(frozen=True)
class Multipliers:
    """(multiplier, shift) of both branches."""

    identity: QuantizedMultiplier
    alpha: QuantizedMultiplier


@op.prepare
def prepare(ctx: PrepareContext) -> Multipliers | None:
    x, alpha, output = ctx.input(0), ctx.input(1), ctx.output()
    ctx.set_type(0, x.type)
    if alpha.type != x.type and (x.type, alpha.type) != (TensorType.INT16, TensorType.INT8):
        ctx.fail(f"alpha must be of x's type {type_name(x.type)}, got {type_name(alpha.type)}")
    shape = broadcast_shape(ctx, x.shape, alpha.shape)
    if shape != x.shape:
        ctx.fail(f"alpha {list(alpha.shape)} must broadcast to x {list(x.shape)}, together they give {list(shape)}")
    ctx.set_shape(0, x.shape)
    if x.type in (TensorType.FLOAT32, TensorType.FLOAT16):
        return None
    alpha_scale = require_scale(ctx, "alpha", alpha)
    return Multipliers(scale_ratio(ctx, x, output), scale_ratio(ctx, x, output, alpha_scale))


@op.reference
def reference(ctx: InvokeContext) -> Array:
    x, alpha = ctx.value(0), ctx.value(1)
    if ctx.data is None:
        return np.where(x >= 0, x, x * alpha)
    q = x.astype(np.int64) - ctx.input(0).quantization.zero_point
    slope = alpha.astype(np.int64) - ctx.input(1).quantization.zero_point
    identity = multiply_by_quantized_multiplier(q, *ctx.data.identity)
    leaked = multiply_by_quantized_multiplier(wrap_int32(q * slope), *ctx.data.alpha)
    levels = np.where(q >= 0, identity, leaked) + ctx.output().quantization.zero_point
    return saturated(levels, ctx.output().type)


@op.lower
def lower(graph: Lowering) -> None:
    if graph.data is not None and graph.input(0).type == TensorType.INT16:
        if any(tensor.quantization.zero_point for tensor in (graph.input(0), graph.input(1), graph.output())):
            graph.refuse("a zero point is not 0")
        lower_slopes(graph, graph.data.identity, graph.data.alpha, graph.value(1))
        return
    if graph.data is None:
        lower_elementwise(graph, "prelu")
        return
    x, alpha, output = graph.input(0), graph.input(1), graph.output()
    zeros = [graph.array(np.array(tensor.quantization.zero_point, np.int32)) for tensor in (x, alpha)]
    low, high = integer_range(output.type)
    branches = [
        scale_out(graph, multiplier, output.quantization.zero_point, low, high)
        for multiplier in (graph.data.identity, graph.data.alpha)
    ]
    q, slope = ("sub", ("toi32", 0), 2), ("sub", ("toi32", 1), 3)
    is_negative = ("less", ("toi32", 0), 2)
    expression = ("select", is_negative, ("scaleout", ("mul", q, slope), 5), ("scaleout", q, 4))
    operands = (graph.value(0), graph.value(1), *zeros, *branches)
    graph.result(graph.map(expression, *operands, type=output.type))
