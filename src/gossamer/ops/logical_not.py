"""LOGICAL_NOT: not x of booleans, element by element."""

from __future__ import annotations

import numpy as np

from gossamer.ops._elementwise import lower_elementwise, prepare_unary
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, versions
from gossamer.schema.enums import TensorType
from gossamer.schema.options import LogicalNotOptions

op = OpDef(
    "LOGICAL_NOT",
    inputs=("x",),
    outputs=("output",),
    versions=versions("1.11.0"),
    types={"x": (TensorType.BOOL,), "output": (TensorType.BOOL,)},
    options=LogicalNotOptions,
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    prepare_unary(ctx)


@op.reference
def reference(ctx: InvokeContext) -> Array:
    return np.logical_not(ctx.value(0))


@op.lower
def lower(graph: Lowering) -> None:
    lower_elementwise(graph, "not")
