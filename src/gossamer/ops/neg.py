"""NEG: -x, element by element.

The least integer stays as it is, as in C. Quantization plays no part: the stored integers are negated.
"""

from __future__ import annotations

import numpy as np

from gossamer.ops._elementwise import lower_elementwise, prepare_unary
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, versions
from gossamer.schema.enums import TensorType
from gossamer.schema.options import NegOptions

_TYPES = (
    TensorType.FLOAT32,
    TensorType.FLOAT16,
    TensorType.BFLOAT16,
    TensorType.INT64,
    TensorType.INT32,
    TensorType.INT16,
    TensorType.INT8,
)

op = OpDef(
    "NEG",
    inputs=("x",),
    outputs=("output",),
    versions=versions("1.9.0"),
    types={"x": _TYPES, "output": _TYPES},
    options=NegOptions,
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    prepare_unary(ctx, sets_type=True)


@op.reference
def reference(ctx: InvokeContext) -> Array:
    return np.negative(ctx.value(0))


@op.lower
def lower(graph: Lowering) -> None:
    lower_elementwise(graph, "neg")
