"""BATCH_TO_SPACE_ND: images of a batch interleaved into blocks of pixels, then cropped; undoes SPACE_TO_BATCH_ND.

Input [N, H, W, C] or [N, H, C]; ``block_shape`` (int32) and ``crops`` [., 2] (int32) speak of the one or two middle
dimensions. N is a multiple of the product of the blocks; batch ``(y * block_w + x) * M + m`` holds the pixels (y, x)
of the blocks of output image m. Crops are not negative and leave the sizes not negative. Dynamic if ``block_shape``
or ``crops`` is not constant (TFLite's BATCH_TO_SPACE_ND).
"""

from __future__ import annotations

from gossamer.ops._blocks import prepare_blocks
from gossamer.ops._layout import WHOLE_BYTE_TYPES, checked_shape, elements, integers
from gossamer.ops.op_def import Array, Context, InvokeContext, OpDef, PrepareContext, Shape, Version
from gossamer.ops.op_signature import input_type, rank_is
from gossamer.schema.enums import TensorType
from gossamer.schema.options import BatchToSpaceNDOptions

op = OpDef(
    "BATCH_TO_SPACE_ND",
    inputs=("input", "block_shape", "crops"),
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
        "crops": (TensorType.INT32,),
        "output": WHOLE_BYTE_TYPES,
    },
    options=BatchToSpaceNDOptions,
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    prepare_blocks(ctx, "crops", _output_shape)


@op.reference
def reference(ctx: InvokeContext) -> Array:
    value, blocks, crops = ctx.value(0), integers(ctx.value(1)), integers(ctx.value(2))
    shape = _output_shape(ctx, ctx.value(1), ctx.value(2))
    spatial = len(blocks)
    parts = value.reshape([*blocks, shape[0], *value.shape[1:]])
    # [b, b, N, H, W, C] -> [N, H, b, W, b, C]
    order = [spatial]
    for axis in range(spatial):
        order += [spatial + 1 + axis, axis]
    whole = [size * step for size, step in zip(value.shape[1:-1], blocks, strict=True)]
    image = parts.transpose([*order, 2 * spatial + 1]).reshape([shape[0], *whole, shape[-1]])
    kept = tuple(slice(first, first + size) for first, size in zip(crops[::2], shape[1:-1], strict=True))
    cropped: Array = image[(slice(None),) + kept]
    return cropped


def _output_shape(ctx: Context, block: Array, crops: Array) -> Shape:
    source, blocks, margins = ctx.input(0).shape, integers(block), integers(crops)
    ctx.require(min(blocks) >= 1, f"block_shape {blocks} must be at least 1")
    ctx.require(min(margins) >= 0, f"crops must not be negative, got {crops.tolist()}")
    ctx.require(
        source[0] % elements(blocks) == 0, f"batch {source[0]} must be a multiple of {elements(blocks)}, the block"
    )
    sizes = []
    for size, step, before, after in zip(source[1:-1], blocks, margins[::2], margins[1::2], strict=True):
        ctx.require(before + after <= size * step, f"crops {before} and {after} exceed the size {size * step}")
        sizes.append(size * step - before - after)
    return checked_shape(ctx, [source[0] // elements(blocks), *sizes, source[-1]])
