"""DENSIFY: a sparse constant with its zeros put back.

The input's sparsity record says where the stored values belong; every other element is 0. The output is computed when
the model is prepared and kept (TFLite's DENSIFY computes it in the first invocation).
"""

from __future__ import annotations

from gossamer.ops._layout import require_output_type
from gossamer.ops._sparse_weights import to_dense
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, versions
from gossamer.schema.enums import TensorType
from gossamer.schema.options import DensifyOptions

TYPES = (TensorType.FLOAT32, TensorType.FLOAT16, TensorType.INT8)

op = OpDef(
    "DENSIFY",
    inputs=("input",),
    outputs=("output",),
    sparse="input",
    versions=versions("2.2.0"),
    types={"input": TYPES, "output": TYPES},
    options=DensifyOptions,
)


@op.prepare
def prepare(ctx: PrepareContext) -> Array:
    """Returns the dense value."""
    source = ctx.input(0)
    values = ctx.constant(0)
    if values is None or source.sparsity is None:
        ctx.fail("input must be a constant with a sparsity record")
    require_output_type(ctx)
    dense = to_dense(ctx, values.reshape(-1), source.shape, source.sparsity)
    ctx.set_constant(0, dense)
    return dense


@op.reference
def reference(ctx: InvokeContext) -> Array:
    dense: Array = ctx.data
    return dense
