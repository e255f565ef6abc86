"""ADD_N: the sum of two or more tensors of one shape and type, added from first to last.

float32 overflows to infinity, int32 wraps.
"""

from __future__ import annotations

import math
from functools import reduce

import numpy as np

from gossamer.ops._elementwise import require_same_types
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, versions
from gossamer.schema.enums import TensorType
from gossamer.schema.options import AddNOptions

_TYPES = (TensorType.FLOAT32, TensorType.INT32)

op = OpDef(
    "ADD_N",
    inputs=("inputs*",),
    outputs=("sum",),
    versions=versions("1.14.0"),
    types={"inputs": _TYPES, "sum": _TYPES},
    options=AddNOptions,
    reserved_tensors=(1, 0),
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    ctx.require(len(ctx.inputs) >= 2, f"needs 2 or more inputs, got {len(ctx.inputs)}")
    ctx.set_type(0, require_same_types(ctx))
    shape = ctx.input(0).shape
    for position in range(1, len(ctx.inputs)):
        other = ctx.input(position).shape
        ctx.require(other == shape, f"input {position} must have the shape of input 0 {list(shape)}, got {list(other)}")
    # TFLite's partial sums, one for each thread; it runs one thread unless told otherwise.
    ctx.temporary(ctx.input(0).type, (math.prod(shape),))
    ctx.set_shape(0, shape)


@op.reference
def reference(ctx: InvokeContext) -> Array:
    return reduce(np.add, (ctx.value(position) for position in range(len(ctx.inputs))))


@op.lower
def lower(graph: Lowering) -> None:
    total = graph.value(0)
    for position in range(1, len(graph.inputs)):
        total = graph.map("add", total, graph.value(position))
    graph.result(total)
