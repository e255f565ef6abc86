"""EMBEDDING_LOOKUP_SPARSE: weighted sums of rows of a table, one for each row of a sparse tensor of ids.

Entry i of the sparse tensor has the id ``ids[i]``, the weight ``weights[i]`` and the coordinates ``indices[i]``;
``dense_shape`` [l0, ..., ln] is its shape. Along its last dimension the entries are combined:

    output[c0, ..., cn-1] = sum of value[id] * weight over the entries whose coordinates begin so, divided by
        1 (SUM), the sum of the weights (MEAN), or the square root of the sum of their squares (SQRTN)

The output is [l0, ..., ln-1, e1, ..., em] for a table [e0, e1, ..., em]; rows without entries are 0. Entries of a row
should be neighbours: a row that comes up again later is divided again, what it had already included. ids must be in
[0, e0), rows inside the output.
"""

from __future__ import annotations

import math

import numpy as np

from gossamer.ops._embedding import combined
from gossamer.ops._layout import (
    checked_shape,
    elements,
    integers,
    require_indices_in_range,
    require_rank,
    require_shape,
)
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, versions
from gossamer.schema.enums import CombinerType, TensorType
from gossamer.schema.options import EmbeddingLookupSparseOptions

op = OpDef(
    "EMBEDDING_LOOKUP_SPARSE",
    inputs=("ids", "indices", "dense_shape", "weights", "value"),
    outputs=("output",),
    versions=versions("1.5.0"),
    types={
        "ids": (TensorType.INT32,),
        "indices": (TensorType.INT32,),
        "dense_shape": (TensorType.INT32,),
        "weights": (TensorType.FLOAT32,),
        "value": (TensorType.FLOAT32,),
        "output": (TensorType.FLOAT32,),
    },
    options=EmbeddingLookupSparseOptions,
    tells_shapes=True,
)

_COMBINERS = {CombinerType.SUM: "sum", CombinerType.MEAN: "mean", CombinerType.SQRTN: "sqrtn"}


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    ids, indices, dense_shape, weights, value = [ctx.input(position) for position in range(5)]
    require_rank(ctx, "ids", ids, 1)
    require_rank(ctx, "indices", indices, 2)
    entries, rank = indices.shape
    require_shape(ctx, "ids", ids, (entries,))
    require_shape(ctx, "weights", weights, (entries,))
    require_shape(ctx, "dense_shape", dense_shape, (rank,))
    ctx.require(rank >= 1, "indices must have at least one coordinate an entry, got 0")
    ctx.require(len(value.shape) >= 2, f"value must have 2 dimensions or more, got {list(value.shape)}")
    combiner = ctx.options.combiner
    ctx.require(combiner in tuple(CombinerType), f"combiner must be 0, 1 or 2, got {int(combiner)}")
    ctx.set_dynamic(0)


@op.reference
def reference(ctx: InvokeContext) -> Array:
    ids, indices, weights, value = ctx.value(0), ctx.value(1), ctx.value(3), ctx.value(4)
    lookup_shape = [int(size) for size in ctx.value(2)[:-1]]
    shape = checked_shape(ctx, [*lookup_shape, *value.shape[1:]])
    require_indices_in_range(ctx, "id", ids, value.shape[0])
    strides = [math.prod(lookup_shape[axis + 1 :]) for axis in range(len(lookup_shape))]
    rows = indices[:, :-1].astype(np.int64) @ np.array(strides, np.int64)
    require_indices_in_range(ctx, "row of an entry", rows, math.prod(lookup_shape))
    table = value.reshape(len(value), math.prod(value.shape[1:]))
    return combined(ids, rows, weights, table, math.prod(lookup_shape), _COMBINERS[ctx.options.combiner]).reshape(shape)


@op.lower
def lower(graph: Lowering) -> None:
    *sizes, _ = integers(graph.known(2))
    ids, indices, weights, value = (graph.value(position) for position in (0, 1, 3, 4))
    shape = checked_shape(graph, [*sizes, *value.shape[1:]])
    if 0 in shape:
        graph.refuse("its output has no elements")
    places = graph.array(np.zeros(ids.shape, np.int64))
    for axis in range(len(sizes)):
        number = graph.cast(graph.reshape(indices.slice(1, axis, 1), ids.shape), TensorType.INT64)
        step = graph.scalar(math.prod(sizes[axis + 1 :]), number)
        places = graph.map(("add", 0, ("mul", 1, 2)), places, number, step)
    table = graph.reshape(value, (value.shape[0], elements(value.shape[1:])))
    sums = graph.kernel(
        "embed",
        *(ids, places, weights, table),
        shape=(elements(sizes), table.shape[1]),
        type=value.type,
        combiner=_COMBINERS[graph.options.combiner],
    )
    graph.result(graph.reshape(sums, shape))
