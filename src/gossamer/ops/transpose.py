"""TRANSPOSE: dimension i of the output is dimension perm[i] of the input.

``perm`` is an int32 vector with one entry for each dimension, a permutation of them; negative entries count from the
end. At most 8 dimensions; elements are moved by their size, so every type of 4 to 64 bits goes. If ``perm`` is not
constant, the output is dynamic (TFLite's TRANSPOSE).
"""

from __future__ import annotations

from gossamer.ops._layout import (
    WHOLE_BYTE_TYPES,
    integers,
    normalized_axis,
    require_output_type,
    require_rank,
    require_shape,
)
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import SAME_SCALE, Array, Context, InvokeContext, OpDef, PrepareContext, Version
from gossamer.ops.op_signature import input_type, rank_above
from gossamer.schema.enums import TensorType
from gossamer.schema.options import TransposeOptions

MAX_RANK = 8
TYPES = (*WHOLE_BYTE_TYPES, TensorType.INT4, TensorType.UINT4)

op = OpDef(
    "TRANSPOSE",
    inputs=("input", "perm"),
    outputs=("output",),
    versions=(
        Version(1, "1.6.0"),
        Version(2, "1.14.0", input_type(0, TensorType.INT8)),
        Version(3, "1.15.0", input_type(0, TensorType.BOOL)),
        Version(4, "2.3.0", rank_above(0, 4)),
        Version(5, "2.4.0", input_type(0, TensorType.INT16)),
        Version(6, "2.12.0", rank_above(0, 5)),
        Version(7, "2.14.4", input_type(0, TensorType.INT4)),
        Version(8, "2.22.0", rank_above(0, 6) | input_type(0, TensorType.BFLOAT16)),
        Version(9, "2.23.0", input_type(0, TensorType.FLOAT16)),
    ),
    types={"input": TYPES, "perm": (TensorType.INT32,), "output": TYPES},
    options=TransposeOptions,
    reference_version=8,
    quantizes=SAME_SCALE,
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    shape = ctx.input(0).shape
    require_rank(ctx, "input", ctx.input(0), 0, MAX_RANK)
    require_output_type(ctx)
    perm = ctx.constant(1)
    if perm is None:
        ctx.set_dynamic(0)
        return
    require_shape(ctx, "perm", ctx.input(1), (len(shape),))
    ctx.set_shape(0, [shape[axis] for axis in _axes(ctx, perm)])


@op.reference
def reference(ctx: InvokeContext) -> Array:
    require_shape(ctx, "perm", ctx.input(1), (len(ctx.input(0).shape),))
    moved: Array = ctx.value(0).transpose(_axes(ctx, ctx.value(1)))
    return moved


@op.lower
def lower(graph: Lowering) -> None:
    graph.result(graph.value(0).permute(_axes(graph, graph.known(1))))


def _axes(ctx: Context, perm: Array) -> list[int]:
    rank = perm.size
    axes = [normalized_axis(ctx, axis, rank, "perm") for axis in integers(perm)]
    ctx.require(len(set(axes)) == rank, f"perm {integers(perm)} must name every dimension once")
    return axes
