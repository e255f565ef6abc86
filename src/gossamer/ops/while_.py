"""WHILE: run a body subgraph as long as a condition subgraph gives true.

The inputs are the loop variables; the outputs are their values after the last iteration, or the inputs if there was
none. The condition has one output, a bool of shape [] or [1]. The body maps loop variables to loop variables. If it
keeps their shapes the output shapes are static, else they are those of the last iteration. A variable that the body
hands on unchanged and that nobody reads afterwards has no output.

With static shapes no value is copied from one iteration to the next: the body reads them where they lie, in the
operands at first, and writes in turn to the outputs of the operator and to memory that it has for that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import count

from gossamer.ops._control_flow import (
    allocate_callee,
    operands_of,
    places_of,
    require_outputs,
    same_elements,
    set_output_shapes,
    values_of,
)
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, Shape, SubgraphCall, versions
from gossamer.schema import TensorType, WhileOptions

op = OpDef(
    "WHILE",
    inputs=("operands*",),
    outputs=("results*",),
    versions=versions("1.15.0"),
    options=WhileOptions,
    tells_shapes=True,
    side_effects=True,
)


@op.prepare
def prepare(ctx: PrepareContext) -> bool:
    options: WhileOptions = ctx.options
    cond, body = options.cond_subgraph_index, options.body_subgraph_index
    ctx.require(cond != body, f"condition and body must be different subgraphs, both are {cond}")
    operands = operands_of(ctx)
    ctx.require(
        len(operands) == len(ctx.outputs),
        f"needs as many outputs as inputs, got {len(ctx.outputs)} and {len(operands)}",
    )
    condition = allocate_callee(ctx, "condition", cond, operands, own_inputs=True)
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
    for position, (taken, tensor) in enumerate(zip(loop.handed_on, loop.outputs, strict=True)):
        if taken == position and tensor.type not in _OBJECTS:
            ctx.drop_unread(position)
    set_output_shapes(ctx, [output.shape for output in loop.outputs] if static else None)
    return static


_OBJECTS = (TensorType.STRING, TensorType.RESOURCE, TensorType.VARIANT)


def _interchangeable(a: Shape, b: Shape) -> bool:
    return all(shape in ((), (1,)) for shape in (a, b))


@op.reference
def reference(ctx: InvokeContext) -> list[Array]:
    outputs = places_of(ctx)
    options: WhileOptions = ctx.options
    condition, body = ctx.subgraph(options.cond_subgraph_index), ctx.subgraph(options.body_subgraph_index)
    values = values_of(ctx)
    while True:
        ctx.poll()
        verdict = condition.call(values)[0]
        if math.prod(verdict.shape) != 1:
            ctx.fail(f"condition must give one element, got shape {list(verdict.shape)}")
        if not verdict.reshape(-1)[0]:
            break
        values = body.call(values, _free_places(body, outputs, values) if ctx.data else ())
    # Rooms are used again, and what lies where another output is wanted would be written over.
    wanted = {id(place): position for position, place in enumerate(outputs)}
    apart = [v.copy() if outputs[at] is None or wanted.get(id(v), at) != at else v for at, v in enumerate(values)]
    return same_elements(apart, ctx.outputs)


def _free_places(body: SubgraphCall, outputs: Sequence[Array | None], values: Sequence[Array]) -> list[Array | None]:
    """Where the body may write: the outputs of the operator, and rooms, unless values lie there that it reads."""
    taken = set(map(id, values))
    places: list[Array | None] = []
    for position, (output, read) in enumerate(zip(outputs, body.handed_on, strict=True)):
        place = output
        for room in count():
            if read is not None or (place is not None and id(place) not in taken):
                break
            place = body.room(position, room)
        places.append(None if read is not None else place)
    return places


@op.lower
def lower(graph: Lowering) -> None:
    options: WhileOptions = graph.options
    operands = [graph.value(position) for position in range(len(graph.inputs))]
    values = graph.loop(options.cond_subgraph_index, options.body_subgraph_index, operands)
    for position, (value, output) in enumerate(zip(values, graph.outputs, strict=True)):
        if output.index >= 0:
            graph.result(value if output.is_dynamic else graph.reshape(value, output.shape), position)
