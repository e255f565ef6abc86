"""SPARSE_TO_DENSE: a tensor of ``default_value`` with values written at coordinates.

``indices`` is a matrix [n, rank], or for a vector output also a vector [n] or a scalar; ``values`` has n elements or
is a scalar for all. Coordinates outside the output are refused; where they repeat, the last value stays. At most 4
dimensions. The output is dynamic if ``output_shape`` is not constant (TFLite's SPARSE_TO_DENSE).
"""

from __future__ import annotations

import numpy as np

from gossamer.ops._layout import (
    INDEX_TYPES,
    checked_shape,
    elements,
    integers,
    require_indices_in_range,
    require_rank,
    require_shape,
    require_single,
    require_type,
)
from gossamer.ops._places import components, flat_places, scattered
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, Version
from gossamer.ops.op_signature import input_type
from gossamer.schema.enums import TensorType
from gossamer.schema.options import SparseToDenseOptions

MAX_RANK = 4
TYPES = (TensorType.FLOAT32, TensorType.INT32, TensorType.INT64, TensorType.INT8, TensorType.UINT8)

op = OpDef(
    "SPARSE_TO_DENSE",
    inputs=("indices", "output_shape", "values", "default_value"),
    outputs=("output",),
    versions=(
        Version(1, "1.9.0"),
        Version(2, "1.14.0", input_type(2, TensorType.INT64)),
        Version(3, "1.15.0", input_type(2, TensorType.INT8, TensorType.UINT8)),
    ),
    types={
        "indices": INDEX_TYPES,
        "output_shape": INDEX_TYPES,
        "values": TYPES,
        "default_value": TYPES,
        "output": TYPES,
    },
    options=SparseToDenseOptions,
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    indices, output_shape, values, default = (ctx.input(position) for position in range(4))
    require_rank(ctx, "indices", indices, 0, 2)
    require_rank(ctx, "output_shape", output_shape, 1)
    require_rank(ctx, "values", values, 0, 1)
    require_single(ctx, "default_value", default)
    require_type(ctx, "default_value", default, values.type)
    ctx.set_type(0, values.type)
    matrix = len(indices.shape) == 2
    rank, count = (indices.shape[1], indices.shape[0]) if matrix else (1, elements(indices.shape))
    ctx.require(rank <= MAX_RANK, f"at most {MAX_RANK} dimensions, got {rank}")
    require_shape(ctx, "output_shape", output_shape, (rank,))
    if values.shape:
        require_shape(ctx, "values", values, (count,))
    shape = ctx.constant(1)
    if shape is None:
        ctx.set_dynamic(0)
    else:
        ctx.set_shape(0, checked_shape(ctx, integers(shape)))


@op.reference
def reference(ctx: InvokeContext) -> Array:
    indices, values = ctx.value(0), ctx.value(2)
    shape = checked_shape(ctx, integers(ctx.value(1)))
    coordinates = tuple(indices.reshape(-1, len(shape)).T)
    for axis, places in enumerate(coordinates):
        require_indices_in_range(ctx, f"index of dimension {axis}", places, shape[axis])
    result = np.full(shape, ctx.value(3).reshape(()), values.dtype)
    if coordinates:
        flat = np.ravel_multi_index(coordinates, shape) if indices.size else np.empty(0, np.int64)
        # NumPy promises no order where an index repeats: keep the last of each.
        places, last = np.unique(flat[::-1], return_index=True)
        result.reshape(-1)[places] = values if not values.shape else values[::-1][last]
    elif indices.shape[0]:
        result[...] = values.reshape(-1)[-1]
    return result


@op.lower
def lower(graph: Lowering) -> None:
    indices, values, shape = graph.value(0), graph.value(2), graph.output().shape
    vectors = graph.reshape(indices, (indices.size // max(len(shape), 1), len(shape))) if shape else indices
    places = flat_places(graph, components(graph, vectors), shape)
    rows = graph.reshape(values.broadcast(places.shape), (places.size, 1))
    graph.result(graph.reshape(scattered(graph, rows, places, elements(shape), "set", graph.value(3)), shape))
