"""FLOOR_DIV: floor(x / y), element by element, with broadcasting.

TFLite divides in float64, which is exact for these integers; -2**31 / -1 wraps. float32 is divided in float64 and
rounded once. A divisor of zero is refused when it turns up, of floats too.
"""

from __future__ import annotations

import numpy as np

from gossamer.ops._elementwise import nonzero_divisor, prepare_binary, require_nonzero
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, Version
from gossamer.ops.op_signature import input_type
from gossamer.schema.enums import TensorType
from gossamer.schema.options import FloorDivOptions

_TYPES = (TensorType.FLOAT32, TensorType.INT32, TensorType.INT16, TensorType.INT8)

op = OpDef(
    "FLOOR_DIV",
    inputs=("x", "y"),
    outputs=("output",),
    versions=(
        Version(1, "1.14.0"),
        Version(2, "1.14.0", input_type(0, TensorType.FLOAT32)),
        Version(3, "2.13.0", input_type(0, TensorType.INT8, TensorType.INT16)),
    ),
    types={"x": _TYPES, "y": _TYPES, "output": _TYPES},
    options=FloorDivOptions,
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    prepare_binary(ctx)


@op.reference
def reference(ctx: InvokeContext) -> Array:
    x, y = ctx.value(0), ctx.value(1)
    require_nonzero(ctx, y)
    if x.dtype == np.float32:
        quotient: Array = np.floor(x.astype(np.float64) / y.astype(np.float64))
        return quotient.astype(np.float32)
    return np.floor_divide(x.astype(np.int64), y.astype(np.int64)).astype(x.dtype)


@op.lower
def lower(graph: Lowering) -> None:
    graph.result(graph.map("floordiv", graph.value(0), nonzero_divisor(graph)))
