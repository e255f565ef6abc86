"""GATHER: slices of the input along an axis, at given positions.

``output = input[..., positions, ...]``: the dimension ``axis`` is replaced by the dimensions of ``positions``. With
``batch_dims`` = b (negative: counted from the rank of ``positions``) the first b dimensions of both are walked
together, and only the other dimensions of ``positions`` appear. b <= axis. Positions lie in [0, size); negative ones
are refused. Strings only from a vector. If both inputs are constant the output is too (TFLite's GATHER).

int4: slices of an odd number of elements are those elements. (LiteRT moves whole bytes, of each slice one too few, and
leaves the end of the output unwritten.)
"""

from __future__ import annotations

import numpy as np

from gossamer.ops._gather import slices
from gossamer.ops._layout import (
    FLOAT8_TYPES,
    checked_shape,
    elements,
    normalized_axis,
    require_indices_in_range,
    require_rank,
    set_output_type,
)
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, Context, InvokeContext, OpDef, PrepareContext, Quantizes, Version
from gossamer.ops.op_signature import FLOAT8, input_type, option
from gossamer.schema.enums import TensorType
from gossamer.schema.options import GatherOptions

TYPES = (
    TensorType.FLOAT32,
    TensorType.FLOAT16,
    TensorType.BFLOAT16,
    TensorType.UINT8,
    TensorType.INT8,
    TensorType.INT4,
    TensorType.INT16,
    TensorType.INT32,
    TensorType.INT64,
    TensorType.BOOL,
    TensorType.STRING,
    *FLOAT8_TYPES,
)

op = OpDef(
    "GATHER",
    inputs=("input", "positions"),
    outputs=("output",),
    versions=(
        Version(1, "1.6.0"),
        Version(2, "1.14.0", input_type(0, TensorType.INT8)),
        Version(3, "1.15.0", input_type(0, TensorType.BOOL)),
        Version(4, "2.4.0", input_type(0, TensorType.INT16)),
        Version(5, "2.5.0", option("batch_dims")),
        Version(6, "2.13.0", input_type(1, TensorType.INT16)),
        Version(7, "2.15.0", input_type(0, TensorType.INT4)),
        Version(8, "2.23.0", input_type(0, *FLOAT8)),
    ),
    types={
        "input": TYPES,
        "positions": (TensorType.INT16, TensorType.INT32, TensorType.INT64),
        "output": TYPES,
    },
    options=GatherOptions,
    quantizes=Quantizes(same_scale=True, table=0),
)


@op.prepare
def prepare(ctx: PrepareContext) -> tuple[int, int]:
    """Returns the axis and the number of batch dimensions."""
    source, positions = ctx.input(0), ctx.input(1)
    set_output_type(ctx)
    if source.type == TensorType.STRING:
        require_rank(ctx, "input of strings", source, 1)
    axis = normalized_axis(ctx, ctx.options.axis, len(source.shape))
    batch_dims = ctx.options.batch_dims
    if batch_dims < 0:
        batch_dims += len(positions.shape)
    if not 0 <= batch_dims <= min(axis, len(positions.shape)):
        ctx.fail(
            f"batch_dims {ctx.options.batch_dims} must be at most the axis {axis} and the rank {len(positions.shape)} "
            "of positions"
        )
    ctx.require(
        source.shape[:batch_dims] == positions.shape[:batch_dims],
        f"input {list(source.shape)} and positions {list(positions.shape)} must agree in the first {batch_dims} "
        "dimensions, the batch",
    )
    shape = (*source.shape[:axis], *positions.shape[batch_dims:], *source.shape[axis + 1 :])
    known = ctx.all_known(0, 1)
    if known is not None:
        value, indices = known
        ctx.set_constant(0, _gathered(ctx, value, indices, axis, batch_dims))
    else:
        ctx.set_shape(0, checked_shape(ctx, shape))
    return axis, batch_dims


@op.reference
def reference(ctx: InvokeContext) -> Array:
    return _gathered(ctx, ctx.value(0), ctx.value(1), *ctx.data)


@op.lower
def lower(graph: Lowering) -> None:
    graph.result(slices(graph, graph.value(0), graph.value(1), *graph.data))


def _gathered(ctx: Context, value: Array, positions: Array, axis: int, batch_dims: int) -> Array:
    require_indices_in_range(ctx, "position", positions, value.shape[axis])
    head, inner = value.shape[:axis], value.shape[axis + 1 :]
    if batch_dims == 0:
        return value.take(positions.reshape(-1), axis).reshape((*head, *positions.shape, *inner))
    batches, outer = elements(head[:batch_dims]), elements(head[batch_dims:])
    coordinates = positions.reshape(batches, 1, elements(positions.shape[batch_dims:]))
    blocks = value.reshape(batches, outer, value.shape[axis], elements(inner))
    picked: Array = blocks[np.arange(batches)[:, None, None], np.arange(outer)[:, None], coordinates]
    return picked.reshape((*head, *positions.shape[batch_dims:], *inner))
