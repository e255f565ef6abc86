"""CALL_ONCE: run an initialisation subgraph the first time, and never again for this interpreter.

The subgraph has no inputs and no outputs; what it does is set resource variables and hash tables.
"""

from __future__ import annotations

from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, versions
from gossamer.schema import CallOnceOptions

op = OpDef(
    "CALL_ONCE",
    inputs=(),
    outputs=(),
    versions=versions("2.5.0"),
    options=CallOnceOptions,
    side_effects=True,
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    options: CallOnceOptions = ctx.options
    callee = ctx.subgraph(options.init_subgraph_index)
    ctx.require(
        not callee.inputs and not callee.outputs,
        f"the initialisation subgraph {options.init_subgraph_index} must have no inputs and outputs, "
        f"it has {len(callee.inputs)} and {len(callee.outputs)}",
    )


@op.reference
def reference(ctx: InvokeContext) -> tuple[Array, ...]:
    options: CallOnceOptions = ctx.options
    if options.init_subgraph_index not in ctx.resources.initialized:
        ctx.subgraph(options.init_subgraph_index).call([])
        ctx.resources.initialized.add(options.init_subgraph_index)
    return ()


@op.lower
def lower(graph: Lowering) -> None:
    graph.run_before()
