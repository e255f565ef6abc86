"""REDUCE_ALL: whether every value is true along some axes (see `_reduce` for axes and shapes); true of nothing.

Booleans only.
"""

from __future__ import annotations

import numpy as np

from gossamer.ops._reduce import axes_of, lower_reduction, prepare_reduction
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, versions
from gossamer.schema.enums import TensorType
from gossamer.schema.options import ReducerOptions

op = OpDef(
    "REDUCE_ALL",
    inputs=("x", "axes"),
    outputs=("output",),
    versions=versions("2.6.0"),
    types={"x": (TensorType.BOOL,), "axes": (TensorType.INT32,), "output": (TensorType.BOOL,)},
    options=ReducerOptions,
    reserved_tensors=(0, 4),
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    prepare_reduction(ctx)


@op.reference
def reference(ctx: InvokeContext) -> Array:
    return np.asarray(np.logical_and.reduce(ctx.value(0), axis=axes_of(ctx), keepdims=ctx.options.keep_dims))


@op.lower
def lower(graph: Lowering) -> None:
    lower_reduction(graph, "min", TensorType.BOOL)
