"""DYNAMIC_UPDATE_SLICE: the operand with a box of it replaced by ``update``.

``start_indices`` (int32 or int64, one for each dimension) says where the box begins; a start that would let the
update reach outside is moved to where it fits, so no start is refused. The update is no larger than the operand in
any dimension. At most 8 dimensions. The planner may use the operand's buffer for the output (TFLite's
DYNAMIC_UPDATE_SLICE).
"""

from __future__ import annotations

from gossamer.ops._layout import (
    INDEX_TYPES,
    WHOLE_BYTE_TYPES,
    integers,
    require_rank,
    require_shape,
    require_type,
    set_output_type,
)
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import SAME_SCALE, Array, Context, InPlace, InvokeContext, OpDef, PrepareContext, Version
from gossamer.ops.op_signature import input_type
from gossamer.schema.enums import TensorType
from gossamer.schema.options import DynamicUpdateSliceOptions

MAX_RANK = 8
TYPES = (*WHOLE_BYTE_TYPES, TensorType.COMPLEX128, TensorType.INT4)

op = OpDef(
    "DYNAMIC_UPDATE_SLICE",
    inputs=("operand", "update", "start_indices"),
    outputs=("output",),
    versions=(
        Version(1, "2.9.0"),
        Version(2, "2.17.0", input_type(2, TensorType.INT64)),
        Version(3, "2.19.0", input_type(0, TensorType.FLOAT16)),
        Version(4, "2.20.0", input_type(0, TensorType.INT16)),
        Version(5, "2.21.0", input_type(0, TensorType.INT4)),
        Version(6, "2.22.0", input_type(0, TensorType.BFLOAT16)),
    ),
    types={"operand": TYPES, "update": TYPES, "start_indices": INDEX_TYPES, "output": TYPES},
    options=DynamicUpdateSliceOptions,
    in_place=InPlace.INPUT_0,
    quantizes=SAME_SCALE,
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    operand, update = ctx.input(0), ctx.input(1)
    require_rank(ctx, "operand", operand, 0, MAX_RANK)
    require_shape(ctx, "start_indices", ctx.input(2), (len(operand.shape),))
    require_type(ctx, "update", update, operand.type)
    set_output_type(ctx)
    fits = len(update.shape) == len(operand.shape) and all(
        a <= b for a, b in zip(update.shape, operand.shape, strict=True)
    )
    ctx.require(fits, f"update {list(update.shape)} does not fit into operand {list(operand.shape)}")
    ctx.set_shape(0, operand.shape)


@op.reference
def reference(ctx: InvokeContext) -> Array:
    operand, update = ctx.value(0), ctx.value(1)
    result: Array = operand.copy()
    starts = _starts(ctx, ctx.value(2))
    result[tuple(slice(first, first + size) for first, size in zip(starts, update.shape, strict=True))] = update
    return result


@op.lower
def lower(graph: Lowering) -> None:
    update, starts = graph.value(1), graph.constant(2)
    result = place = graph.copy(graph.value(0))
    if starts is None:
        graph.put(update, result, graph.value(2))
    else:
        for axis, first in enumerate(_starts(graph, starts)):
            place = place.slice(axis, first, update.shape[axis])
        graph.copy(update, place)
    graph.result(result)


def _starts(ctx: Context, starts: Array) -> list[int]:
    sizes = zip(integers(starts), ctx.input(1).shape, ctx.input(0).shape, strict=True)
    return [min(max(start, 0), room - size) for start, size, room in sizes]
