"""GATHER_ND: slices of ``params`` at coordinates.

The last dimension of ``indices``, at most the rank of ``params``, holds coordinates of the leading dimensions of
``params``; the output is ``indices.shape[:-1] + params.shape[indices.shape[-1]:]``. Coordinates out of range, negative
ones too, are refused, and so are empty params unless ``indices`` is empty (TFLite's GATHER_ND).
"""

from __future__ import annotations

import numpy as np

from gossamer.ops._layout import FLOAT8_TYPES, checked_shape, require_indices_in_range, set_output_type
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import SAME_SCALE, Array, InvokeContext, OpDef, PrepareContext, Version
from gossamer.ops.op_signature import FLOAT8, input_type
from gossamer.schema.enums import TensorType
from gossamer.schema.options import GatherNdOptions
from gossamer.views import told_by

TYPES = (
    TensorType.FLOAT32,
    TensorType.FLOAT16,
    TensorType.BFLOAT16,
    TensorType.UINT8,
    TensorType.INT8,
    TensorType.INT16,
    TensorType.INT32,
    TensorType.INT64,
    TensorType.BOOL,
    TensorType.STRING,
    *FLOAT8_TYPES,
)

op = OpDef(
    "GATHER_ND",
    inputs=("params", "indices"),
    outputs=("output",),
    versions=(
        Version(1, "1.14.0"),
        Version(2, "2.3.0", input_type(0, TensorType.STRING)),
        Version(3, "2.5.0", input_type(0, TensorType.INT16)),
        Version(4, "2.13.0", input_type(1, TensorType.INT16)),
        Version(5, "2.16.0", input_type(0, TensorType.BOOL)),
        Version(6, "2.23.0", input_type(0, *FLOAT8)),
    ),
    types={
        "params": TYPES,
        "indices": (TensorType.INT16, TensorType.INT32, TensorType.INT64),
        "output": TYPES,
    },
    options=GatherNdOptions,
    quantizes=SAME_SCALE,
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    params, indices = ctx.input(0).shape, ctx.input(1).shape
    set_output_type(ctx)
    ctx.require(params, "params must not be a scalar")
    ctx.require(indices, "indices must not be a scalar")
    ctx.require(
        indices[-1] <= len(params),
        f"the last dimension of indices {list(indices)} must be at most {len(params)}, the rank of params",
    )
    ctx.set_shape(0, checked_shape(ctx, [*indices[:-1], *params[indices[-1] :]]))


@op.reference
def reference(ctx: InvokeContext) -> Array:
    params, indices = ctx.value(0), ctx.value(1)
    ctx.require(params.size or not indices.size, f"cannot gather from empty params {list(params.shape)}")
    coordinates = tuple([indices[..., component] for component in range(indices.shape[-1])])
    for axis, values in enumerate(coordinates):
        require_indices_in_range(ctx, f"index of dimension {axis}", values, params.shape[axis])
    if not coordinates:
        return np.broadcast_to(params, indices.shape[:-1] + params.shape)
    # The Ellipsis keeps an array where plain indices would give a scalar.
    return np.asarray(params[coordinates + (...,)])


@op.lower
def lower(graph: Lowering) -> None:
    params, vectors = graph.value(0), graph.value(1)
    components = vectors.shape[-1]
    if vectors.is_constant and not told_by(vectors.buffer, _are_in_range, *params.shape[:components]):
        graph.refuse("an index is out of range")
    sizes = [1] * components + list(params.shape[components:])
    graph.result(graph.reshape(graph.gather(params, vectors, range(components), sizes), graph.output().shape))


def _are_in_range(vectors: Array, *extents: int) -> bool:
    return bool(((vectors >= 0) & (vectors < extents)).all())
