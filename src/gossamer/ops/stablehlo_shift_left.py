"""STABLEHLO_SHIFT_LEFT: x << y of two tensors of one shape and type, int8, int16 or int32; bits fall off at the top.

The shift is done in 32 bits, and of y only the low 5 bits count, which is what C++ compiles to on x86.
"""

from __future__ import annotations

import numpy as np

from gossamer.ops._elementwise import lower_elementwise
from gossamer.ops._stablehlo_elementwise import prepare_same_shapes
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, versions
from gossamer.schema.enums import TensorType
from gossamer.schema.options import StablehloShiftLeftOptions

_TYPES = (TensorType.INT8, TensorType.INT16, TensorType.INT32)

op = OpDef(
    "STABLEHLO_SHIFT_LEFT",
    inputs=("x", "y"),
    outputs=("output",),
    versions=versions("2.17.0"),
    reference_version=0,
    types={"x": _TYPES, "y": _TYPES, "output": _TYPES},
    options=StablehloShiftLeftOptions,
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    ctx.set_type(0, ctx.input(0).type)
    prepare_same_shapes(ctx)


@op.reference
def reference(ctx: InvokeContext) -> Array:
    x, y = ctx.value(0), ctx.value(1)
    result: Array = np.left_shift(x.astype(np.int64), y.astype(np.int64) & 31).astype(x.dtype)
    return result


@op.lower
def lower(graph: Lowering) -> None:
    lower_elementwise(graph, "shiftleft")
