"""SEGMENT_SUM: sums of the rows of ``data`` that have the same segment id.

``segment_ids`` is an int32 vector, one id for each row, starting at 0 and rising by 0 or 1. The output has a row for
each id, added in order (int32 wraps). Unless both inputs are constant it is dynamic. TFLite's reference resolver
lacks it.
"""

from __future__ import annotations

import numpy as np

from gossamer.ops._layout import add_at, checked_shape, elements, require_output_type, require_shape
from gossamer.ops._places import scattered
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, Context, InvokeContext, OpDef, PrepareContext, Shape, versions
from gossamer.schema.enums import TensorType
from gossamer.schema.options import SegmentSumOptions

TYPES = (TensorType.FLOAT32, TensorType.INT32)

op = OpDef(
    "SEGMENT_SUM",
    inputs=("data", "segment_ids"),
    outputs=("output",),
    versions=versions("2.2.0"),
    types={"data": TYPES, "segment_ids": (TensorType.INT32,), "output": TYPES},
    options=SegmentSumOptions,
    reference_version=0,
    tells_shapes=True,
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    data = ctx.input(0)
    require_output_type(ctx)
    ctx.require(data.shape, "data must not be a scalar")
    require_shape(ctx, "segment_ids", ctx.input(1), data.shape[:1])
    ids = ctx.constant(1)
    if ids is None or not data.is_constant:
        ctx.set_dynamic(0)
    else:
        ctx.set_shape(0, _shape(ctx, ids))


@op.reference
def reference(ctx: InvokeContext) -> Array:
    data, ids = ctx.value(0), ctx.value(1)
    result = np.zeros(_shape(ctx, ids), data.dtype)
    add_at(result, ids, data)
    return result


@op.lower
def lower(graph: Lowering) -> None:
    data, ids = graph.value(0), graph.value(1)
    if graph.input(1).is_stored and _rise(graph.known(1)):
        shape = _shape(graph, graph.known(1))
        flat = graph.reshape(data, (ids.size, elements(shape[1:])))
        graph.result(graph.reshape(scattered(graph, flat, ids, shape[0], "add", graph.scalar(0, data)), shape))
        return
    rows, *row = data.shape
    flat = graph.reshape(data, (rows, elements(row)))
    sums, number = graph.sized("segments", flat, graph.reshape(ids, (rows,)), results=((flat.shape, data.type),))
    graph.counted(graph.reshape(sums, data.shape), number)


def _shape(ctx: Context, ids: Array) -> Shape:
    if not _rise(ids):
        ctx.fail(f"segment_ids must start at 0 and rise by 0 or 1, got {ids[:16].tolist()}")
    return checked_shape(ctx, [int(ids[-1]) + 1 if ids.size else 0, *ctx.input(0).shape[1:]])


def _rise(ids: Array) -> bool:
    wide = ids.astype(np.int64)
    return not ids.size or (ids[0] == 0 and not ((wide[1:] - wide[:-1]) >> 1).any())
