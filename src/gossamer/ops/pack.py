"""PACK: tensors of one shape stacked along a new axis.

All inputs have the same type, shape and quantization, as has the output; ``axis`` of the output, negative from its
end, counts the inputs. (TFLite's PACK, TensorFlow's stack.)
"""

from __future__ import annotations

import numpy as np

from gossamer.ops._layout import (
    FLOAT8_TYPES,
    checked_shape,
    normalized_axis,
    require_output_type,
    require_same_quantization,
    require_shape,
    require_type,
)
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import SAME_SCALE, Array, InvokeContext, OpDef, PrepareContext, Version
from gossamer.ops.op_signature import FLOAT8, in_and_out, input_type
from gossamer.schema.enums import TensorType
from gossamer.schema.options import PackOptions

TYPES = (
    TensorType.FLOAT32,
    TensorType.UINT8,
    TensorType.INT8,
    TensorType.INT16,
    TensorType.INT32,
    TensorType.INT64,
    TensorType.UINT32,
    *FLOAT8_TYPES,
)

op = OpDef(
    "PACK",
    inputs=("value", "values*"),
    outputs=("output",),
    versions=(
        Version(1, "1.11.0"),
        Version(2, "1.14.0", input_type(0, TensorType.INT8)),
        Version(3, "2.3.0", in_and_out(TensorType.INT16)),
        Version(4, "2.13.0", input_type(0, TensorType.UINT32)),
        Version(5, "2.23.0", input_type(0, *FLOAT8)),
    ),
    types={"value": TYPES, "values": TYPES, "output": TYPES},
    options=PackOptions,
    quantizes=SAME_SCALE,
)


@op.prepare
def prepare(ctx: PrepareContext) -> int:
    """Returns the axis."""
    count = len(ctx.inputs)
    ctx.require(ctx.options.values_count == count, f"values_count {ctx.options.values_count} but {count} inputs")
    first, output = ctx.input(0), ctx.output()
    require_output_type(ctx)
    for position in range(count):
        tensor = ctx.input(position)
        require_type(ctx, f'input "{tensor.name}"', tensor, first.type)
        require_shape(ctx, f'input "{tensor.name}"', tensor, first.shape)
        require_same_quantization(ctx, tensor, output)
    axis = normalized_axis(ctx, ctx.options.axis, len(first.shape) + 1)
    ctx.set_shape(0, checked_shape(ctx, [*first.shape[:axis], count, *first.shape[axis:]]))
    return axis


@op.reference
def reference(ctx: InvokeContext) -> Array:
    return np.stack([ctx.value(position) for position in range(len(ctx.inputs))], ctx.data)


@op.lower
def lower(graph: Lowering) -> None:
    shape = list(graph.output().shape)
    axis = normalized_axis(graph, graph.options.axis, len(shape))
    shape[axis] = 1
    values = [graph.reshape(graph.value(position), shape) for position in range(len(graph.inputs))]
    graph.result(graph.concat(values, axis))
