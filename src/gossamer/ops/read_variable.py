"""READ_VARIABLE: the value of a resource variable.

A scalar output stands for an unknown shape too, so it takes the shape of the value; any other output shape is fixed
and must be that of the value. Reading a variable that nobody assigned is an error.
"""

from __future__ import annotations

from gossamer.ops._resource import HANDLE_TYPES, require_handle, resource_id
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
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    require_handle(ctx)
    if ctx.output().shape == ():
        ctx.set_dynamic(0)
    else:
        ctx.set_shape(0, ctx.output().shape)


@op.reference
def reference(ctx: InvokeContext) -> Array:
    number = resource_id(ctx)
    value = ctx.resources.variables.get(number)
    if value is None:
        ctx.fail(f"variable {number} has no value: ASSIGN_VARIABLE must run first")
    return value
