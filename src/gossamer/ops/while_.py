"""WHILE: run a body subgraph as long as a condition subgraph gives true.

The inputs are the loop variables; the outputs are their values after the last iteration, or the inputs if there was
none. The condition has one output, a bool of shape [] or [1]. The body maps loop variables to loop variables. If it
keeps their shapes the output shapes are static, else they are those of the last iteration.
"""

from __future__ import annotations

import math

from gossamer.ops._control_flow import (
    allocate_callee,
    operands_of,
    require_outputs,
    same_elements,
    set_output_shapes,
    values_of,
)
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, Shape, versions
from gossamer.schema import TensorType, WhileOptions

op = OpDef(
    "WHILE",
    inputs=("operands*",),
    outputs=("results*",),
    versions=versions("1.15.0"),
    options=WhileOptions,
    side_effects=True,
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    options: WhileOptions = ctx.options
    cond, body = options.cond_subgraph_index, options.body_subgraph_index
    ctx.require(cond != body, f"condition and body must be different subgraphs, both are {cond}")
    operands = operands_of(ctx)
    ctx.require(
        len(operands) == len(ctx.outputs),
        f"needs as many outputs as inputs, got {len(ctx.outputs)} and {len(operands)}",
    )
    condition = allocate_callee(ctx, "condition", cond, operands)
    ctx.require(len(condition.outputs) == 1, f"condition (subgraph {cond}) must have 1 output")
    verdict = condition.outputs[0]
    ctx.require(verdict.type == TensorType.BOOL, f"condition (subgraph {cond}) must give a bool")
    if not verdict.is_dynamic:
        ctx.require(
            verdict.shape in ((), (1,)), f"condition (subgraph {cond}) must give shape [] or [1], got {verdict.shape}"
        )
    loop = allocate_callee(ctx, "body", body, operands)
    require_outputs(ctx, "body", body, loop)
    keeps_shapes = all(
        before.shape == after.shape or _interchangeable(before.shape, after.shape)
        for before, after in zip(loop.inputs, loop.outputs, strict=True)
    )
    static = keeps_shapes and not loop.has_dynamic_tensors
    set_output_shapes(ctx, [output.shape for output in loop.outputs] if static else None)


def _interchangeable(a: Shape, b: Shape) -> bool:
    return {a, b} <= {(), (1,)}


@op.reference
def reference(ctx: InvokeContext) -> list[Array]:
    options: WhileOptions = ctx.options
    condition, body = ctx.subgraph(options.cond_subgraph_index), ctx.subgraph(options.body_subgraph_index)
    values = values_of(ctx)
    while True:
        verdict = condition.call(same_elements(values, condition.inputs))[0]
        if math.prod(verdict.shape) != 1:
            ctx.fail(f"condition must give one element, got shape {list(verdict.shape)}")
        if not verdict.reshape(-1)[0]:
            return same_elements(values, ctx.outputs)
        values = body.call(same_elements(values, body.inputs))
