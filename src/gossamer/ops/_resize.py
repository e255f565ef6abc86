"""What the two image resizers share: operands and shapes. The sampling rules differ, see each."""

from __future__ import annotations

from gossamer.ops._layout import checked_shape, integers, require_rank, require_shape, set_output_type
from gossamer.ops.op_def import Array, Context, PrepareContext, Shape


def prepare_resize(ctx: PrepareContext, least: int) -> None:
    """Check an NHWC input and its new (height, width), each at least ``least``; set the output's shape."""
    require_rank(ctx, "input", ctx.input(0), 4)
    require_shape(ctx, "size", ctx.input(1), (2,))
    set_output_type(ctx)
    size = ctx.constant(1)
    if size is None:
        ctx.set_dynamic(0)
    else:
        ctx.set_shape(0, resized_shape(ctx, size, least))


def resized_shape(ctx: Context, size: Array, least: int) -> Shape:
    """The output's shape. Raises for sizes under ``least``, and for an image without pixels to sample."""
    n, height, width, channels = ctx.input(0).shape
    new_height, new_width = integers(size)
    ctx.require(min(new_height, new_width) >= least, f"size {[new_height, new_width]} must be at least {least}")
    shape = checked_shape(ctx, [n, new_height, new_width, channels])
    ctx.require((height and width) or 0 in shape, f"input {list(ctx.input(0).shape)} has no pixels to resize")
    return shape
