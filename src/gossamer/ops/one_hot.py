"""ONE_HOT: ``on_value`` at each index, ``off_value`` elsewhere, along a new axis of size ``depth``.

``depth`` is one int32, not negative; ``axis`` is where the new dimension goes, -1 for the end. An index outside [0,
depth) gives only ``off_value``; int64 indices are cut to 32 bits first. The output is dynamic if ``depth`` is not
constant (TFLite's ONE_HOT).
"""

from __future__ import annotations

import numpy as np

from gossamer.ops._layout import (
    INDEX_TYPES,
    checked_shape,
    integers,
    require_single,
    require_type,
    set_output_type,
)
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, Context, InvokeContext, OpDef, PrepareContext, Shape, versions
from gossamer.schema.enums import TensorType
from gossamer.schema.options import OneHotOptions

TYPES = (
    TensorType.FLOAT32,
    TensorType.INT32,
    TensorType.INT64,
    TensorType.INT8,
    TensorType.UINT8,
    TensorType.BOOL,
)

op = OpDef(
    "ONE_HOT",
    inputs=("indices", "depth", "on_value", "off_value"),
    outputs=("output",),
    versions=versions("1.11.0"),
    types={
        "indices": INDEX_TYPES,
        "depth": (TensorType.INT32,),
        "on_value": TYPES,
        "off_value": TYPES,
        "output": TYPES,
    },
    options=OneHotOptions,
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    rank = len(ctx.input(0).shape)
    ctx.require(-1 <= ctx.options.axis <= rank, f"axis {ctx.options.axis} must be in [-1, {rank}]")
    for position, name in enumerate(op.inputs[1:], 1):
        require_single(ctx, name, ctx.input(position))
    require_type(ctx, "off_value", ctx.input(3), ctx.input(2).type)
    set_output_type(ctx, 2)
    depth = ctx.constant(1)
    if depth is None:
        ctx.set_dynamic(0)
    else:
        ctx.set_shape(0, _shape(ctx, depth))


@op.reference
def reference(ctx: InvokeContext) -> Array:
    shape, axis = _shape(ctx, ctx.value(1)), _axis(ctx)
    indices = np.expand_dims(ctx.value(0).astype(np.int32), axis)
    levels = np.arange(shape[axis], dtype=np.int32).reshape([-1 if i == axis else 1 for i in range(len(shape))])
    return np.where(indices == levels, ctx.value(2).reshape(()), ctx.value(3).reshape(()))


@op.lower
def lower(graph: Lowering) -> None:
    shape, axis = _shape(graph, graph.known(1)), _axis(graph)
    indices = graph.cast(graph.value(0), TensorType.INT32)
    indices = graph.reshape(indices, [*indices.shape[:axis], 1, *indices.shape[axis:]])
    levels = graph.array(
        np.arange(shape[axis], dtype=np.int32).reshape([-1 if i == axis else 1 for i in range(len(shape))])
    )
    on, off = (graph.reshape(graph.value(position), ()) for position in (2, 3))
    graph.result(graph.map(("select", ("equal", 0, 1), 2, 3), indices, levels, on, off, type=on.type))


def _axis(ctx: Context) -> int:
    axis: int = ctx.options.axis
    return len(ctx.input(0).shape) if axis == -1 else axis


def _shape(ctx: Context, depth: Array) -> Shape:
    size = integers(depth)[0]
    ctx.require(size >= 0, f"depth must not be negative, got {size}")
    indices, axis = ctx.input(0).shape, _axis(ctx)
    return checked_shape(ctx, [*indices[:axis], size, *indices[axis:]])
