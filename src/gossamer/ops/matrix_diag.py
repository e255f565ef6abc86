"""MATRIX_DIAG: square matrices with the last dimension of the input on their diagonals and 0 elsewhere.

Input [..., n], output [..., n, n] (TFLite's MATRIX_DIAG, which computes types of other sizes than its own as
float32; here every type does what the operator says).
"""

from __future__ import annotations

import numpy as np

from gossamer.ops._layout import WHOLE_BYTE_TYPES, checked_shape, set_output_type
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, versions
from gossamer.schema.options import MatrixDiagOptions

op = OpDef(
    "MATRIX_DIAG",
    inputs=("diagonal",),
    outputs=("output",),
    versions=versions("1.14.0"),
    types={"diagonal": WHOLE_BYTE_TYPES, "output": WHOLE_BYTE_TYPES},
    options=MatrixDiagOptions,
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    shape = ctx.input(0).shape
    ctx.require(shape, "diagonal must not be a scalar")
    set_output_type(ctx)
    ctx.set_shape(0, checked_shape(ctx, [*shape, shape[-1]]))


@op.reference
def reference(ctx: InvokeContext) -> Array:
    diagonal = ctx.value(0)
    result = np.zeros(ctx.output().shape, diagonal.dtype)
    places = np.arange(diagonal.shape[-1])
    result[..., places, places] = diagonal
    return result


@op.lower
def lower(graph: Lowering) -> None:
    diagonal = graph.value(0)
    result = graph.copy(graph.scalar(0, diagonal).broadcast(graph.output().shape))
    graph.copy(diagonal, result.diagonal())
    graph.result(result)
