"""STABLEHLO_AND: x & y, bit by bit, of two tensors of one shape and type: integers or booleans."""

from __future__ import annotations

import numpy as np

from gossamer.ops._elementwise import lower_elementwise
from gossamer.ops._stablehlo_elementwise import INTEGERS_AND_BOOL, prepare_same_shapes
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, versions

op = OpDef(
    "STABLEHLO_AND",
    inputs=("x", "y"),
    outputs=("output",),
    versions=versions("2.17.0"),
    reference_version=0,
    types={"x": INTEGERS_AND_BOOL, "y": INTEGERS_AND_BOOL, "output": INTEGERS_AND_BOOL},
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    prepare_same_shapes(ctx)


@op.reference
def reference(ctx: InvokeContext) -> Array:
    return np.bitwise_and(ctx.value(0), ctx.value(1))


@op.lower
def lower(graph: Lowering) -> None:
    lower_elementwise(graph, "and")
