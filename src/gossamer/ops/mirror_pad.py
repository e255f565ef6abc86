"""MIRROR_PAD: paddings filled with the elements beside them, mirrored.

REFLECT mirrors at the outermost element and does not repeat it; SYMMETRIC mirrors at the edge and does. ``paddings``
[rank, 2] says how many before and after, at most the dimension's size, or one less for REFLECT. Elements are copied:
8- and 16-bit quantized tensors need the same scale and zero point on both sides (TFLite's MIRROR_PAD).
"""

from __future__ import annotations

import numpy as np

from gossamer.ops._layout import (
    INDEX_TYPES,
    QUANTIZED_TYPES,
    WHOLE_BYTE_TYPES,
    require_output_type,
    require_same_quantization,
    require_shape,
    require_symmetric_int16,
)
from gossamer.ops._pad import Pairs, padded_shape, padding_pairs
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import SAME_SCALE, Array, Context, InvokeContext, OpDef, PrepareContext, Version
from gossamer.ops.op_signature import input_type
from gossamer.schema.enums import MirrorPadMode, TensorType
from gossamer.schema.options import MirrorPadOptions

op = OpDef(
    "MIRROR_PAD",
    inputs=("input", "paddings"),
    outputs=("output",),
    versions=(
        Version(1, "1.13.1"),
        Version(2, "2.3.0", input_type(0, TensorType.INT8)),
        Version(3, "2.12.0", input_type(0, TensorType.INT16)),
    ),
    types={"input": WHOLE_BYTE_TYPES, "paddings": INDEX_TYPES, "output": WHOLE_BYTE_TYPES},
    options=MirrorPadOptions,
    quantizes=SAME_SCALE,
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    source, output = ctx.input(0), ctx.output()
    mode = ctx.options.mode
    ctx.require(mode in (MirrorPadMode.REFLECT, MirrorPadMode.SYMMETRIC), f"mode {mode} is not known")
    require_output_type(ctx)
    require_shape(ctx, "paddings", ctx.input(1), (len(source.shape), 2))
    if source.type in QUANTIZED_TYPES:
        require_same_quantization(ctx, source, output)
        require_symmetric_int16(ctx, source, output)
    paddings = ctx.constant(1)
    if paddings is None:
        ctx.set_dynamic(0)
    else:
        ctx.set_shape(0, padded_shape(ctx, source.shape, _pairs(ctx, paddings)))


@op.reference
def reference(ctx: InvokeContext) -> Array:
    value = ctx.value(0)
    mode = "reflect" if ctx.options.mode == MirrorPadMode.REFLECT else "symmetric"
    for axis, (before, after) in enumerate(_pairs(ctx, ctx.value(1))):
        if before or after:
            value = value.take(np.pad(np.arange(value.shape[axis]), (before, after), mode), axis)  # type: ignore[call-overload]
    return value


@op.lower
def lower(graph: Lowering) -> None:
    # Rows that repeat the edge begin at the edge itself, those that do not one further inside.
    offset = 1 if graph.options.mode == MirrorPadMode.REFLECT else 0
    value = graph.value(0)
    for axis, (before, after) in enumerate(_pairs(graph, graph.known(1))):
        last = value.shape[axis] - 1 - offset
        parts = (value.slice(axis, before - 1 + offset, before, -1), value, value.slice(axis, last, after, -1))
        if before or after:
            value = graph.concat([part for part in parts if part.size], axis)
    graph.result(value)


def _pairs(ctx: Context, paddings: Array) -> Pairs:
    shape = ctx.input(0).shape
    offset = 1 if ctx.options.mode == MirrorPadMode.REFLECT else 0
    pairs = padding_pairs(ctx, paddings)
    for axis, (size, pair) in enumerate(zip(shape, pairs, strict=True)):
        if max(pair) > size - offset:
            ctx.fail(f"paddings {list(pair)} of dimension {axis} must be at most {size - offset}, its size is {size}")
    return pairs
