"""REVERSE_SEQUENCE: the first ``seq_lengths[b]`` elements along ``seq_dim`` reversed, for each index b of
``batch_dim``.

The rest of a sequence is copied. A length is at most the size of ``seq_dim``; one of 0 or less reverses nothing. The
two dimensions are different and counted from the front (TFLite's REVERSE_SEQUENCE).
"""

from __future__ import annotations

import numpy as np

from gossamer.ops._layout import INDEX_TYPES, require_output_type, require_shape
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, versions
from gossamer.schema.enums import TensorType
from gossamer.schema.options import ReverseSequenceOptions

TYPES = (TensorType.FLOAT32, TensorType.UINT8, TensorType.INT16, TensorType.INT32, TensorType.INT64)

op = OpDef(
    "REVERSE_SEQUENCE",
    inputs=("input", "seq_lengths"),
    outputs=("output",),
    versions=versions("1.14.0"),
    types={"input": TYPES, "seq_lengths": INDEX_TYPES, "output": TYPES},
    options=ReverseSequenceOptions,
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    shape, options = ctx.input(0).shape, ctx.options
    for name, axis in (("seq_dim", options.seq_dim), ("batch_dim", options.batch_dim)):
        ctx.require(0 <= axis < len(shape), f"{name} {axis} must be in [0, {len(shape)})")
    ctx.require(options.seq_dim != options.batch_dim, f"seq_dim and batch_dim must differ, both are {options.seq_dim}")
    require_shape(ctx, "seq_lengths", ctx.input(1), (shape[options.batch_dim],))
    require_output_type(ctx)
    ctx.set_shape(0, shape)


@op.reference
def reference(ctx: InvokeContext) -> Array:
    value = ctx.value(0)
    batch_dim, seq_dim = ctx.options.batch_dim, ctx.options.seq_dim
    lengths, size = ctx.value(1).astype(np.int64)[:, None], value.shape[seq_dim]
    if lengths.max(initial=0) > size:
        ctx.fail(f"seq_lengths must be at most {size}, got {int(lengths.max())}")
    place = np.arange(size)
    sources = np.where(place < lengths, lengths - 1 - place, place)
    walked = np.moveaxis(value, (batch_dim, seq_dim), (0, 1))
    return np.moveaxis(walked[np.arange(lengths.size)[:, None], sources], (0, 1), (batch_dim, seq_dim))
