"""MINIMUM: ``x < y ? x : y``, element by element, with broadcasting.

So y comes out where either is NaN. Quantized values are compared as they are stored: inputs and output should have the
same scale and zero point, and nothing checks it.
"""

from __future__ import annotations

import numpy as np

from gossamer.ops._elementwise import lower_elementwise, prepare_binary
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import SAME_SCALE, Array, InvokeContext, OpDef, PrepareContext, Version
from gossamer.ops.op_signature import broadcasts_above, in_and_out, input_type
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
    versions=(
        Version(1, "1.14.0"),
        Version(2, "1.14.0", input_type(0, TensorType.INT8)),
        Version(3, "2.3.0", broadcasts_above(4)),
        Version(4, "2.3.0", in_and_out(TensorType.INT16)),
    ),
    types={"x": _TYPES, "y": _TYPES, "output": _TYPES},
    options=MaximumMinimumOptions,
    quantizes=SAME_SCALE,
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    prepare_binary(ctx)


@op.reference
def reference(ctx: InvokeContext) -> Array:
    x, y = ctx.value(0), ctx.value(1)
    return np.where(x < y, x, y)


@op.lower
def lower(graph: Lowering) -> None:
    lower_elementwise(graph, "min")
