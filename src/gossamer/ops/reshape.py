"""RESHAPE: the same elements in the same order under another shape.

The shape is the second input when that is an int32 vector; otherwise (left out, another type or rank) it is the
option ``new_shape``, where ``[0]`` stands for a scalar, as old converters wrote it. One dimension may be -1: it takes
what is left. With zero-sized dimensions the -1 is 0 if the input is empty and no other requested dimension is 0;
otherwise it is the quotient of the products over the dimensions that are not 0. The element counts must agree.

The output's shape is known when the second input is missing or constant. If the input is constant too, so is the
output. Otherwise the shape is only known at run time; the output lies in place of the input wherever the planner can
have that, else it is dynamic (TFLite's RESHAPE, which returns kTfLiteOutputShapeNotKnown).
"""

from __future__ import annotations

from collections.abc import Sequence

from gossamer.ops._layout import ANY_TYPES, checked_shape, elements, integers, require_output_type
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import (
    SAME_SCALE,
    Array,
    Context,
    InPlace,
    InvokeContext,
    OpDef,
    PrepareContext,
    Shape,
    versions,
)
from gossamer.schema.enums import TensorType
from gossamer.schema.options import ReshapeOptions

op = OpDef(
    "RESHAPE",
    inputs=("input", "shape?"),
    outputs=("output",),
    versions=versions("1.5.0"),
    types={"input": ANY_TYPES, "output": ANY_TYPES},
    options=ReshapeOptions,
    in_place=InPlace.INPUT_0 | InPlace.DATA_UNMODIFIED,
    quantizes=SAME_SCALE,
)


@op.prepare
def prepare(ctx: PrepareContext) -> Shape | None:
    """Returns the shape, if it is known."""
    require_output_type(ctx)
    vector = ctx.constant(1)
    if vector is None and ctx.optional(1) is not None:
        ctx.postpone_shape(0, 0)
        return None
    shape = _resolved(ctx, ctx.input(0).shape, _requested(ctx, vector))
    value = ctx.constant(0) if ctx.input(0).type != TensorType.STRING else None
    if value is not None:
        ctx.set_constant(0, value.reshape(shape))
    else:
        ctx.set_shape(0, shape)
    return shape


@op.reference
def reference(ctx: InvokeContext) -> Array:
    value = ctx.value(0)
    if ctx.data is not None:
        return value.reshape(ctx.data)
    return value.reshape(_resolved(ctx, value.shape, _requested(ctx, ctx.value(1) if _has_vector(ctx) else None)))


def _has_vector(ctx: Context) -> bool:
    tensor = ctx.optional(1)
    return tensor is not None and tensor.type == TensorType.INT32 and len(tensor.shape) == 1


def _requested(ctx: Context, vector: Array | None) -> list[int]:
    if vector is not None and _has_vector(ctx):
        return integers(vector)
    shape = list(ctx.options.new_shape)
    return [] if shape == [0] else shape


def _resolved(ctx: Context, shape: Shape, requested: Sequence[int]) -> Shape:
    if min(requested, default=0) < -1 or list(requested).count(-1) > 1:
        ctx.fail(f"new shape {list(requested)} may have one -1 and no other negative dimension")
    resolved = list(requested)
    count = elements(shape)
    if -1 in resolved:
        others = [size for size in resolved if size != -1]
        if count == 0 and 0 not in others:
            free = 0
        else:
            free = elements([s for s in shape if s]) // elements([s for s in others if s])
        resolved[resolved.index(-1)] = free
    ctx.require_shapes(
        elements(resolved) == count,
        f"cannot reshape {list(shape)} ({count} elements) to {list(requested)} ({elements(resolved)} elements)",
    )
    return checked_shape(ctx, resolved)


@op.lower
def lower(graph: Lowering) -> None:
    graph.result(graph.reshape(graph.value(0), graph.output().shape))
