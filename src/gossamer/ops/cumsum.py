"""CUMSUM: running sums along an axis.

``axis`` holds one int32, negative counted from the end. ``exclusive`` leaves an element out of its own sum; ``reverse``
sums from the end. float32 in order; int32 and int64 wrap.
"""

from __future__ import annotations

import numpy as np

from gossamer.ops._axis import axis_within, by_axis
from gossamer.ops._elementwise import prepare_unary
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, versions
from gossamer.schema.enums import TensorType
from gossamer.schema.options import CumsumOptions
from gossamer.views import View

_TYPES = (TensorType.FLOAT32, TensorType.INT32, TensorType.INT64)

op = OpDef(
    "CUMSUM",
    inputs=("x", "axis"),
    outputs=("output",),
    versions=versions("2.4.0"),
    types={"x": _TYPES, "axis": (TensorType.INT32,), "output": _TYPES},
    options=CumsumOptions,
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    prepare_unary(ctx)
    rank = len(ctx.input(0).shape)
    ctx.require(rank, "x must have at least 1 dimension, got a scalar")
    axis = ctx.constant(1)
    if axis is not None:
        axis_within(ctx, axis, rank)


@op.reference
def reference(ctx: InvokeContext) -> Array:
    x = ctx.value(0)
    axis = axis_within(ctx, ctx.value(1), x.ndim)
    if x.size == 0:
        return x
    ordered = np.flip(x, axis) if ctx.options.reverse else x
    sums = np.cumsum(ordered, axis, dtype=x.dtype)
    if ctx.options.exclusive:
        sums = np.roll(sums, 1, axis)
        sums[(slice(None),) * axis + (0,)] = 0
    return np.flip(sums, axis) if ctx.options.reverse else sums


@op.lower
def lower(graph: Lowering) -> None:
    x, known = graph.value(0), graph.constant(1)
    if known is not None:
        graph.result(_lower_along(graph, x, axis_within(graph, known, len(x.shape))))
        return
    graph.result(by_axis(graph, graph.value(1), len(x.shape), lambda axis: _lower_along(graph, x, axis)))


def _lower_along(graph: Lowering, x: View, axis: int) -> View:
    options = graph.options
    settings = {"axis": axis, "exclusive": options.exclusive, "reverse": options.reverse}
    return graph.kernel("scan", x, shape=x.shape, type=x.type, **settings)
