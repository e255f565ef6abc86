"""ATAN2: the angle of the point (x, y), atan2(y, x), in (-pi, pi], element by element.

Both inputs should have one shape. TFLite only checks that their ranks agree, and goes through x as it lies in memory:
an x of another shape with more elements than y gives the first of them.
"""

from __future__ import annotations

import math

import numpy as np

from gossamer.ops._elementwise import require_output_type, require_same_types
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, versions
from gossamer.schema.enums import TensorType
from gossamer.schema.options import ATan2Options

_TYPES = (TensorType.FLOAT32, TensorType.FLOAT64, TensorType.FLOAT16, TensorType.BFLOAT16)

op = OpDef(
    "ATAN2",
    inputs=("y", "x"),
    outputs=("angle",),
    versions=versions("2.10.0"),
    types={"y": _TYPES, "x": _TYPES, "angle": _TYPES},
    options=ATan2Options,
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    require_output_type(ctx, require_same_types(ctx))
    y, x = ctx.input(0).shape, ctx.input(1).shape
    ctx.require(
        len(y) == len(x) and math.prod(y) <= math.prod(x),
        f"x must have the rank of y and no fewer elements, got shapes {list(y)} of y and {list(x)} of x",
    )
    ctx.set_shape(0, y)


@op.reference
def reference(ctx: InvokeContext) -> Array:
    y = ctx.value(0)
    x = ctx.value(1).reshape(-1)[: y.size].reshape(y.shape)
    if y.dtype.itemsize == 2:
        return np.asarray(np.arctan2(y.astype(np.float32), x.astype(np.float32))).astype(y.dtype)
    return np.arctan2(y, x)


@op.lower
def lower(graph: Lowering) -> None:
    y = graph.value(0)
    x = graph.reshape(graph.value(1), (math.prod(graph.input(1).shape),)).slice(0, 0, y.size)
    graph.result(graph.map("atan2", y, graph.reshape(x, y.shape)))
