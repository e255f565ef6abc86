"""BATCH_TO_SPACE_ND: images of a batch interleaved into blocks of pixels, then cropped; undoes SPACE_TO_BATCH_ND.

Input [N, H, W, C] or [N, H, C]; ``block_shape`` (int32) and ``crops`` [., 2] (int32) speak of the one or two middle
dimensions. N is a multiple of the product of the blocks; batch ``(y * block_w + x) * M + m`` holds the pixels (y, x)
of the blocks of output image m. Crops are not negative and leave the sizes not negative. Dynamic if ``block_shape``
or ``crops`` is not constant (TFLite's BATCH_TO_SPACE_ND).
"""

from __future__ import annotations

from collections.abc import Sequence

from gossamer.ops._blocks import prepare_blocks
from gossamer.ops._layout import WHOLE_BYTE_TYPES, checked_shape, elements, integers
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import SAME_SCALE, Array, Context, InvokeContext, OpDef, PrepareContext, Shape, Version
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
    quantizes=SAME_SCALE,
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    prepare_blocks(ctx, "crops", _output_shape)


@op.reference
def reference(ctx: InvokeContext) -> Array:
    value, blocks, crops = ctx.value(0), integers(ctx.value(1)), integers(ctx.value(2))
    shape = _output_shape(ctx, ctx.value(1), ctx.value(2))
    split, order, whole = _images(value.shape, shape[0], blocks)
    image = value.reshape(split).transpose(order).reshape(whole)
    kept = tuple(slice(first, first + size) for first, size in zip(crops[::2], shape[1:-1], strict=True))
    cropped: Array = image[(slice(None),) + kept]
    return cropped


@op.lower
def lower(graph: Lowering) -> None:
    value, blocks, crops = graph.value(0), integers(graph.known(1)), integers(graph.known(2))
    shape = graph.output().shape
    split, order, whole = _images(value.shape, shape[0], blocks)
    image = graph.reshape(graph.reshape(value, split).permute(order), whole)
    for axis, (first, size) in enumerate(zip(crops[::2], shape[1:-1], strict=True), 1):
        image = image.slice(axis, first, size)
    graph.result(image)


def _images(shape: Shape, images: int, blocks: Sequence[int]) -> tuple[list[int], list[int], list[int]]:
    """The batch as [b, b, N, H, W, C], the order of dimensions for [N, H, b, W, b, C], and the shape of the images."""
    spatial = len(blocks)
    order = [spatial]
    for axis in range(spatial):
        order += [spatial + 1 + axis, axis]
    whole = [size * step for size, step in zip(shape[1:-1], blocks, strict=True)]
    return [*blocks, images, *shape[1:]], [*order, 2 * spatial + 1], [images, *whole, shape[-1]]


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
