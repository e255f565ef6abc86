"""SQUEEZE: the input without some of its dimensions of size 1.

``squeeze_dims`` names them, negative ones from the end; if it is empty, all of them go. At most 8 dimensions (TFLite's
SQUEEZE).
"""

from __future__ import annotations

from gossamer.ops._layout import ANY_TYPES, normalized_axis, require_output_type, require_rank
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import SAME_SCALE, Array, InPlace, InvokeContext, OpDef, PrepareContext, Shape, Version
from gossamer.ops.op_signature import input_type
from gossamer.schema.enums import TensorType
from gossamer.schema.options import SqueezeOptions

MAX_RANK = 8

op = OpDef(
    "SQUEEZE",
    inputs=("input",),
    outputs=("output",),
    versions=(
        Version(1, "1.6.0"),
        Version(2, "2.5.0", input_type(0, TensorType.STRING)),
    ),
    types={"input": ANY_TYPES, "output": ANY_TYPES},
    options=SqueezeOptions,
    reference_version=1,
    in_place=InPlace.INPUT_0 | InPlace.DATA_UNMODIFIED,
    quantizes=SAME_SCALE,
)


@op.prepare
def prepare(ctx: PrepareContext) -> Shape:
    """Returns the output's shape."""
    require_rank(ctx, "input", ctx.input(0), 0, MAX_RANK)
    require_output_type(ctx)
    shape = ctx.input(0).shape
    named = {normalized_axis(ctx, axis, len(shape), "squeeze_dims") for axis in ctx.options.squeeze_dims}
    for axis in named:
        ctx.require(shape[axis] == 1, f"squeeze_dims: dimension {axis} of {list(shape)} is not 1")
    dropped = named or {axis for axis, size in enumerate(shape) if size == 1}
    squeezed = tuple(size for axis, size in enumerate(shape) if axis not in dropped)
    ctx.set_shape(0, squeezed)
    return squeezed


@op.reference
def reference(ctx: InvokeContext) -> Array:
    shape: Shape = ctx.data
    return ctx.value(0).reshape(shape)


@op.lower
def lower(graph: Lowering) -> None:
    graph.result(graph.reshape(graph.value(0), graph.output().shape))
