"""SELECT_V2: x where the condition holds, y elsewhere; all three broadcast, up to rank 8.

The condition is bool; x and y have one type. Inputs that all have one element leave an output of one element in the
shape that it has. Quantization plays no part.
"""

from __future__ import annotations

import numpy as np

from gossamer.ops._broadcast import broadcast_shape
from gossamer.ops._select import TYPES, require_types, single_element_shape
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import SAME_SCALE, Array, InvokeContext, OpDef, PrepareContext, Shape, Version
from gossamer.ops.op_signature import input_type
from gossamer.schema.enums import TensorType
from gossamer.schema.options import SelectV2Options

op = OpDef(
    "SELECT_V2",
    inputs=("condition", "x", "y"),
    outputs=("output",),
    versions=(
        Version(1, "2.2.0"),
        Version(2, "2.12.0", input_type(0, TensorType.UINT32)),
    ),
    types={"condition": (TensorType.BOOL,), "x": TYPES, "y": TYPES, "output": TYPES},
    options=SelectV2Options,
    quantizes=SAME_SCALE,
)


@op.prepare
def prepare(ctx: PrepareContext) -> Shape:
    """The shape of the output."""
    require_types(ctx)
    shape = single_element_shape(ctx)
    if shape is None:
        shapes = [ctx.input(position).shape for position in range(3)]
        shape = broadcast_shape(ctx, *shapes)
        ctx.require(len(shape) <= 8 or len(set(shapes)) == 1, f"broadcasts up to rank 8, got rank {len(shape)}")
    ctx.set_shape(0, shape)
    return shape


@op.reference
def reference(ctx: InvokeContext) -> Array:
    selected = np.where(ctx.value(0), ctx.value(1), ctx.value(2))
    return selected.reshape(ctx.data) if selected.size == 1 else selected


@op.lower
def lower(graph: Lowering) -> None:
    x = graph.value(1)
    selected = graph.map("select", graph.value(0), x, graph.value(2), type=x.type)
    graph.result(graph.reshape(selected, graph.data))
