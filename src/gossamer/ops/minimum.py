"""MINIMUM: ``x < y ? x : y``, element by element, with broadcasting.

So y comes out where either is NaN. Quantized values are compared as they are stored: inputs and output should have the
same scale and zero point, and nothing checks it.
"""

from __future__ import annotations

import numpy as np

from gossamer.ops._elementwise import prepare_binary
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, versions
from gossamer.schema.enums import TensorType
from gossamer.schema.options import MaximumMinimumOptions

_TYPES = (
    TensorType.FLOAT32,
    TensorType.FLOAT16,
    TensorType.BFLOAT16,
    TensorType.UINT8,
    TensorType.INT8,
    TensorType.INT16,
    TensorType.INT32,
    TensorType.INT64,
)

op = OpDef(
    "MINIMUM",
    inputs=("x", "y"),
    outputs=("output",),
    versions=versions("1.14.0", "1.14.0", "2.3.0", "2.3.0"),
    types={"x": _TYPES, "y": _TYPES, "output": _TYPES},
    options=MaximumMinimumOptions,
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    prepare_binary(ctx)


@op.reference
def reference(ctx: InvokeContext) -> Array:
    x, y = ctx.value(0), ctx.value(1)
    return np.where(x < y, x, y)
