"""UNIQUE: the different values of a vector in the order they first appear, and for each element which of them it is.

The second output is int32 or int64 as ``idx_out_type`` says. The first is always dynamic (TFLite's UNIQUE).
"""

from __future__ import annotations

import numpy as np

from gossamer.dtypes import numpy_dtype, type_name
from gossamer.ops._layout import INDEX_TYPES, require_rank, require_type
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
    reference_only="the shape of its output depends on values",
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
    value = ctx.value(0)
    _, first, inverse = np.unique(value, return_index=True, return_inverse=True)
    order = np.argsort(first)
    ranks = np.empty_like(order)
    ranks[order] = np.arange(order.size)
    return value[first[order]], ranks[inverse].astype(numpy_dtype(ctx.output(1).type))
