"""CEIL: the least whole number not below x, element by element. LiteRT takes float16 through XNNPACK alone."""

from __future__ import annotations

import numpy as np

from gossamer.ops._elementwise import lower_elementwise, prepare_unary
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, versions
from gossamer.schema.enums import TensorType

_TYPES = (TensorType.FLOAT32, TensorType.FLOAT16)

op = OpDef(
    "CEIL",
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
    return np.ceil(ctx.value(0))


@op.lower
def lower(graph: Lowering) -> None:
    lower_elementwise(graph, "ceil")
