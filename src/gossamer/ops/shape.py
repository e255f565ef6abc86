"""SHAPE: the sizes of the input's dimensions, an int32 or int64 vector.

The shape of a tensor is known before the operator that reads it is prepared, even if the tensor is dynamic: the output
is a constant for the operators behind it (TFLite's SHAPE).
"""

from __future__ import annotations

from gossamer.dtypes import numpy_dtype, type_name
from gossamer.ops._layout import INDEX_TYPES, vector
from gossamer.ops.op_def import Array, Context, InvokeContext, OpDef, PrepareContext, versions
from gossamer.schema.options import ShapeOptions

op = OpDef(
    "SHAPE",
    inputs=("input",),
    outputs=("output",),
    versions=versions("1.10.0"),
    types={"output": INDEX_TYPES},
    options=ShapeOptions,
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    wanted = ctx.options.out_type
    ctx.require(wanted in INDEX_TYPES, f"out_type must be int32 or int64, got {type_name(wanted)}")
    ctx.set_type(0, wanted)
    ctx.set_constant(0, _shape(ctx))


@op.reference
def reference(ctx: InvokeContext) -> Array:
    return _shape(ctx)


def _shape(ctx: Context) -> Array:
    return vector(ctx.input(0).shape, numpy_dtype(ctx.output().type))
