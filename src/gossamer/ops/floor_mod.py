"""FLOOR_MOD: the remainder of floor(x / y), element by element, with broadcasting; it has the sign of y.

That is C's remainder, plus y where it is not zero and its sign is not that of y: so -1 mod infinity is infinity. A
divisor of zero is refused among integers when it turns up; among floats the result is NaN.
"""

from __future__ import annotations

import numpy as np

from gossamer.ops._elementwise import nonzero_divisor, prepare_binary, require_nonzero
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, Version
from gossamer.ops.op_signature import input_type
from gossamer.schema.enums import TensorType
from gossamer.schema.options import FloorModOptions

_TYPES = (TensorType.FLOAT32, TensorType.INT64, TensorType.INT32, TensorType.INT16, TensorType.INT8)

op = OpDef(
    "FLOOR_MOD",
    inputs=("x", "y"),
    outputs=("output",),
    versions=(
        Version(1, "1.13.0"),
        Version(2, "2.13.0", input_type(0, TensorType.INT8, TensorType.INT16)),
    ),
    types={"x": _TYPES, "y": _TYPES, "output": _TYPES},
    options=FloorModOptions,
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    prepare_binary(ctx)


@op.reference
def reference(ctx: InvokeContext) -> Array:
    x, y = ctx.value(0), ctx.value(1)
    if x.dtype != np.float32:
        require_nonzero(ctx, y)
        return np.mod(x, y)
    remainder = np.fmod(x, y)
    return np.where((remainder != 0) & ((y < 0) != (remainder < 0)), remainder + y, remainder)


@op.lower
def lower(graph: Lowering) -> None:
    is_float = graph.output().type == TensorType.FLOAT32
    y = graph.value(1) if is_float else nonzero_divisor(graph)
    graph.result(graph.map("floormod", graph.value(0), y))
