"""LOCAL_RESPONSE_NORMALIZATION: x * (bias + alpha * sum of squares of neighbours) ** -beta along the last axis.

float32 with four dimensions. The neighbours of channel c are channels c - radius to c + radius - 1 as far as they
exist: TFLite's reference kernel leaves out the last one that TensorFlow counts. Its optimized kernel, which is LiteRT's
default and machine code here, counts it.
"""

from __future__ import annotations

import numpy as np

from gossamer.ops._elementwise import prepare_unary
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, versions
from gossamer.schema.enums import TensorType
from gossamer.schema.options import LocalResponseNormalizationOptions

_TYPES = (TensorType.FLOAT32,)

op = OpDef(
    "LOCAL_RESPONSE_NORMALIZATION",
    inputs=("x",),
    outputs=("output",),
    versions=versions("1.5.0"),
    types={"x": _TYPES, "output": _TYPES},
    options=LocalResponseNormalizationOptions,
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    prepare_unary(ctx)
    shape = ctx.input(0).shape
    ctx.require(len(shape) == 4, f"x must have 4 dimensions, got {len(shape)} {list(shape)}")


@op.reference
def reference(ctx: InvokeContext) -> Array:
    x, options = ctx.value(0), ctx.options
    squares = np.square(x)
    total = np.zeros_like(x)
    depth = x.shape[-1]
    for offset in range(max(-options.radius, 1 - depth), min(options.radius, depth)):
        first, last = max(0, -offset), min(depth, depth - offset)
        total[..., first:last] += squares[..., first + offset : last + offset]
    scale = np.float32(options.bias) + np.float32(options.alpha) * total
    result: Array = x * np.power(scale, np.float32(-options.beta))
    return result


@op.lower
def lower(graph: Lowering) -> None:
    x, options = graph.value(0), graph.options
    if options.radius < 0:
        graph.refuse("the radius is negative")
    factors = {name: getattr(options, name) for name in ("radius", "bias", "alpha")}
    scale = graph.kernel("localresponse", x, shape=x.shape, type=x.type, **factors)
    graph.result(graph.map(("mul", 0, ("pow", 1, 2)), x, scale, graph.scalar(-options.beta, x)))
