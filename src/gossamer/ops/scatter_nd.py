"""SCATTER_ND: slices added into a tensor of zeros at coordinates.

``indices`` [..., k] holds coordinates of the first k dimensions of ``shape``; ``updates`` has the dimensions of
``indices`` without the last, then those of ``shape`` from k on, and at least one. What lands on one place adds up:
integers wrap, booleans OR. Coordinates outside [0, size) are refused. Indices and shape are int32; the output is
dynamic if the shape is not constant (TFLite's SCATTER_ND).
"""

from __future__ import annotations

import numpy as np

from gossamer.ops._layout import (
    add_at,
    checked_shape,
    elements,
    integers,
    require_indices_in_range,
    require_rank,
)
from gossamer.ops._places import Combine, components, flat_places, scattered
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import SAME_SCALE, Array, Context, InvokeContext, OpDef, PrepareContext, Shape, versions
from gossamer.schema.enums import TensorType
from gossamer.schema.options import ScatterNdOptions

TYPES = (
    TensorType.FLOAT32,
    TensorType.UINT8,
    TensorType.BOOL,
    TensorType.INT8,
    TensorType.INT64,
    TensorType.INT32,
)

op = OpDef(
    "SCATTER_ND",
    inputs=("indices", "updates", "shape"),
    outputs=("output",),
    versions=versions("2.1.0"),
    types={"indices": (TensorType.INT32,), "updates": TYPES, "shape": (TensorType.INT32,), "output": TYPES},
    options=ScatterNdOptions,
    quantizes=SAME_SCALE,
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    ctx.set_type(0, ctx.input(1).type)
    require_rank(ctx, "shape", ctx.input(2), 1)
    shape = ctx.constant(2)
    if shape is None:
        ctx.set_dynamic(0)
    else:
        ctx.set_shape(0, _checked(ctx, shape))


@op.reference
def reference(ctx: InvokeContext) -> Array:
    indices, updates = ctx.value(0), ctx.value(1)
    shape = _checked(ctx, ctx.value(2))
    result = np.zeros(shape, updates.dtype)
    coordinates = tuple(np.moveaxis(indices, -1, 0))
    for axis, values in enumerate(coordinates):
        require_indices_in_range(ctx, f"index of dimension {axis}", values, shape[axis])
    if coordinates:
        add_at(result, coordinates, updates)
    else:
        # Each update covers the whole output; they add up in order.
        for update in updates.reshape((-1, *shape)) if updates.size else ():
            add_at(result, ..., update)
    return result


@op.lower
def lower(graph: Lowering) -> None:
    indices, updates, shape = graph.value(0), graph.value(1), graph.output().shape
    depth = indices.shape[-1]
    count = elements(indices.shape[:-1])
    rows = graph.reshape(updates, (count, elements(shape[depth:])))
    places = flat_places(graph, components(graph, indices), shape[:depth]).broadcast((count,))
    combine: Combine = "max" if updates.type == TensorType.BOOL else "add"
    result = scattered(graph, rows, places, elements(shape[:depth]), combine, graph.scalar(0, rows))
    graph.result(graph.reshape(result, shape))


def _checked(ctx: Context, values: Array) -> Shape:
    indices, updates, shape = ctx.input(0).shape, ctx.input(1).shape, checked_shape(ctx, integers(values))
    ctx.require(indices, "indices must not be a scalar")
    ctx.require(updates, "updates must not be a scalar")
    depth = indices[-1]
    if depth > len(shape) or updates != (*indices[:-1], *shape[depth:]):
        ctx.fail(
            f"updates {list(updates)} must have the shape of indices {list(indices)} without its last dimension, then "
            f"dimensions {depth} and following of shape {list(shape)}"
        )
    return shape
