"""BROADCAST_ARGS: the shape that tensors of two given shapes broadcast to.

Two vectors of one type, int32 or int64; the shorter counts as having ones in front. Where one size is 1 the other is
taken, otherwise they must be equal. If both are constant the output is too (TFLite's BROADCAST_ARGS).
"""

from __future__ import annotations

import numpy as np

from gossamer.ops._layout import INDEX_TYPES, require_output_type, require_rank, require_type
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, Context, InvokeContext, OpDef, PrepareContext, versions

op = OpDef(
    "BROADCAST_ARGS",
    inputs=("shape1", "shape2"),
    outputs=("output",),
    versions=versions("2.6.0"),
    types={"shape1": INDEX_TYPES, "shape2": INDEX_TYPES, "output": INDEX_TYPES},
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    a, b = ctx.input(0), ctx.input(1)
    require_rank(ctx, "shape1", a, 1)
    require_rank(ctx, "shape2", b, 1)
    require_type(ctx, "shape2", b, a.type)
    require_output_type(ctx)
    known = ctx.all_known(0, 1)
    if known is not None:
        ctx.set_constant(0, _broadcast(ctx, *known))
    else:
        ctx.set_shape(0, (max(a.shape[0], b.shape[0]),))


@op.reference
def reference(ctx: InvokeContext) -> Array:
    return _broadcast(ctx, ctx.value(0), ctx.value(1))


@op.lower
def lower(graph: Lowering) -> None:
    rank = graph.output().shape[0]
    a, b = (graph.pad(view, [rank - view.size], [0], 1) for view in (graph.value(0), graph.value(1)))
    one, zero = graph.scalar(1, a), graph.scalar(0, a)
    fits = ("or", ("equal", 0, 1), ("or", ("equal", 0, 2), ("equal", 1, 2)))
    agrees = graph.map(("select", fits, 2, 3), a, b, one, zero)
    agrees = graph.kernel("nonzero", agrees, shape=agrees.shape, type=agrees.type)
    graph.result(graph.map(("mul", ("select", ("equal", 0, 2), 1, 0), 3), a, b, one, agrees))


def _broadcast(ctx: Context, a: Array, b: Array) -> Array:
    rank = max(a.size, b.size)
    first, second = (np.concatenate([np.ones(rank - shape.size, shape.dtype), shape]) for shape in (a, b))
    if ((first != second) & (first != 1) & (second != 1)).any():
        ctx.fail(f"shapes {a.tolist()} and {b.tolist()} do not broadcast")
    return np.where(first == 1, second, first)
