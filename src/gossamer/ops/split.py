"""SPLIT: the input cut into ``num_splits`` equal parts along an axis.

The axis is the first input, one int32, negative from the end; its dimension must be a multiple of the number of
outputs. The outputs are dynamic if the axis is not constant (TFLite's SPLIT). float16 goes in LiteRT only
through XNNPACK.
"""

from __future__ import annotations

from gossamer.ops._layout import FLOAT8_TYPES, integers, normalized_axis, require_single, set_output_type
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import SAME_SCALE, Array, Context, InvokeContext, OpDef, PrepareContext, Shape, Version
from gossamer.ops.op_signature import FLOAT8, input_type
from gossamer.schema.enums import TensorType
from gossamer.schema.options import SplitOptions

TYPES = (
    TensorType.FLOAT32,
    TensorType.FLOAT16,
    TensorType.UINT8,
    TensorType.INT8,
    TensorType.INT16,
    TensorType.INT32,
    TensorType.INT64,
    *FLOAT8_TYPES,
)

op = OpDef(
    "SPLIT",
    inputs=("axis", "input"),
    outputs=("part", "parts*"),
    versions=(
        Version(1, "1.5.0"),
        Version(2, "1.14.0", input_type(1, TensorType.INT8)),
        Version(3, "1.14.0", input_type(1, TensorType.INT32)),
        Version(4, "2.3.0", input_type(1, TensorType.INT16)),
        Version(5, "2.23.0", input_type(1, *FLOAT8)),
    ),
    types={"axis": (TensorType.INT32,), "input": TYPES},
    options=SplitOptions,
    quantizes=SAME_SCALE,
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    parts = len(ctx.outputs)
    ctx.require(ctx.options.num_splits == parts, f"num_splits {ctx.options.num_splits} but {parts} outputs")
    set_output_type(ctx, 1)
    require_single(ctx, "axis", ctx.input(0))
    axis = ctx.constant(0)
    for position in range(parts):
        if axis is None:
            ctx.set_dynamic(position)
        else:
            ctx.set_shape(position, _part(ctx, axis)[1])


@op.reference
def reference(ctx: InvokeContext) -> tuple[Array, ...]:
    value = ctx.value(1)
    axis, shape = _part(ctx, ctx.value(0))
    ahead = (slice(None),) * axis
    size = shape[axis]
    return tuple(value[ahead + (slice(i * size, (i + 1) * size),)] for i in range(len(ctx.outputs)))


@op.lower
def lower(graph: Lowering) -> None:
    axis, shape = _part(graph, graph.known(0))
    for position in range(len(graph.outputs)):
        graph.result(graph.value(1).slice(axis, position * shape[axis], shape[axis]), position)


def _part(ctx: Context, axis_value: Array) -> tuple[int, Shape]:
    shape = ctx.input(1).shape
    axis = normalized_axis(ctx, integers(axis_value)[0], len(shape))
    parts = len(ctx.outputs)
    ctx.require(shape[axis] % parts == 0, f"dimension {axis} of {list(shape)} does not split into {parts} equal parts")
    return axis, (*shape[:axis], shape[axis] // parts, *shape[axis + 1 :])
