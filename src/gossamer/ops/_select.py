"""What SELECT and SELECT_V2 share."""

from __future__ import annotations

import math

from gossamer.dtypes import type_name
from gossamer.ops.op_def import PrepareContext, Shape
from gossamer.schema.enums import TensorType

TYPES = tuple(
    sorted(
        set(TensorType)
        - {
            TensorType.STRING,
            TensorType.COMPLEX128,
            TensorType.RESOURCE,
            TensorType.VARIANT,
            TensorType.INT4,
            TensorType.UINT4,
            TensorType.INT2,
        }
    )
)
"""Every type whose elements take 8, 16, 32 or 64 bits."""


def require_types(ctx: PrepareContext) -> None:
    """Raise unless x and y have one type, which the output gets."""
    x, y = ctx.input(1).type, ctx.input(2).type
    ctx.require(x == y, f"x and y must have the same type, got {type_name(x)} and {type_name(y)}")
    ctx.set_type(0, x)


def single_element_shape(ctx: PrepareContext) -> Shape | None:
    """The shape that the output has already, if it and all inputs are of one element: TFLite leaves it then."""
    tensors = [ctx.input(0), ctx.input(1), ctx.input(2), ctx.output()]
    return ctx.output().shape if all(math.prod(tensor.shape) == 1 for tensor in tensors) else None
