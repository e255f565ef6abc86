"""LOGICAL_AND: x and y of booleans, element by element, with broadcasting."""

from __future__ import annotations

import numpy as np

from gossamer.ops._elementwise import lower_elementwise, prepare_binary
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, versions
from gossamer.schema.enums import TensorType
from gossamer.schema.options import LogicalAndOptions

_TYPES = (TensorType.BOOL,)

op = OpDef(
    "LOGICAL_AND",
    inputs=("x", "y"),
    outputs=("output",),
    versions=versions("1.11.0"),
    types={"x": _TYPES, "y": _TYPES, "output": _TYPES},
    options=LogicalAndOptions,
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    prepare_binary(ctx)


@op.reference
def reference(ctx: InvokeContext) -> Array:
    return np.logical_and(ctx.value(0), ctx.value(1))


@op.lower
def lower(graph: Lowering) -> None:
    lower_elementwise(graph, "and")
