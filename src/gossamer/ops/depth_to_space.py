"""DEPTH_TO_SPACE: channels become blocks of ``block_size`` x ``block_size`` pixels; undoes SPACE_TO_DEPTH.

NHWC; the channels are a multiple of ``block_size`` squared. Input channel ``(y * block_size + x) * C + c`` goes to
pixel (y, x) of the block, channel c (TFLite's DEPTH_TO_SPACE). float16 goes in LiteRT only
through XNNPACK.
"""

from __future__ import annotations

from gossamer.ops._layout import checked_shape, require_output_type, require_rank
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import SAME_SCALE, Array, InvokeContext, OpDef, PrepareContext, Version
from gossamer.ops.op_signature import input_type
from gossamer.schema.enums import TensorType
from gossamer.schema.options import DepthToSpaceOptions

TYPES = (TensorType.FLOAT32, TensorType.FLOAT16, TensorType.UINT8, TensorType.INT8, TensorType.INT32, TensorType.INT64)

op = OpDef(
    "DEPTH_TO_SPACE",
    inputs=("input",),
    outputs=("output",),
    versions=(
        Version(1, "2.1.0"),
        Version(2, "2.5.0", input_type(0, TensorType.INT8)),
    ),
    types={"input": TYPES, "output": TYPES},
    options=DepthToSpaceOptions,
    reference_version=1,
    quantizes=SAME_SCALE,
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    require_rank(ctx, "input", ctx.input(0), 4)
    require_output_type(ctx)
    block = ctx.options.block_size
    ctx.require(block > 0, f"block_size must be at least 1, got {block}")
    n, height, width, channels = ctx.input(0).shape
    ctx.require(
        channels % (block * block) == 0,
        f"{channels} channels must be a multiple of block_size squared, {block * block}",
    )
    ctx.set_shape(0, checked_shape(ctx, [n, height * block, width * block, channels // (block * block)]))


@op.reference
def reference(ctx: InvokeContext) -> Array:
    block: int = ctx.options.block_size
    n, height, width, _ = ctx.input(0).shape
    channels = ctx.output().shape[3]
    pixels: Array = ctx.value(0).reshape(n, height, width, block, block, channels).transpose(0, 1, 3, 2, 4, 5)
    return pixels.reshape(n, height * block, width * block, channels)


@op.lower
def lower(graph: Lowering) -> None:
    block = graph.options.block_size
    n, height, width, _ = graph.input(0).shape
    pixels = graph.reshape(graph.value(0), (n, height, width, block, block, graph.output().shape[3]))
    graph.result(graph.reshape(pixels.permute((0, 1, 3, 2, 4, 5)), graph.output().shape))
