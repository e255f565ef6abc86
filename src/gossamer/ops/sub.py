"""SUB: x - y, element by element, with broadcasting and a fused activation.

Floats are clamped to the activation, or without one to their finite range: overflow gives the largest number, not
infinity. (Machine code leaves infinity, as XNNPACK does.) int32 and int64 wrap, then are clamped. LiteRT takes float16
through XNNPACK alone.

uint8, int8 and int16 are quantised, as in ADD: shifted left (8 bits by 20, 16 bits by 15), brought to the common scale
``2 * max(scale_x, scale_y)``, subtracted in 32 bits, brought to the output's scale and zero point and clamped
(TFLite's ``reference_ops::Sub``). Zero points must be values of the type; for int16 they must be 0. With
``pot_scale_int16`` (the default of old models) and scales that are all powers of two, the operand of smaller scale is
shifted right with rounding instead; the other must then have the output's scale.
"""

from __future__ import annotations

import numpy as np

from gossamer.ops import _xnnpack_elementwise
from gossamer.ops._elementwise import fused_activation, lower_elementwise, prepare_binary
from gossamer.ops._rescaling import Rescaling, lower_sum, prepare_sum, require_zero_points_in_range
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import INT, Array, InPlace, InvokeContext, OpDef, PrepareContext, Version
from gossamer.ops.op_signature import broadcasts_above, in_and_out, input_type, option
from gossamer.schema.enums import TensorType
from gossamer.schema.options import SubOptions

_QUANTIZED = (TensorType.INT8, TensorType.UINT8, TensorType.INT16)
_TYPES = (TensorType.FLOAT32, TensorType.FLOAT16, TensorType.INT32, TensorType.INT64, *_QUANTIZED)

op = OpDef(
    "SUB",
    inputs=("x", "y"),
    outputs=("output",),
    versions=(
        Version(1, "1.6.0"),
        Version(2, "1.14.0", input_type(0, TensorType.INT8)),
        Version(3, "2.3.0", broadcasts_above(4)),
        Version(4, "2.4.0", input_type(0, TensorType.INT64)),
        Version(5, "2.4.0", in_and_out(TensorType.INT16) & ~option("pot_scale_int16")),
    ),
    types={"x": _TYPES, "y": _TYPES, "output": _TYPES},
    options=SubOptions,
    in_place=InPlace.INPUT_0 | InPlace.INPUT_1,
    quantizes=INT,
)


@op.prepare
def prepare(ctx: PrepareContext) -> Rescaling | None:
    prepare_binary(ctx)
    if ctx.output().type not in _QUANTIZED:
        return None
    require_zero_points_in_range(ctx)
    return prepare_sum(ctx, ctx.options.fused_activation_function, ctx.options.pot_scale_int16)


@op.reference
def reference(ctx: InvokeContext) -> Array:
    x, y = ctx.value(0), ctx.value(1)
    rescaling = ctx.data
    if rescaling is None:
        return fused_activation(np.subtract(x, y), ctx.options.fused_activation_function)
    result: Array = rescaling.output(rescaling.first(x) - rescaling.second(y))
    return result


@op.lower
def lower(graph: Lowering) -> None:
    """8 bits as in `_xnnpack_elementwise`; beyond the scales that it takes, and int16, as the reference kernel."""
    activation = graph.options.fused_activation_function
    if graph.data is None:
        lower_elementwise(graph, "sub", activation)
        return
    y = _xnnpack_elementwise.lower_sum(graph, activation, subtracts=True)
    if y is None:
        lower_sum(graph, "sub", graph.data)
    else:
        graph.result(y)
