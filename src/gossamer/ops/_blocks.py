"""Checks that SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND share."""

from __future__ import annotations

from collections.abc import Callable

from gossamer.ops._layout import (
    QUANTIZED_TYPES,
    require_output_type,
    require_rank,
    require_same_quantization,
    require_shape,
    require_symmetric_int16,
)
from gossamer.ops.op_def import Array, Context, PrepareContext, Shape


def prepare_blocks(
    ctx: PrepareContext, margins_name: str, output_shape: Callable[[Context, Array, Array], Shape]
) -> None:
    """Check input, block shape and margins, and set the output's shape if the last two are constant."""
    source, output = ctx.input(0), ctx.output()
    require_rank(ctx, "input", source, 3, 4)
    require_output_type(ctx)
    if source.type in QUANTIZED_TYPES:
        require_same_quantization(ctx, source, output)
        require_symmetric_int16(ctx, source, output)
    spatial = len(source.shape) - 2
    require_shape(ctx, "block_shape", ctx.input(1), (spatial,))
    require_shape(ctx, margins_name, ctx.input(2), (spatial, 2))
    block, margins = ctx.constant(1), ctx.constant(2)
    if block is None or margins is None:
        ctx.set_dynamic(0)
    else:
        ctx.set_shape(0, output_shape(ctx, block, margins))
