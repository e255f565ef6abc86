"""ZEROS_LIKE: zeros of the type and shape of the input; its values play no part."""

from __future__ import annotations

import numpy as np

from gossamer.dtypes import numpy_dtype
from gossamer.ops._elementwise import prepare_unary
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, versions
from gossamer.schema.enums import TensorType
from gossamer.schema.options import ZerosLikeOptions

_TYPES = (TensorType.FLOAT32, TensorType.INT32, TensorType.INT64)

op = OpDef(
    "ZEROS_LIKE",
    inputs=("x",),
    outputs=("output",),
    versions=versions("1.12.0"),
    types={"x": _TYPES, "output": _TYPES},
    options=ZerosLikeOptions,
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    prepare_unary(ctx, sets_type=True)


@op.reference
def reference(ctx: InvokeContext) -> Array:
    return np.zeros_like(ctx.value(0))


@op.lower
def lower(graph: Lowering) -> None:
    output = graph.output()
    zero = np.zeros((), numpy_dtype(output.type))
    graph.result(graph.array(zero, output.type).broadcast(output.shape))
