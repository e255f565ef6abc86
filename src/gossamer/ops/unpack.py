"""UNPACK: the slices of the input along an axis, one output each, without that axis.

``num`` outputs for a dimension of ``num``; the input must not be empty. Elements are copied, so the outputs have the
input's quantization. (TFLite's UNPACK, TensorFlow's unstack.)
"""

from __future__ import annotations

from gossamer.ops._layout import (
    FLOAT8_TYPES,
    elements,
    normalized_axis,
    require_output_type,
    require_same_quantization,
)
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import SAME_SCALE, Array, InvokeContext, OpDef, PrepareContext, Version
from gossamer.ops.op_signature import FLOAT8, in_and_out, input_type
from gossamer.schema.enums import TensorType
from gossamer.schema.options import UnpackOptions

TYPES = (
    TensorType.FLOAT32,
    TensorType.FLOAT16,
    TensorType.BFLOAT16,
    TensorType.UINT8,
    TensorType.INT8,
    TensorType.INT16,
    TensorType.INT32,
    TensorType.BOOL,
    *FLOAT8_TYPES,
)

op = OpDef(
    "UNPACK",
    inputs=("input",),
    outputs=("value", "values*"),
    versions=(
        Version(1, "1.11.0"),
        Version(2, "1.14.0", input_type(0, TensorType.INT8, TensorType.UINT8)),
        Version(3, "2.2.0", input_type(0, TensorType.BOOL)),
        Version(4, "2.3.0", in_and_out(TensorType.INT16)),
        Version(5, "2.22.0", input_type(0, TensorType.FLOAT16, TensorType.BFLOAT16)),
        Version(6, "2.23.0", input_type(0, *FLOAT8)),
    ),
    types={"input": TYPES},
    options=UnpackOptions,
    quantizes=SAME_SCALE,
)


@op.prepare
def prepare(ctx: PrepareContext) -> int:
    """Returns the axis."""
    source, count = ctx.input(0), len(ctx.outputs)
    ctx.require(elements(source.shape), f"input must not be empty, got {list(source.shape)}")
    axis = normalized_axis(ctx, ctx.options.axis, len(source.shape))
    ctx.require(
        ctx.options.num == count == source.shape[axis],
        f"num {ctx.options.num}, {count} outputs and dimension {axis} of {list(source.shape)} must be equal",
    )
    require_output_type(ctx)
    for position in range(count):
        require_same_quantization(ctx, source, ctx.output(position))
        ctx.set_shape(position, (*source.shape[:axis], *source.shape[axis + 1 :]))
    return axis


@op.reference
def reference(ctx: InvokeContext) -> tuple[Array, ...]:
    value, ahead = ctx.value(0), (slice(None),) * ctx.data
    # The Ellipsis keeps an array where a plain index would give a scalar.
    return tuple(value[ahead + (i, ...)] for i in range(len(ctx.outputs)))


@op.lower
def lower(graph: Lowering) -> None:
    value = graph.value(0)
    axis = normalized_axis(graph, graph.options.axis, len(value.shape))
    for position in range(len(graph.outputs)):
        graph.result(graph.reshape(value.slice(axis, position, 1), graph.output(position).shape), position)
