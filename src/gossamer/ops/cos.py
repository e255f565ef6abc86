"""COS: cos(x) of radians, element by element; float16 is computed in float32."""

from __future__ import annotations

import numpy as np

from gossamer.ops._elementwise import lower_elementwise, prepare_unary
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, Version
from gossamer.ops.op_signature import input_type
from gossamer.schema.enums import TensorType
from gossamer.schema.options import CosOptions

_TYPES = (TensorType.FLOAT32, TensorType.FLOAT16)

op = OpDef(
    "COS",
    inputs=("x",),
    outputs=("output",),
    versions=(
        Version(1, "1.14.0"),
        Version(2, "2.23.0", input_type(0, TensorType.FLOAT16)),
    ),
    reference_version=1,
    types={"x": _TYPES, "output": _TYPES},
    options=CosOptions,
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    prepare_unary(ctx)


@op.reference
def reference(ctx: InvokeContext) -> Array:
    x = ctx.value(0)
    return np.asarray(np.cos(x.astype(np.float32))).astype(x.dtype)


@op.lower
def lower(graph: Lowering) -> None:
    lower_elementwise(graph, "cos")
