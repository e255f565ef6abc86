"""SPACE_TO_DEPTH: blocks of ``block_size`` x ``block_size`` pixels become channels.

NHWC; height and width are multiples of the block size. The channels of the block's pixels stand one after the other,
row by row: output channel ``(y * block_size + x) * C + c`` (TFLite's SPACE_TO_DEPTH).
"""

from __future__ import annotations

from gossamer.ops._layout import checked_shape, require_output_type, require_rank
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import SAME_SCALE, Array, InvokeContext, OpDef, PrepareContext, Version
from gossamer.ops.op_signature import input_type
from gossamer.schema.enums import TensorType
from gossamer.schema.options import SpaceToDepthOptions

TYPES = (TensorType.FLOAT32, TensorType.UINT8, TensorType.INT8, TensorType.INT32, TensorType.INT64)

op = OpDef(
    "SPACE_TO_DEPTH",
    inputs=("input",),
    outputs=("output",),
    versions=(
        Version(1, "1.5.0"),
        Version(2, "1.14.0", input_type(0, TensorType.INT8)),
    ),
    types={"input": TYPES, "output": TYPES},
    options=SpaceToDepthOptions,
    quantizes=SAME_SCALE,
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    require_rank(ctx, "input", ctx.input(0), 4)
    require_output_type(ctx)
    block = ctx.options.block_size
    ctx.require(block > 0, f"block_size must be at least 1, got {block}")
    n, height, width, channels = ctx.input(0).shape
    if height % block or width % block:
        ctx.fail(f"height and width {height} x {width} must be multiples of block_size {block}")
    ctx.set_shape(0, checked_shape(ctx, [n, height // block, width // block, channels * block * block]))


@op.reference
def reference(ctx: InvokeContext) -> Array:
    block = ctx.options.block_size
    n, height, width, channels = ctx.output().shape
    pixels: Array = ctx.value(0).reshape(n, height, block, width, block, channels // (block * block))
    result: Array = pixels.transpose(0, 1, 3, 2, 4, 5).reshape(n, height, width, channels)
    return result


@op.lower
def lower(graph: Lowering) -> None:
    block = graph.options.block_size
    n, height, width, channels = graph.output().shape
    pixels = graph.reshape(graph.value(0), (n, height, block, width, block, channels // (block * block)))
    graph.result(graph.reshape(pixels.permute((0, 1, 3, 2, 4, 5)), graph.output().shape))
