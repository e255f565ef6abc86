"""ARG_MIN: the index of the least value along an axis (see `_arg_min_max`)."""

from __future__ import annotations

from gossamer.ops._arg_min_max import INDEX_TYPES, INPUT_TYPES, arg, prepare_arg
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, versions
from gossamer.schema.options import ArgMinOptions

op = OpDef(
    "ARG_MIN",
    inputs=("x", "axis"),
    outputs=("output",),
    versions=versions("1.9.0", "1.14.0", "2.9.0"),
    reference_version=2,
    types={"x": INPUT_TYPES, "axis": INDEX_TYPES, "output": INDEX_TYPES},
    options=ArgMinOptions,
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    prepare_arg(ctx)


@op.reference
def reference(ctx: InvokeContext) -> Array:
    return arg(ctx, greatest=False)
