"""ROUND: the nearest whole number, halves to the even one, element by element."""

from __future__ import annotations

import numpy as np

from gossamer.ops._elementwise import lower_elementwise, prepare_unary
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, versions
from gossamer.schema.enums import TensorType

_TYPES = (TensorType.FLOAT32, TensorType.FLOAT16, TensorType.BFLOAT16)

op = OpDef(
    "ROUND",
    inputs=("x",),
    outputs=("output",),
    versions=versions("1.14.0"),
    reference_version=0,
    types={"x": _TYPES, "output": _TYPES},
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    prepare_unary(ctx, sets_type=True)


@op.reference
def reference(ctx: InvokeContext) -> Array:
    x = ctx.value(0)
    return np.asarray(np.rint(x.astype(np.float32))).astype(x.dtype)


@op.lower
def lower(graph: Lowering) -> None:
    lower_elementwise(graph, "round")
