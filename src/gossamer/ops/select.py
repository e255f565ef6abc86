"""SELECT: x where the condition holds, y elsewhere; x and y have one shape and type.

The condition is bool: of the same shape, a scalar, or of rank 1 with one element for each row of x. Inputs that all
have one element, in whatever shapes, leave the output in the shape that it has. Quantization plays no part.
"""

from __future__ import annotations

import numpy as np

from gossamer.ops._select import TYPES, require_types, single_element_shape
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import SAME_SCALE, Array, InvokeContext, OpDef, PrepareContext, Shape, Version
from gossamer.ops.op_signature import input_type, rank_is
from gossamer.schema.enums import TensorType
from gossamer.schema.options import SelectOptions

op = OpDef(
    "SELECT",
    inputs=("condition", "x", "y"),
    outputs=("output",),
    versions=(
        Version(1, "1.14.0"),
        Version(2, "1.14.0", input_type(0, TensorType.INT8)),
        Version(3, "2.12.0", rank_is(0, 5) | rank_is(1, 5) | rank_is(2, 5)),
        Version(4, "2.12.0", input_type(0, TensorType.UINT32)),
    ),
    types={"condition": (TensorType.BOOL,), "x": TYPES, "y": TYPES, "output": TYPES},
    options=SelectOptions,
    quantizes=SAME_SCALE,
)


@op.prepare
def prepare(ctx: PrepareContext) -> tuple[Shape, Shape]:
    """The shapes of the condition, such that it broadcasts, and of the output."""
    require_types(ctx)
    shape = single_element_shape(ctx)
    if shape is not None:
        ctx.set_shape(0, shape)
        return shape, shape
    condition, x, y = ctx.input(0).shape, ctx.input(1).shape, ctx.input(2).shape
    ctx.require(x == y, f"x and y must have the same shape, got {list(x)} and {list(y)}")
    ctx.require(
        condition in ((), x, x[:1]),
        f"condition must have the shape of x {list(x)}, one value for each row of it, or be a scalar, "
        f"got {list(condition)}",
    )
    ctx.set_shape(0, x)
    return (condition if condition == x else condition + (1,) * (len(x) - len(condition))), x


@op.reference
def reference(ctx: InvokeContext) -> Array:
    condition_shape, shape = ctx.data
    condition, x, y = ctx.value(0).reshape(condition_shape), ctx.value(1).reshape(shape), ctx.value(2).reshape(shape)
    result: Array = np.where(condition, x, y)
    return result


@op.lower
def lower(graph: Lowering) -> None:
    condition_shape, shape = graph.data
    condition = graph.reshape(graph.value(0), condition_shape)
    x, y = graph.reshape(graph.value(1), shape), graph.reshape(graph.value(2), shape)
    graph.result(graph.map("select", condition, x, y, type=x.type))
