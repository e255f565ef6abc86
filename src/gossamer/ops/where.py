"""WHERE: the coordinates of the elements that are not zero.

An int64 matrix, one row for each such element in the input's order, one column for each dimension; scalars are
refused. The number of rows is known when the model is prepared if the input is constant, otherwise the output is
dynamic (TFLite's WHERE).
"""

from __future__ import annotations

import numpy as np

from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, Version
from gossamer.ops.op_signature import input_type
from gossamer.schema.enums import TensorType
from gossamer.schema.options import WhereOptions

op = OpDef(
    "WHERE",
    inputs=("condition",),
    outputs=("output",),
    versions=(
        Version(1, "1.14.0"),
        Version(2, "2.8.0", ~input_type(0, TensorType.BOOL)),
    ),
    types={
        "condition": (
            TensorType.BOOL,
            TensorType.FLOAT32,
            TensorType.INT64,
            TensorType.INT32,
            TensorType.INT8,
            TensorType.UINT8,
            TensorType.UINT32,
        ),
        "output": (TensorType.INT64,),
    },
    options=WhereOptions,
    tells_shapes=True,
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    rank = len(ctx.input(0).shape)
    ctx.require(rank, "condition must not be a scalar")
    ctx.set_type(0, TensorType.INT64)
    condition = ctx.constant(0)
    if condition is None:
        ctx.set_dynamic(0)
    else:
        ctx.set_shape(0, (int(np.count_nonzero(condition)), rank))


@op.reference
def reference(ctx: InvokeContext) -> Array:
    return np.array(ctx.value(0).nonzero(), np.int64).T


@op.lower
def lower(graph: Lowering) -> None:
    x = graph.value(0)
    flat = graph.reshape(x, (x.size,))
    places, number = graph.sized("where", flat, results=(((x.size, len(x.shape)), TensorType.INT64),), sizes=x.shape)
    graph.counted(places, number)
