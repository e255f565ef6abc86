"""SPACE_TO_BATCH_ND: the pixels at each position inside a block become images of their own, after padding.

Input [N, H, W, C] or [N, H, C]; ``block_shape`` (int32) and ``paddings`` [., 2] (int32) speak of the one or two
middle dimensions. Each padded dimension is a multiple of its block. Output batch ``(y * block_w + x) * N + n`` holds
the pixels (y, x) of the blocks of image n. 8- and 16-bit tensors are padded with the output's zero point, others
with 0; the quantized ones keep scale and zero point. Dynamic if ``block_shape`` or ``paddings`` is not constant
(TFLite's SPACE_TO_BATCH_ND).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gossamer.dtypes import element_bits
from gossamer.ops._blocks import prepare_blocks
from gossamer.ops._layout import WHOLE_BYTE_TYPES, checked_shape, elements, integers
from gossamer.ops._pad import padding_pairs
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import SAME_SCALE, Array, Context, InvokeContext, OpDef, PrepareContext, Shape, Version
from gossamer.ops.op_signature import input_type, rank_is
from gossamer.schema.enums import TensorType
from gossamer.schema.options import SpaceToBatchNDOptions

op = OpDef(
    "SPACE_TO_BATCH_ND",
    inputs=("input", "block_shape", "paddings"),
    outputs=("output",),
    versions=(
        Version(1, "1.6.0"),
        Version(2, "1.14.0", input_type(0, TensorType.INT8)),
        Version(3, "2.3.0", ~rank_is(0, 4)),
        Version(4, "2.12.0", input_type(0, TensorType.INT16)),
    ),
    types={
        "input": WHOLE_BYTE_TYPES,
        "block_shape": (TensorType.INT32,),
        "paddings": (TensorType.INT32,),
        "output": WHOLE_BYTE_TYPES,
    },
    options=SpaceToBatchNDOptions,
    quantizes=SAME_SCALE,
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    prepare_blocks(ctx, "paddings", _output_shape)


@op.reference
def reference(ctx: InvokeContext) -> Array:
    return space_to_batch(ctx, _fill(ctx))


def space_to_batch(ctx: InvokeContext, fill: int) -> Array:
    """The output, padded with a level of the input."""
    value, block, paddings = ctx.value(0), ctx.value(1), ctx.value(2)
    shape = _output_shape(ctx, block, paddings)
    pads = [(0, 0), *padding_pairs(ctx, paddings), (0, 0)]
    padded = np.pad(value, pads, constant_values=np.asarray(fill).astype(value.dtype))
    split, order = _blocks(padded.shape, integers(block))
    result: Array = padded.reshape(split).transpose(order).reshape(shape)
    return result


@op.lower
def lower(graph: Lowering) -> None:
    value, block, paddings = graph.value(0), integers(graph.known(1)), graph.known(2)
    before, after = zip((0, 0), *padding_pairs(graph, paddings), (0, 0), strict=True)
    padded = graph.pad(value, before, after, _fill(graph))
    split, order = _blocks(padded.shape, block)
    graph.result(graph.reshape(graph.reshape(padded, split).permute(order), graph.output().shape))


def _fill(ctx: Context) -> int:
    return ctx.output().quantization.zero_point if element_bits(ctx.output().type) <= 16 else 0


def _blocks(shape: Sequence[int], blocks: Sequence[int]) -> tuple[list[int], list[int]]:
    """[N, H, W, C] as [N, H/b, b, W/b, b, C], and the order of its dimensions that makes [b, b, N, H/b, W/b, C]."""
    split = [shape[0]]
    for size, step in zip(shape[1:-1], blocks, strict=True):
        split += [size // step, step]
    spatial = len(blocks)
    order = [*range(2, 2 * spatial + 1, 2), 0, *range(1, 2 * spatial, 2), 2 * spatial + 1]
    return [*split, shape[-1]], order


def _output_shape(ctx: Context, block: Array, paddings: Array) -> Shape:
    source, blocks = ctx.input(0).shape, integers(block)
    ctx.require(min(blocks) >= 1, f"block_shape {blocks} must be at least 1")
    sizes = []
    for size, step, (before, after) in zip(source[1:-1], blocks, padding_pairs(ctx, paddings), strict=True):
        whole = before + size + after
        ctx.require(whole % step == 0, f"padded size {whole} must be a multiple of its block {step}")
        sizes.append(whole // step)
    return checked_shape(ctx, [source[0] * elements(blocks), *sizes, source[-1]])
