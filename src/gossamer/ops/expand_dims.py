"""EXPAND_DIMS: a dimension of size 1 put in before position ``axis``.

The axis is one int32 or int64, negative from the end of the output. Elements are copied, so scale and zero point must
be the same on both sides. The output is dynamic if the axis is not constant (TFLite's EXPAND_DIMS).
"""

from __future__ import annotations

import numpy as np

from gossamer.ops._layout import (
    ANY_TYPES,
    INDEX_TYPES,
    integers,
    normalized_axis,
    require_same_quantization,
    require_single,
    require_symmetric_int16,
    set_output_type,
)
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import SAME_SCALE, Array, Context, InPlace, InvokeContext, OpDef, PrepareContext, versions
from gossamer.schema.options import ExpandDimsOptions

op = OpDef(
    "EXPAND_DIMS",
    inputs=("input", "axis"),
    outputs=("output",),
    versions=versions("1.10.0"),
    types={"input": ANY_TYPES, "axis": INDEX_TYPES, "output": ANY_TYPES},
    options=ExpandDimsOptions,
    in_place=InPlace.INPUT_0 | InPlace.DATA_UNMODIFIED,
    quantizes=SAME_SCALE,
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    source = ctx.input(0)
    set_output_type(ctx)
    require_same_quantization(ctx, source, ctx.output())
    require_symmetric_int16(ctx, source)
    require_single(ctx, "axis", ctx.input(1))
    value = ctx.constant(1)
    if value is None:
        ctx.set_dynamic(0)
    else:
        axis = _axis(ctx, value)
        ctx.set_shape(0, (*source.shape[:axis], 1, *source.shape[axis:]))


@op.reference
def reference(ctx: InvokeContext) -> Array:
    return np.expand_dims(ctx.value(0), _axis(ctx, ctx.value(1)))


@op.lower
def lower(graph: Lowering) -> None:
    graph.result(graph.reshape(graph.value(0), graph.output().shape))


def _axis(ctx: Context, value: Array) -> int:
    return normalized_axis(ctx, integers(value)[0], len(ctx.input(0).shape) + 1)
