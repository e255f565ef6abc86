"""LEAKY_RELU: x where x > 0, alpha * x elsewhere; the option ``alpha`` is 0 unless given, and may be negative.

float32, float16, uint8, int8 and int16 (zero points 0); the output has the input's type and shape.

Quantized (TFLite's QuantizeLeakyRelu): q - zero point is rescaled by scale / output scale where it is at least 0, else
by scale * alpha / output scale, both quotients in float32, then moved to the output's zero point and clamped to the
type. A negative alpha scales by its magnitude, and the result is negated.
"""

from __future__ import annotations

import numpy as np

from gossamer.ops import _xnnpack_elementwise
from gossamer.ops._elementwise import prepare_unary, require_symmetric, table_of
from gossamer.ops._rescaling import lower_slopes, scale_ratio
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, Quantizes, Version
from gossamer.ops.op_signature import input_type
from gossamer.quantization import QuantizedMultiplier, multiply_by_quantized_multiplier, saturated
from gossamer.records import record
from gossamer.schema.enums import TensorType
from gossamer.schema.options import LeakyReluOptions

_TYPES = (TensorType.FLOAT32, TensorType.FLOAT16, TensorType.UINT8, TensorType.INT8, TensorType.INT16)

op = OpDef(
    "LEAKY_RELU",
    inputs=("x",),
    outputs=("output",),
    versions=(
        Version(1, "1.13.1"),
        Version(2, "2.3.0", input_type(0, TensorType.INT16)),
    ),
    types={"x": _TYPES, "output": _TYPES},
    options=LeakyReluOptions,
    quantizes=Quantizes(same_scale_16=True),
)


@record(frozen=True)
class Multipliers:
    """Those of both branches; ``sign`` is that of alpha."""

    identity: QuantizedMultiplier
    alpha: QuantizedMultiplier
    sign: int


@op.prepare
def prepare(ctx: PrepareContext) -> Multipliers | None:
    prepare_unary(ctx)
    x, output = ctx.input(0), ctx.output()
    if x.type in (TensorType.FLOAT32, TensorType.FLOAT16):
        return None
    if x.type == TensorType.INT16:
        require_symmetric(ctx, x, output)
    multiplier, shift = scale_ratio(ctx, x, output, ctx.options.alpha)
    return Multipliers(
        scale_ratio(ctx, x, output), QuantizedMultiplier(abs(multiplier), shift), -1 if multiplier < 0 else 1
    )


@op.reference
def reference(ctx: InvokeContext) -> Array:
    x = ctx.value(0)
    if ctx.data is None:
        return np.where(x > 0, x, x * x.dtype.type(ctx.options.alpha))
    multipliers: Multipliers = ctx.data
    q = x.astype(np.int64) - ctx.input(0).quantization.zero_point
    identity = multiply_by_quantized_multiplier(q, *multipliers.identity)
    leaked = multipliers.sign * multiply_by_quantized_multiplier(q, *multipliers.alpha)
    levels = np.where(q >= 0, identity, leaked) + ctx.output().quantization.zero_point
    return saturated(levels, ctx.output().type)


@op.lower
def lower(graph: Lowering) -> None:
    """8 bits by a table: as in `_xnnpack_elementwise`, beyond the scales that it takes as the reference kernel."""
    if graph.data is not None and graph.input(0).type == TensorType.INT16:
        lower_slopes(graph, graph.data.identity, graph.data.alpha, negates=graph.data.sign < 0)
        return
    x = graph.value(0)
    if graph.data is not None:
        # XNNPACK takes no slope that is 0, nor one that is not normal.
        alpha = np.float32(graph.options.alpha)
        is_normal = np.finfo(np.float32).tiny <= abs(alpha) < np.inf
        table = _xnnpack_elementwise.rescaling_table(graph, float(alpha)) if is_normal else None
        graph.result(graph.lookup(x, table_of(graph) if table is None else table))
        return
    graph.result(graph.map("prelu", x, graph.scalar(graph.options.alpha, x)))
