"""SPLIT_V: the input cut into parts of given sizes along an axis.

``size_splits`` has one entry for each output; one of them may be -1 and takes what the others leave. The sizes must
add up to the dimension. The outputs are dynamic unless ``size_splits`` and the axis are constant (TFLite's SPLIT_V).
"""

from __future__ import annotations

from gossamer.ops._layout import (
    FLOAT8_TYPES,
    INDEX_TYPES,
    integers,
    normalized_axis,
    require_shape,
    require_single,
    set_output_type,
)
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import SAME_SCALE, Array, Context, InvokeContext, OpDef, PrepareContext, Version
from gossamer.ops.op_signature import FLOAT8, input_type
from gossamer.schema.enums import TensorType
from gossamer.schema.options import SplitVOptions

TYPES = (
    TensorType.FLOAT32,
    TensorType.UINT8,
    TensorType.INT8,
    TensorType.INT16,
    TensorType.INT32,
    TensorType.INT64,
    *FLOAT8_TYPES,
)

op = OpDef(
    "SPLIT_V",
    inputs=("input", "size_splits", "axis"),
    outputs=("part", "parts*"),
    versions=(
        Version(1, "1.13.1"),
        Version(2, "2.3.0", input_type(0, TensorType.INT8)),
        Version(3, "2.23.0", input_type(0, *FLOAT8)),
    ),
    types={"input": TYPES, "size_splits": INDEX_TYPES, "axis": (TensorType.INT32,)},
    options=SplitVOptions,
    quantizes=SAME_SCALE,
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    parts = len(ctx.outputs)
    ctx.require(ctx.options.num_splits == parts, f"num_splits {ctx.options.num_splits} but {parts} outputs")
    set_output_type(ctx)
    require_shape(ctx, "size_splits", ctx.input(1), (parts,))
    require_single(ctx, "axis", ctx.input(2))
    sizes, axis_value = ctx.constant(1), ctx.constant(2)
    if sizes is None or axis_value is None:
        for position in range(parts):
            ctx.set_dynamic(position)
        return
    shape = ctx.input(0).shape
    axis, lengths = _cuts(ctx, sizes, axis_value)
    for position, length in enumerate(lengths):
        ctx.set_shape(position, (*shape[:axis], length, *shape[axis + 1 :]))


@op.reference
def reference(ctx: InvokeContext) -> tuple[Array, ...]:
    value = ctx.value(0)
    axis, lengths = _cuts(ctx, ctx.value(1), ctx.value(2))
    ahead = (slice(None),) * axis
    parts, first = [], 0
    for length in lengths:
        parts.append(value[ahead + (slice(first, first + length),)])
        first += length
    return tuple(parts)


@op.lower
def lower(graph: Lowering) -> None:
    axis, lengths = _cuts(graph, graph.known(1), graph.known(2))
    first = 0
    for position, length in enumerate(lengths):
        graph.result(graph.value(0).slice(axis, first, length), position)
        first += length


def _cuts(ctx: Context, sizes: Array, axis_value: Array) -> tuple[int, list[int]]:
    shape = ctx.input(0).shape
    axis = normalized_axis(ctx, integers(axis_value)[0], len(shape))
    lengths = integers(sizes)
    if min(lengths) < -1 or lengths.count(-1) > 1:
        ctx.fail(f"size_splits {lengths} may have one -1 and no other negative size")
    if -1 in lengths:
        free = lengths.index(-1)
        lengths[free] = shape[axis] - (sum(lengths) + 1)
    if min(lengths) < 0 or sum(lengths) != shape[axis]:
        ctx.fail(f"size_splits {integers(sizes)} must add up to {shape[axis]}, dimension {axis} of {list(shape)}")
    return axis, lengths
