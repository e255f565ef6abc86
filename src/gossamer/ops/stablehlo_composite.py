"""STABLEHLO_COMPOSITE: an operation with a name and attributes, defined by a subgraph that decomposes it.

Without a kernel for the name, the decomposition runs: its inputs and outputs are the operator's.
"""

from __future__ import annotations

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
from gossamer.schema import StableHLOCompositeOptions

op = OpDef(
    "STABLEHLO_COMPOSITE",
    inputs=("operands*",),
    outputs=("results*",),
    versions=versions("2.17.0"),
    options=StableHLOCompositeOptions,
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    options: StableHLOCompositeOptions = ctx.options
    ctx.require(ctx.inputs, "needs at least 1 input, got 0")
    index = options.decomposition_subgraph_index
    callee = allocate_callee(ctx, "decomposition", index, operands_of(ctx))
    require_outputs(ctx, "decomposition", index, callee)
    set_output_shapes(ctx, None if callee.has_dynamic_tensors else [output.shape for output in callee.outputs])


@op.reference
def reference(ctx: InvokeContext) -> list[Array]:
    options: StableHLOCompositeOptions = ctx.options
    return ctx.subgraph(options.decomposition_subgraph_index).call(values_of(ctx), places_of(ctx))


@op.lower
def lower(graph: Lowering) -> None:
    options: StableHLOCompositeOptions = graph.options
    operands = [graph.value(position) for position in range(len(graph.inputs))]
    for position, value in enumerate(graph.call(options.decomposition_subgraph_index, operands)):
        graph.result(value, position)
