"""UNIQUE: the different values of a vector in the order they first appear, and for each element which of them it is.

The second output is int32 or int64 as ``idx_out_type`` says. The first is always dynamic (TFLite's UNIQUE).
"""

from __future__ import annotations

from gossamer.dtypes import numpy_dtype, type_name
from gossamer.ops._distinct import distinct
from gossamer.ops._layout import INDEX_TYPES, require_rank, require_type
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, versions
from gossamer.schema.enums import TensorType
from gossamer.schema.options import UniqueOptions

TYPES = (
    TensorType.FLOAT32,
    TensorType.UINT8,
    TensorType.INT8,
    TensorType.INT16,
    TensorType.INT32,
    TensorType.INT64,
)

op = OpDef(
    "UNIQUE",
    inputs=("input",),
    outputs=("values", "indices"),
    versions=versions("1.14.0"),
    types={"input": TYPES, "values": TYPES, "indices": INDEX_TYPES},
    options=UniqueOptions,
    tells_shapes=True,
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    wanted = ctx.options.idx_out_type
    ctx.require(wanted in INDEX_TYPES, f"idx_out_type must be int32 or int64, got {type_name(wanted)}")
    require_type(ctx, "values", ctx.output(0), ctx.input(0).type)
    require_type(ctx, "indices", ctx.output(1), wanted)
    require_rank(ctx, "input", ctx.input(0), 1)
    ctx.set_dynamic(0)
    ctx.set_shape(1, ctx.input(0).shape)


@op.reference
def reference(ctx: InvokeContext) -> tuple[Array, Array]:
    values, indices = distinct(ctx.value(0))
    return values, indices.astype(numpy_dtype(ctx.output(1).type))


@op.lower
def lower(graph: Lowering) -> None:
    x = graph.value(0)
    values, indices, number = graph.sized("unique", x, results=((x.shape, x.type), (x.shape, TensorType.INT32)))
    graph.counted(values, number)
    graph.result(graph.cast(indices, graph.output(1).type), 1)
