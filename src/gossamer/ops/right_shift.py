"""RIGHT_SHIFT: x >> y of integers, with broadcasting: arithmetic for signed types.

Shifts are first clamped to what the type holds: below 0 counts as 0, above bits - 1 as bits - 1.
"""

from __future__ import annotations

import numpy as np

from gossamer.ops._elementwise import lower_elementwise, prepare_binary
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, versions
from gossamer.schema.enums import TensorType
from gossamer.schema.options import RightShiftOptions

_TYPES = (
    TensorType.INT8,
    TensorType.INT16,
    TensorType.INT32,
    TensorType.UINT8,
    TensorType.UINT16,
    TensorType.UINT32,
)

op = OpDef(
    "RIGHT_SHIFT",
    inputs=("x", "y"),
    outputs=("output",),
    versions=versions("2.13.0"),
    types={"x": _TYPES, "y": _TYPES, "output": _TYPES},
    options=RightShiftOptions,
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    prepare_binary(ctx)


@op.reference
def reference(ctx: InvokeContext) -> Array:
    x, y = ctx.value(0), ctx.value(1)
    result: Array = np.right_shift(x, np.clip(y, 0, 8 * x.dtype.itemsize - 1))
    return result


@op.lower
def lower(graph: Lowering) -> None:
    lower_elementwise(graph, "shiftright")
