"""STABLEHLO_CASE: run one of several subgraphs.

Input 0 is an int32 of one element, the number of the branch; any number out of range means the last one. The other
inputs are those of every branch, and all have the operator's number of outputs. The output shapes are static if they
are static and equal in all branches, else they are those of the branch that ran.
"""

from __future__ import annotations

import numpy as np

from gossamer.ops._control_flow import (
    allocate_callee,
    operands_of,
    places_of,
    require_outputs,
    set_output_shapes,
    values_of,
)
from gossamer.ops._layout import require_single
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, versions
from gossamer.schema.enums import TensorType
from gossamer.schema.options import StablehloCaseOptions

op = OpDef(
    "STABLEHLO_CASE",
    inputs=("branch", "operands*"),
    outputs=("results*",),
    versions=versions("2.17.0"),
    types={"branch": (TensorType.INT32,)},
    options=StablehloCaseOptions,
    reference_version=0,
    side_effects=True,
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    require_single(ctx, "branch", ctx.input(0))
    indices = ctx.options.branch_subgraph_indices
    ctx.require(indices, "needs at least one branch")
    callees = []
    for number, index in enumerate(indices):
        callee = allocate_callee(ctx, f"branch {number}", index, operands_of(ctx, 1))
        require_outputs(ctx, f"branch {number}", index, callee)
        callees.append(callee)
    shapes = [[output.shape for output in callee.outputs] for callee in callees]
    static = not any(callee.has_dynamic_tensors for callee in callees) and all(one == shapes[0] for one in shapes)
    set_output_shapes(ctx, shapes[0] if static else None)


@op.reference
def reference(ctx: InvokeContext) -> list[Array]:
    options: StablehloCaseOptions = ctx.options
    indices = options.branch_subgraph_indices
    branch = int(ctx.value(0).reshape(-1)[0])
    taken = indices[branch if 0 <= branch < len(indices) else -1]
    return ctx.subgraph(taken).call(values_of(ctx, 1), places_of(ctx))


@op.lower
def lower(graph: Lowering) -> None:
    options: StablehloCaseOptions = graph.options
    indices = options.branch_subgraph_indices
    operands = [graph.value(position) for position in range(1, len(graph.inputs))]
    numbers = graph.array(np.arange(len(indices) - 1, dtype=np.int32))
    flags = graph.map("equal", graph.reshape(graph.value(0), (1,)), numbers, type=TensorType.BOOL)
    each = [flags.slice(0, number, 1) for number in range(len(indices) - 1)]
    for position, value in enumerate(graph.branch(each, indices, operands)):
        graph.result(value, position)
