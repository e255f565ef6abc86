"""SIGN: -1, 0 or 1 as x is below, at or above 0, element by element; NaN stays NaN."""

from __future__ import annotations

import numpy as np

from gossamer.ops._elementwise import lower_elementwise, prepare_unary
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, Version
from gossamer.ops.op_signature import input_type
from gossamer.schema.enums import TensorType
from gossamer.schema.options import SignOptions

_TYPES = (TensorType.FLOAT32, TensorType.FLOAT64, TensorType.INT32)

op = OpDef(
    "SIGN",
    inputs=("x",),
    outputs=("output",),
    versions=(
        Version(1, "2.11.0"),
        Version(2, "2.12.0", input_type(0, TensorType.INT32)),
    ),
    types={"x": _TYPES, "output": _TYPES},
    options=SignOptions,
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    prepare_unary(ctx)


@op.reference
def reference(ctx: InvokeContext) -> Array:
    return np.sign(ctx.value(0))


@op.lower
def lower(graph: Lowering) -> None:
    lower_elementwise(graph, "sign")
