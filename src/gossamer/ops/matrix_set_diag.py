"""MATRIX_SET_DIAG: the input matrices with their main diagonals replaced.

Input [..., rows, columns], diagonal [..., min(rows, columns)] of the same type (TFLite's MATRIX_SET_DIAG, which
computes types of other sizes than its own as float32; here every type does what the operator says).
"""

from __future__ import annotations

import numpy as np

from gossamer.ops._layout import WHOLE_BYTE_TYPES, require_shape, require_type, set_output_type
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, versions
from gossamer.schema.options import MatrixSetDiagOptions

op = OpDef(
    "MATRIX_SET_DIAG",
    inputs=("input", "diagonal"),
    outputs=("output",),
    versions=versions("1.14.0"),
    types={"input": WHOLE_BYTE_TYPES, "diagonal": WHOLE_BYTE_TYPES, "output": WHOLE_BYTE_TYPES},
    options=MatrixSetDiagOptions,
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    source = ctx.input(0)
    ctx.require(len(source.shape) >= 2, f"input must have 2 dimensions or more, got {list(source.shape)}")
    require_shape(ctx, "diagonal", ctx.input(1), (*source.shape[:-2], min(source.shape[-2:])))
    require_type(ctx, "diagonal", ctx.input(1), source.type)
    set_output_type(ctx)
    ctx.set_shape(0, source.shape)


@op.reference
def reference(ctx: InvokeContext) -> Array:
    diagonal = ctx.value(1)
    result: Array = ctx.value(0).copy()
    places = np.arange(diagonal.shape[-1])
    result[..., places, places] = diagonal
    return result


@op.lower
def lower(graph: Lowering) -> None:
    result = graph.copy(graph.value(0))
    graph.copy(graph.value(1), result.diagonal())
    graph.result(result)
