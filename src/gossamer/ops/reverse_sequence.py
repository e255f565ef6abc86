"""REVERSE_SEQUENCE: the first ``seq_lengths[b]`` elements along ``seq_dim`` reversed, for each index b of
``batch_dim``.

The rest of a sequence is copied. A length is at most the size of ``seq_dim``; one of 0 or less reverses nothing. The
two dimensions are different and counted from the front (TFLite's REVERSE_SEQUENCE).
"""

from __future__ import annotations

import numpy as np

from gossamer.dtypes import numpy_dtype
from gossamer.ops._layout import INDEX_TYPES, require_output_type, require_shape
from gossamer.ops.lowering import Lowering
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


@op.lower
def lower(graph: Lowering) -> None:
    value, lengths = graph.value(0), graph.value(1)
    batch_dim, seq_dim = graph.options.batch_dim, graph.options.seq_dim
    rest = [dim for dim in range(len(value.shape)) if dim not in (batch_dim, seq_dim)]
    place = np.arange(value.shape[seq_dim], dtype=numpy_dtype(lengths.type))
    lengths = graph.reshape(lengths, (lengths.size, 1))
    # A length that is too large leads outside.
    backwards = ("sub", ("sub", 1, 2), 0)
    sources = graph.map(("select", ("less", 0, 1), backwards, 0), graph.array(place), lengths, graph.scalar(1, lengths))
    walked = value.permute((batch_dim, seq_dim, *rest))
    sizes = [1, 1, *walked.shape[2:]]
    # [batch, sequence, 1, 1, *rest] goes back to where it came from.
    order = [0 if dim == batch_dim else 1 if dim == seq_dim else 4 + rest.index(dim) for dim in range(len(value.shape))]
    vectors = graph.reshape(sources, (*sources.shape, 1))
    boxes = graph.gather(walked, vectors, [1], sizes, batch_dims=1, order=(*order, 2, 3))
    graph.result(graph.reshape(boxes, value.shape))
