"""Resource handles: int32 ids in tensors of type RESOURCE (or INT32, as some converters write them)."""

from __future__ import annotations

import math

from gossamer.ops.op_def import InvokeContext, PrepareContext
from gossamer.schema import TensorType

HANDLE_TYPES = (TensorType.RESOURCE, TensorType.INT32)


def require_handle(ctx: PrepareContext, position: int = 0) -> None:
    """Raise unless the input at a position holds one id."""
    shape = ctx.input(position).shape
    ctx.require(math.prod(shape) == 1, f"resource handle must have one element, got shape {list(shape)}")


def resource_id(ctx: InvokeContext, position: int = 0) -> int:
    """The id that the input at a position holds."""
    return int(ctx.value(position).item())
