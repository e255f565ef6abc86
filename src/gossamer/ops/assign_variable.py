"""ASSIGN_VARIABLE: store a value, with its type and shape, in a resource variable."""

from __future__ import annotations

from gossamer.ops._resource import HANDLE_TYPES, require_handle, resource_id
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, versions
from gossamer.schema import AssignVariableOptions

op = OpDef(
    "ASSIGN_VARIABLE",
    inputs=("handle", "value"),
    outputs=(),
    versions=versions("2.6.0"),
    types={"handle": HANDLE_TYPES},
    options=AssignVariableOptions,
    side_effects=True,
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    require_handle(ctx)


@op.reference
def reference(ctx: InvokeContext) -> tuple[Array, ...]:
    ctx.resources.variables[resource_id(ctx)] = ctx.value(1).copy()
    return ()


@op.lower
def lower(graph: Lowering) -> None:
    graph.copy(graph.value(1), into=graph.resource(0, graph.input(1)))
