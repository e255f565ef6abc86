"""SQUARED_DIFFERENCE: (x - y)**2, element by element, with broadcasting.

Floats are as they are (LiteRT takes float16 through XNNPACK alone); int32 wraps.

int8 is quantised (TFLite's ``squared_difference.cc``): both operands are shifted left by 7 and brought to the common
scale ``s = 2 * max(scale_x, scale_y)`` by multipliers below 1; the square of their difference has the scale
``s**2 / 2**14`` and is brought to the output's scale and zero point, and saturates.
"""

from __future__ import annotations

import numpy as np

from gossamer.ops._elementwise import lower_elementwise, prepare_binary
from gossamer.ops._rescaling import Rescaling, lower_sum, prepare_rescaling, require_zero_points_in_range
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import INT, Array, InvokeContext, OpDef, PrepareContext, Version
from gossamer.ops.op_signature import input_type
from gossamer.schema.enums import ActivationFunctionType, TensorType
from gossamer.schema.options import SquaredDifferenceOptions

_TYPES = (TensorType.FLOAT32, TensorType.FLOAT16, TensorType.INT32, TensorType.INT8)

op = OpDef(
    "SQUARED_DIFFERENCE",
    inputs=("x", "y"),
    outputs=("output",),
    versions=(
        Version(1, "1.13.1"),
        Version(2, "2.5.0", input_type(0, TensorType.INT8)),
    ),
    types={"x": _TYPES, "y": _TYPES, "output": _TYPES},
    options=SquaredDifferenceOptions,
    quantizes=INT,
)


@op.prepare
def prepare(ctx: PrepareContext) -> Rescaling | None:
    prepare_binary(ctx)
    if ctx.output().type != TensorType.INT8:
        return None
    require_zero_points_in_range(ctx)
    return prepare_rescaling(ctx, 7, ActivationFunctionType.NONE, squared=True)


@op.reference
def reference(ctx: InvokeContext) -> Array:
    x, y = ctx.value(0), ctx.value(1)
    rescaling = ctx.data
    if rescaling is None:
        square: Array = np.square(np.subtract(x, y))
        return square
    difference = rescaling.first(x) - rescaling.second(y)
    result: Array = rescaling.output(difference * difference)
    return result


@op.lower
def lower(graph: Lowering) -> None:
    if graph.data is None:
        lower_elementwise(graph, "sqrdiff")
    else:
        lower_sum(graph, "sqrdiff", graph.data)
