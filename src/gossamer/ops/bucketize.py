"""BUCKETIZE: the bucket of each value: how many boundaries are not greater than it.

The option ``boundaries`` holds ascending float32 numbers. float32, float64, int32 and int64 values; integers are
compared as float32, which rounds large ones. NaN falls in the last bucket. The output is int32.
"""

from __future__ import annotations

import numpy as np

from gossamer.dtypes import numpy_dtype
from gossamer.ops._reduce import folded
from gossamer.ops._search import place_of
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, versions
from gossamer.schema.enums import TensorType
from gossamer.schema.options import BucketizeOptions

FEW = 16
"""Boundaries with each of which elements are compared: among more it is quicker to search."""

op = OpDef(
    "BUCKETIZE",
    inputs=("x",),
    outputs=("output",),
    versions=versions("2.8.0"),
    types={
        "x": (TensorType.FLOAT32, TensorType.FLOAT64, TensorType.INT32, TensorType.INT64),
        "output": (TensorType.INT32,),
    },
    options=BucketizeOptions,
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    ctx.require(ctx.options.has("boundaries"), "boundaries are missing")
    boundaries = ctx.options.boundaries
    ctx.require(not (boundaries[1:] < boundaries[:-1]).any(), "boundaries must be sorted in ascending order")
    ctx.set_type(0, TensorType.INT32)
    ctx.set_shape(0, ctx.input(0).shape)


@op.reference
def reference(ctx: InvokeContext) -> Array:
    x = ctx.value(0)
    compared = np.float64 if x.dtype == np.float64 else np.float32
    return place_of(ctx.options.boundaries.astype(compared), x.astype(compared)).astype(np.int32)


@op.lower
def lower(graph: Lowering) -> None:
    x, boundaries = graph.value(0), graph.options.boundaries
    if not boundaries.size:
        graph.refuse("there are no boundaries")
    compared = TensorType.FLOAT64 if x.type == TensorType.FLOAT64 else TensorType.FLOAT32
    limits = graph.array(boundaries.astype(numpy_dtype(compared)))
    values = graph.reshape(graph.cast(x, compared), (1, x.size))
    if boundaries.size > FEW:
        keys = graph.reshape(limits, (1, limits.size))
        buckets = graph.kernel("search", keys, values, shape=values.shape, type=TensorType.INT32, rule="upper")
    else:
        # A row for each boundary: rows are long, whatever the shape of x.
        keys = graph.reshape(limits, (limits.size, 1))
        is_above = graph.map(("toi32", ("not", ("less", 0, 1))), values, keys, type=TensorType.INT32)
        buckets = folded(graph, "add", is_above, 0)
    graph.result(graph.reshape(buckets, graph.output().shape))
