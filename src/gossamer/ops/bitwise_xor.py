"""BITWISE_XOR: x ^ y of integers, bit by bit, with broadcasting."""

from __future__ import annotations

import numpy as np

from gossamer.ops._elementwise import lower_elementwise, prepare_binary
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, versions
from gossamer.schema.enums import TensorType
from gossamer.schema.options import BitwiseXorOptions

_TYPES = (
    TensorType.INT8,
    TensorType.INT16,
    TensorType.INT32,
    TensorType.UINT8,
    TensorType.UINT16,
    TensorType.UINT32,
)

op = OpDef(
    "BITWISE_XOR",
    inputs=("x", "y"),
    outputs=("output",),
    versions=versions("2.13.0"),
    types={"x": _TYPES, "y": _TYPES, "output": _TYPES},
    options=BitwiseXorOptions,
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    prepare_binary(ctx)


@op.reference
def reference(ctx: InvokeContext) -> Array:
    return np.bitwise_xor(ctx.value(0), ctx.value(1))


@op.lower
def lower(graph: Lowering) -> None:
    lower_elementwise(graph, "xor")
