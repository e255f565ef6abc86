"""IF: run one of two subgraphs.

Input 0 is a bool of one element, the others are the inputs of both branches. Both have the operator's number of
outputs. The output shapes are static if they are static in both branches and equal, else they are those of the branch
that ran.
"""

from __future__ import annotations

import math

from gossamer.ops._control_flow import (
    allocate_callee,
    operands_of,
    places_of,
    require_outputs,
    set_output_shapes,
    values_of,
)
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, versions
from gossamer.schema import IfOptions, TensorType

op = OpDef(
    "IF",
    inputs=("condition", "operands*"),
    outputs=("results*",),
    versions=versions("1.15.0"),
    types={"condition": (TensorType.BOOL,)},
    options=IfOptions,
    tells_shapes=True,
    side_effects=True,
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    options: IfOptions = ctx.options
    condition = ctx.input(0)
    ctx.require(math.prod(condition.shape) == 1, f"condition must have one element, got shape {list(condition.shape)}")
    branches = {"then": options.then_subgraph_index, "else": options.else_subgraph_index}
    callees = []
    for role, index in branches.items():
        callee = allocate_callee(ctx, role, index, operands_of(ctx, 1))
        require_outputs(ctx, role, index, callee)
        callees.append(callee)
    shapes = [[output.shape for output in callee.outputs] for callee in callees]
    static = not any(callee.has_dynamic_tensors for callee in callees) and shapes[0] == shapes[1]
    set_output_shapes(ctx, shapes[0] if static else None)


@op.reference
def reference(ctx: InvokeContext) -> list[Array]:
    options: IfOptions = ctx.options
    taken = options.then_subgraph_index if ctx.value(0).reshape(-1)[0] else options.else_subgraph_index
    return ctx.subgraph(taken).call(values_of(ctx, 1), places_of(ctx))


@op.lower
def lower(graph: Lowering) -> None:
    options: IfOptions = graph.options
    operands = [graph.value(position) for position in range(1, len(graph.inputs))]
    subgraphs = (options.then_subgraph_index, options.else_subgraph_index)
    is_dynamic = any(output.is_dynamic for output in graph.outputs)
    condition = graph.constant(0) if is_dynamic else None
    if condition is not None:
        results = graph.call(subgraphs[0 if condition.reshape(-1)[0] else 1], operands)
    else:
        results = graph.branch([graph.value(0)], subgraphs, operands)
    for position, value in enumerate(results):
        graph.result(value, position)
