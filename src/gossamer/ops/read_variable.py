"""READ_VARIABLE: the value of a resource variable.

An output that the model stores as a scalar stands for an unknown shape too, so it takes the shape of the value, anew
with each invocation. Any other output shape is fixed and the value must have as many elements: it comes out in the
shape of the output. Reading a variable that nobody assigned is an error.
"""

from __future__ import annotations

import math

from gossamer.ops._resource import HANDLE_TYPES, require_handle, resource_id
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, versions
from gossamer.schema import ReadVariableOptions

op = OpDef(
    "READ_VARIABLE",
    inputs=("handle",),
    outputs=("value",),
    versions=versions("2.6.0"),
    types={"handle": HANDLE_TYPES},
    options=ReadVariableOptions,
    side_effects=True,
    tells_shapes=True,
)


@op.prepare
def prepare(ctx: PrepareContext) -> bool:
    require_handle(ctx)
    # Once it has run, the output has the shape of the value.
    unknown = bool(ctx.previous) or ctx.output().shape == ()
    if unknown:
        ctx.set_dynamic(0)
    else:
        ctx.set_shape(0, ctx.output().shape)
    return unknown


@op.reference
def reference(ctx: InvokeContext) -> Array:
    number = resource_id(ctx)
    value = ctx.resources.variables.get(number)
    if value is None:
        ctx.fail(f"variable {number} has no value: ASSIGN_VARIABLE must run first")
    shape = ctx.output().shape
    return value if ctx.data or value.size != math.prod(shape) else value.reshape(shape)


@op.lower
def lower(graph: Lowering) -> None:
    graph.result(graph.copy(graph.resource(0, graph.output())))
