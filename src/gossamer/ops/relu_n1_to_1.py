"""RELU_N1_TO_1: min(max(x, -1), 1), element by element.

float32, float16, uint8 and int8; the output has the input's type and shape, and a scale and zero point of its own where
it is quantized. The arithmetic is `_relu`'s.
"""

from __future__ import annotations

from gossamer.ops._elementwise import lower_elementwise
from gossamer.ops._relu import QuantizedClamp, clamped, prepare_clamp
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import INT, Array, InvokeContext, OpDef, PrepareContext, versions
from gossamer.schema.enums import TensorType

TYPES = (TensorType.FLOAT32, TensorType.FLOAT16, TensorType.UINT8, TensorType.INT8)

op = OpDef(
    "RELU_N1_TO_1",
    inputs=("x",),
    outputs=("output",),
    versions=versions("1.5.0"),
    types={"x": TYPES, "output": TYPES},
    quantizes=INT,
)


@op.prepare
def prepare(ctx: PrepareContext) -> QuantizedClamp | None:
    return prepare_clamp(ctx, -1.0, 1.0)


@op.reference
def reference(ctx: InvokeContext) -> Array:
    return clamped(ctx, -1.0, 1.0)


@op.lower
def lower(graph: Lowering) -> None:
    lower_elementwise(graph, "relun1")
