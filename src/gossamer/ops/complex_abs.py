"""COMPLEX_ABS: the magnitude of complex numbers, element by element: complex64 to float32, complex128 to float64."""

from __future__ import annotations

import numpy as np

from gossamer.ops._complex import parts
from gossamer.ops._elementwise import prepare_complex_part
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, versions
from gossamer.schema.enums import TensorType

op = OpDef(
    "COMPLEX_ABS",
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
    return np.abs(ctx.value(0))


@op.lower
def lower(graph: Lowering) -> None:
    # The larger part times sqrt(1 + ratio ** 2), which does not overflow; 0 / 0 and inf / inf are no ratios.
    real, imaginary = (graph.map("abs", part) for part in parts(graph, 0))
    larger, smaller = graph.map("max", real, imaginary), graph.map("min", imaginary, real)
    zero, one, infinity = (graph.scalar(value, real) for value in (0, 1, np.inf))
    ratio = graph.map(("select", ("equal", 0, 1), 1, ("div", 2, 0)), larger, zero, smaller)
    length = graph.map(("mul", 0, ("sqrt", ("add", 1, ("square", 2)))), larger, one, ratio)
    is_infinite = graph.map(("or", ("equal", 0, 2), ("equal", 1, 2)), real, imaginary, infinity, type=TensorType.BOOL)
    graph.result(graph.map(("select", 0, 1, 2), is_infinite, infinity, length, type=real.type))
