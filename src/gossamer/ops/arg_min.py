"""ARG_MIN: the index of the least value along an axis (see `_arg_min_max`)."""

from __future__ import annotations

from gossamer.ops._arg_min_max import INDEX_TYPES, INPUT_TYPES, arg, lower_arg, prepare_arg
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import INT, Array, InvokeContext, OpDef, PrepareContext, Version
from gossamer.ops.op_signature import input_type
from gossamer.schema.enums import TensorType
from gossamer.schema.options import ArgMinOptions

op = OpDef(
    "ARG_MIN",
    inputs=("x", "axis"),
    outputs=("output",),
    versions=(
        Version(1, "1.9.0"),
        Version(2, "1.14.0", input_type(0, TensorType.INT8)),
        Version(3, "2.9.0", input_type(0, TensorType.BOOL)),
    ),
    reference_version=2,
    types={"x": INPUT_TYPES, "axis": INDEX_TYPES, "output": INDEX_TYPES},
    options=ArgMinOptions,
    quantizes=INT,
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    prepare_arg(ctx)


@op.reference
def reference(ctx: InvokeContext) -> Array:
    return arg(ctx, greatest=False)


@op.lower
def lower(graph: Lowering) -> None:
    lower_arg(graph, greatest=False)
