"""BUCKETIZE: the bucket of each value: how many boundaries are not greater than it.

The option ``boundaries`` holds ascending float32 numbers. float32, float64, int32 and int64 values; integers are
compared as float32, which rounds large ones. NaN falls in the last bucket. The output is int32.
"""

from __future__ import annotations

import numpy as np

from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, versions
from gossamer.schema.enums import TensorType
from gossamer.schema.options import BucketizeOptions

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
    ctx.set_shape(0, ctx.input(0).shape)


@op.reference
def reference(ctx: InvokeContext) -> Array:
    x = ctx.value(0)
    compared = np.float64 if x.dtype == np.float64 else np.float32
    buckets = np.searchsorted(ctx.options.boundaries.astype(compared), x.astype(compared), side="right")
    return np.asarray(buckets).astype(np.int32)
