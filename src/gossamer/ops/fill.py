"""FILL: a tensor of a given shape, all of one value.

``dims`` is an int32 or int64 vector of sizes, none negative; ``value`` a scalar with the output's quantization. The
output is dynamic if ``dims`` is not constant (TFLite's FILL).
"""

from __future__ import annotations

import numpy as np

from gossamer.ops._layout import (
    INDEX_TYPES,
    WHOLE_BYTE_TYPES,
    checked_shape,
    integers,
    require_rank,
    require_same_quantization,
    require_symmetric_int16,
    set_output_type,
)
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import SAME_SCALE, Array, InvokeContext, OpDef, PrepareContext, Version
from gossamer.ops.op_signature import FLOAT8, input_type
from gossamer.schema.enums import TensorType
from gossamer.schema.options import FillOptions

TYPES = (*WHOLE_BYTE_TYPES, TensorType.STRING)

op = OpDef(
    "FILL",
    inputs=("dims", "value"),
    outputs=("output",),
    versions=(
        Version(1, "1.13.0"),
        Version(2, "2.3.0", input_type(1, TensorType.BOOL, TensorType.STRING)),
        Version(3, "2.5.0", input_type(1, TensorType.INT8, TensorType.INT16)),
        Version(4, "2.12.0", input_type(1, TensorType.FLOAT16)),
        Version(5, "2.23.0", input_type(1, *FLOAT8)),
    ),
    types={"dims": INDEX_TYPES, "value": TYPES, "output": TYPES},
    options=FillOptions,
    quantizes=SAME_SCALE,
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    value = ctx.input(1)
    require_rank(ctx, "dims", ctx.input(0), 1)
    require_rank(ctx, "value", value, 0)
    set_output_type(ctx, 1)
    require_same_quantization(ctx, value, ctx.output())
    require_symmetric_int16(ctx, value)
    dims = ctx.constant(0)
    if dims is None:
        ctx.set_dynamic(0)
    else:
        ctx.set_shape(0, checked_shape(ctx, integers(dims)))


@op.reference
def reference(ctx: InvokeContext) -> Array:
    value = ctx.value(1)
    filled: Array = np.empty(checked_shape(ctx, integers(ctx.value(0))), value.dtype)
    filled[...] = value
    return filled


@op.lower
def lower(graph: Lowering) -> None:
    graph.result(graph.value(1).broadcast(graph.output().shape))
