"""What the elementwise StableHLO operators share: operands of one shape and type, without broadcasting."""

from __future__ import annotations

from gossamer.ops._elementwise import require_output_type, require_same_types
from gossamer.ops.op_def import PrepareContext
from gossamer.schema.enums import TensorType

INTEGERS_AND_BOOL = (
    TensorType.INT8,
    TensorType.INT16,
    TensorType.INT32,
    TensorType.INT64,
    TensorType.UINT8,
    TensorType.UINT16,
    TensorType.UINT32,
    TensorType.UINT64,
    TensorType.BOOL,
)
NUMBERS_AND_BOOL = (TensorType.FLOAT16, TensorType.FLOAT32, TensorType.FLOAT64, *INTEGERS_AND_BOOL)


def prepare_same_shapes(ctx: PrepareContext) -> None:
    """Two inputs and an output of one shape and type."""
    require_output_type(ctx, require_same_types(ctx))
    x, y = ctx.input(0).shape, ctx.input(1).shape
    ctx.require(x == y, f"inputs must have the same shape, got {list(x)} and {list(y)}")
    ctx.set_shape(0, x)
