"""RELU: max(x, 0), element by element.

float32, float16, uint8, int8 and int16 (zero points 0); the output has the input's type and shape. A quantized
output has its own scale and zero point; there is no upper bound but the type's. The arithmetic is `_relu`'s.
"""

from __future__ import annotations

import math

from gossamer.ops._elementwise import lower_elementwise
from gossamer.ops._relu import QuantizedClamp, clamped, lower_clamp, prepare_clamp
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import INT, Array, InvokeContext, OpDef, PrepareContext, Version
from gossamer.ops.op_signature import input_type
from gossamer.schema.enums import TensorType

TYPES = (TensorType.FLOAT32, TensorType.FLOAT16, TensorType.UINT8, TensorType.INT8, TensorType.INT16)

op = OpDef(
    "RELU",
    inputs=("x",),
    outputs=("output",),
    versions=(
        Version(1, "1.5.0"),
        Version(2, "2.1.0", input_type(0, TensorType.INT8, TensorType.UINT8)),
        Version(3, "2.5.0", input_type(0, TensorType.INT16)),
    ),
    types={"x": TYPES, "output": TYPES},
    quantizes=INT,
)


@op.prepare
def prepare(ctx: PrepareContext) -> QuantizedClamp | None:
    return prepare_clamp(ctx, 0.0, math.inf)


@op.reference
def reference(ctx: InvokeContext) -> Array:
    return clamped(ctx, 0.0, math.inf)


@op.lower
def lower(graph: Lowering) -> None:
    if graph.data is not None and graph.input(0).type == TensorType.INT16:
        lower_clamp(graph, graph.data)
        return
    lower_elementwise(graph, "relu")
