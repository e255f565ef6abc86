"""ADD: x + y, element by element, with broadcasting and a fused activation.

Floats are clamped to the activation, or without one to their finite range: overflow gives the largest number, not
infinity. (Machine code leaves infinity, as XNNPACK does.) int32, int64 and unquantised int16 wrap, then are clamped.

uint8, int8 and quantised int16 (TFLite's ``reference_integer_ops::Add``): both operands are shifted left (8 bits by 20,
16 bits by 15), brought to the common scale ``2 * max(scale_x, scale_y)`` by multipliers below 1, added in 32 bits, and
brought to the output's scale and zero point; the activation clamps in quantised values. int16 is quantised if the
output has quantization parameters, and needs zero points of 0. With ``pot_scale_int16`` (the default of old models) and
scales that are all powers of two, the operand of smaller scale is shifted right with rounding instead, and the sum
saturates; the other operand must then have the output's scale.
"""

from __future__ import annotations

import numpy as np

from gossamer.ops import _xnnpack_elementwise
from gossamer.ops._elementwise import fused_activation, lower_elementwise, prepare_binary
from gossamer.ops._rescaling import OperandScale, Rescaling, lower_sum, prepare_sum, quantized_sum
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import INT, Array, InPlace, InvokeContext, OpDef, PrepareContext, Version
from gossamer.ops.op_signature import in_and_out, input_type, option, quantized
from gossamer.records import replace
from gossamer.schema.enums import TensorType
from gossamer.schema.options import AddOptions

_TYPES = (
    TensorType.FLOAT32,
    TensorType.FLOAT16,
    TensorType.INT32,
    TensorType.INT64,
    TensorType.INT16,
    TensorType.INT8,
    TensorType.UINT8,
)

op = OpDef(
    "ADD",
    inputs=("x", "y"),
    outputs=("output",),
    versions=(
        Version(1, "1.5.0"),
        Version(2, "1.14.0", input_type(0, TensorType.INT8)),
        Version(3, "2.4.0", in_and_out(TensorType.INT16) & ~option("pot_scale_int16")),
        Version(4, "2.6.0", input_type(0, TensorType.INT64)),
        Version(5, "2.13.0", input_type(0, TensorType.INT16) & ~quantized(0)),
        Version(6, "2.23.0", input_type(0, TensorType.FLOAT16)),
    ),
    reference_version=5,
    types={"x": _TYPES, "y": _TYPES, "output": _TYPES},
    options=AddOptions,
    in_place=InPlace.INPUT_0 | InPlace.INPUT_1,
    quantizes=INT,
)


@op.prepare
def prepare(ctx: PrepareContext) -> Rescaling | None:
    prepare_binary(ctx)
    output = ctx.output()
    if output.type in (TensorType.INT8, TensorType.UINT8) or (output.type == TensorType.INT16 and output.quantization):
        return prepare_sum(ctx, ctx.options.fused_activation_function, ctx.options.pot_scale_int16)
    return None


@op.reference
def reference(ctx: InvokeContext) -> Array:
    x, y = ctx.value(0), ctx.value(1)
    rescaling = ctx.data
    if rescaling is None:
        return fused_activation(np.add(x, y), ctx.options.fused_activation_function)
    result: Array = rescaling.output(rescaling.first(x) + rescaling.second(y))
    return result


SUMS = 16
"""Sums of int16 that LiteRT's optimized kernel computes at a time."""


@op.lower
def lower(graph: Lowering) -> None:
    """8 bits as in `_xnnpack_elementwise`; beyond the scales that it takes, as the reference kernel."""
    activation = graph.options.fused_activation_function
    if graph.data is None:
        lower_elementwise(graph, "add", activation)
        return
    if graph.output().type == TensorType.INT16:
        _lower_16(graph, graph.data)
        return
    y = _xnnpack_elementwise.lower_sum(graph, activation)
    if y is None:
        lower_sum(graph, "add", graph.data)
    else:
        graph.result(y)


def _lower_16(graph: Lowering, rescaling: Rescaling) -> None:
    """As LiteRT: without broadcasting 16 sums at a time, whose operands are rounded once; what is left over, and all
    that is broadcast, as the reference kernel."""
    x, y, first, second = graph.value(0), graph.value(1), rescaling.first, rescaling.second
    whole = x.size // SUMS * SUMS
    if x.shape != y.shape or not whole or not isinstance(first, OperandScale) or not isinstance(second, OperandScale):
        lower_sum(graph, "add", rescaling)
        return
    once = replace(rescaling, first=first.rounded_once(), second=second.rounded_once())
    if once == rescaling or whole == x.size:
        lower_sum(graph, "add", once)
        return
    flat = [graph.reshape(operand, (x.size,)) for operand in (x, y)]
    parts = [
        quantized_sum(graph, "add", how, *(operand.slice(0, start, size) for operand in flat))
        for how, start, size in ((once, 0, whole), (rescaling, whole, x.size - whole))
    ]
    graph.result(graph.reshape(graph.concat(parts, 0), x.shape))
