"""STABLEHLO_MAXIMUM: ``x < y ? y : x``, element by element, of two tensors of one shape and type.

So x comes out where either is NaN. Quantization plays no part.
"""

from __future__ import annotations

import numpy as np

from gossamer.ops._elementwise import lower_elementwise
from gossamer.ops._stablehlo_elementwise import NUMBERS_AND_BOOL, prepare_same_shapes
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, versions
from gossamer.schema.enums import TensorType

op = OpDef(
    "STABLEHLO_MAXIMUM",
    inputs=("x", "y"),
    outputs=("output",),
    versions=versions("2.16.0"),
    types={"x": NUMBERS_AND_BOOL, "y": NUMBERS_AND_BOOL, "output": NUMBERS_AND_BOOL},
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    prepare_same_shapes(ctx)


@op.reference
def reference(ctx: InvokeContext) -> Array:
    x, y = ctx.value(0), ctx.value(1)
    return np.where(x < y, y, x)


@op.lower
def lower(graph: Lowering) -> None:
    lower_elementwise(graph, "or" if graph.output().type == TensorType.BOOL else ("max", 1, 0))
