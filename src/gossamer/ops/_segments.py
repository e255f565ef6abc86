"""Reductions of the rows of a tensor by segment id, in any order: the UNSORTED_SEGMENT operators."""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer.ops._layout import checked_shape, elements, integers, require_output_type
from gossamer.ops._places import Combine, scattered
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, Context, InvokeContext, PrepareContext, Shape
from gossamer.schema.enums import TensorType
from gossamer.views import View

TYPES = {
    "data": (TensorType.FLOAT32, TensorType.INT32),
    "segment_ids": (TensorType.INT32,),
    "num_segments": (TensorType.INT32,),
    "output": (TensorType.FLOAT32, TensorType.INT32),
}


def prepare_segments(ctx: PrepareContext) -> None:
    """Check operands and set the output's shape, if ids and number of segments are constant."""
    require_output_type(ctx)
    segments = ctx.input(2)
    ctx.require(segments.shape in ((), (1,)), f"num_segments must be a scalar, got {list(segments.shape)}")
    _require_rows(ctx)
    known, count = ctx.constant(1), ctx.constant(2)
    if known is None or count is None or ctx.input(0).is_dynamic:
        ctx.set_dynamic(0)
    else:
        ctx.set_shape(0, _shape(ctx, known, count))


def reduced(ctx: InvokeContext, function: Any, initial: Any) -> Array:
    """``function`` (a ufunc) over the rows of each segment in order, from ``initial``; negative ids are left out."""
    _require_rows(ctx)
    data, ids = ctx.value(0), ctx.value(1)
    shape = _shape(ctx, ids, ctx.value(2))
    result = np.full(shape, initial, data.dtype)
    rows = data.reshape(ids.size, elements(shape[1:]))
    kept = ids.reshape(-1) >= 0
    function.at(result.reshape(shape[0], elements(shape[1:])), ids.reshape(-1)[kept], rows[kept])
    return result


def lower_segments(graph: Lowering, combine: Combine, initial: float) -> None:
    """The same, by the name of the function in `Lowering.scatter`."""
    data, ids = graph.value(0), graph.value(1)
    _require_rows(graph)
    known = graph.constant(1)
    shape = _shape(graph, np.full(ids.shape, -1) if known is None else known, graph.known(2))
    if not graph.outputs[0].is_dynamic and graph.output().shape != shape:
        graph.refuse("an input is its output, too")
    rows = graph.reshape(data, (ids.size, elements(shape[1:])))
    places = graph.reshape(ids, (ids.size,))
    if known is None:
        is_segment = graph.map(("select", ("less", 0, 1), 2, 3), places, *_numbers(graph, shape[0], 1, 0))
        fault = graph.kernel("nonzero", is_segment, shape=places.shape, type=TensorType.INT32)
        places = graph.map("mul", places, fault)
    result = scattered(graph, rows, places, shape[0], combine, graph.scalar(initial, data), skips=True)
    graph.result(graph.reshape(result, shape))


def _numbers(graph: Lowering, *numbers: int) -> list[View]:
    return [graph.array(np.array(number, np.int32)) for number in numbers]


def _require_rows(ctx: Context) -> None:
    # Whoever comes later may have changed the shape of an input since the last run.
    data, ids = ctx.input(0), ctx.input(1)
    ctx.require(
        data.shape[: len(ids.shape)] == ids.shape,
        f"segment_ids {list(ids.shape)} must be the first dimensions of data {list(data.shape)}",
    )


def _shape(ctx: Context, ids: Array, num_segments: Array) -> Shape:
    segments = integers(num_segments)[0]
    ctx.require(segments >= 0, f"num_segments must not be negative, got {segments}")
    greatest = int(ids.max(initial=-1))
    ctx.require(greatest < segments, f"segment id {greatest} must be less than num_segments {segments}")
    return checked_shape(ctx, [segments, *ctx.input(0).shape[ids.ndim :]])
