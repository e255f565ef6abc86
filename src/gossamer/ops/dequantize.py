"""DEQUANTIZE: scale * (q - zero point) in float32; float16 and the float8 types are only widened.

The input is uint8, int8, int16 (zero point 0), int4, uint4, int2, float16, float8_e4m3fn or float8_e5m2, the output
float32 of its shape. With several scales (uint8, int8, int4, uint4 and int2 only), each index along
``quantized_dimension`` has its own scale, and its own zero point or the only one. Integers without quantization give 0.

A constant is dequantized once: the output keeps its memory, and later invocations find it there.
"""

from __future__ import annotations

import numpy as np

from gossamer.dtypes import type_name
from gossamer.ops._elementwise import require_channels
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, TensorInfo, Version
from gossamer.ops.op_signature import FLOAT8, input_type, per_channel
from gossamer.quantization import along_dimension, dequantize
from gossamer.records import record
from gossamer.schema.enums import TensorType
from gossamer.schema.options import DequantizeOptions

_FLOATS = (TensorType.FLOAT16, TensorType.FLOAT8_E4M3FN, TensorType.FLOAT8_E5M2)
_PER_CHANNEL = (TensorType.UINT8, TensorType.INT8, TensorType.INT4, TensorType.UINT4, TensorType.INT2)

op = OpDef(
    "DEQUANTIZE",
    inputs=("x",),
    outputs=("output",),
    versions=(
        Version(1, "1.13.1"),
        Version(2, "1.14.0", input_type(0, TensorType.INT8)),
        Version(3, "1.15.0", input_type(0, TensorType.INT16, TensorType.FLOAT16)),
        Version(4, "2.2.0"),
        Version(5, "2.7.0", input_type(0, TensorType.INT8) & per_channel(0, least=2)),
        Version(6, "2.18.0", input_type(0, TensorType.INT4)),
        Version(7, "2.21.0", input_type(0, TensorType.INT2)),
        Version(8, "2.22.0", input_type(0, TensorType.UINT4)),
        Version(9, "2.23.0", input_type(0, *FLOAT8)),
    ),
    types={"x": (*_PER_CHANNEL, TensorType.INT16, *_FLOATS), "output": (TensorType.FLOAT32,)},
    options=DequantizeOptions,
)


@record
class Constant:
    """Whether the output of a constant input has been written."""

    written: bool = False


@op.prepare
def prepare(ctx: PrepareContext) -> Constant | None:
    x = ctx.input(0)
    if x.quantization.per_channel:
        if x.type not in _PER_CHANNEL:
            ctx.fail(f"{type_name(x.type)} must have one scale, got {x.quantization.scales.size}")
        require_channels(ctx, "input", x, x.shape)
    point = x.quantization.zero_point
    ctx.require(x.type != TensorType.INT16 or point == 0, f"int16 needs a zero point of 0, got {point}")
    ctx.set_type(0, TensorType.FLOAT32)
    ctx.set_shape(0, x.shape)
    if not x.is_constant:
        return None
    ctx.set_persistent(0)
    return Constant()


@op.reference
def reference(ctx: InvokeContext) -> Array | None:
    if ctx.data is not None:
        if ctx.data.written:
            return None
        ctx.data.written = True
    x = ctx.value(0)
    if ctx.input(0).type in _FLOATS:
        return x.astype(np.float32)
    return dequantize(x, ctx.input(0).quantization)


_VECTOR = 8
"""Bytes that LiteRT's optimized kernel dequantizes at a time."""


def _of_constant(value: Array, x: TensorInfo) -> Array:
    """A constant as LiteRT has it: int8 of one scale by its optimized kernel, eight at a time, as q scale + (-zero
    point scale); those that are left over, and all others, as scale (q - zero point)."""
    result = dequantize(value, x.quantization)
    if x.type != TensorType.INT8 or x.quantization.per_channel:
        return result
    scale, zero = np.float32(x.quantization.scale), np.float32(x.quantization.zero_point)
    whole = value.size // _VECTOR * _VECTOR
    result.reshape(-1)[:whole] = value.reshape(-1)[:whole].astype(np.float32) * scale + -zero * scale
    return result


@op.lower
def lower(graph: Lowering) -> None:
    """Bytes of one scale as XNNPACK has it: the float of q - zero point times the scale."""
    x = graph.input(0)
    if x.type in _FLOATS:
        y = graph.cast(graph.value(0), TensorType.FLOAT32)
    elif x.is_constant:
        y = graph.array(_of_constant(graph.known(0), x))
    else:
        levels = graph.cast(graph.value(0), TensorType.FLOAT32)
        scales, points = (graph.array(array) for array in along_dimension(x.quantization, len(x.shape)))
        y = graph.map(("mul", ("sub", 0, 1), 2), levels, points, scales)
    graph.result(y)
