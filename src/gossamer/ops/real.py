"""REAL: the real part of complex numbers, element by element: complex64 to float32, complex128 to float64."""

from __future__ import annotations

import numpy as np

from gossamer.ops._complex import part
from gossamer.ops._elementwise import prepare_complex_part
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, versions
from gossamer.schema.enums import TensorType

op = OpDef(
    "REAL",
    inputs=("x",),
    outputs=("output",),
    versions=versions("2.5.0"),
    types={
        "x": (TensorType.COMPLEX64, TensorType.COMPLEX128),
        "output": (TensorType.FLOAT32, TensorType.FLOAT64),
    },
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    prepare_complex_part(ctx)


@op.reference
def reference(ctx: InvokeContext) -> Array:
    return np.real(ctx.value(0))


@op.lower
def lower(graph: Lowering) -> None:
    graph.result(part(graph, 0, 0))
