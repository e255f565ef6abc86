"""L2_NORMALIZATION: x divided by the square root of the sum of its squares along the last axis.

The input has at least one dimension; the output has its type and shape; a fused activation is refused. float32: the
norm is at least 1e-6.

uint8 and int8 (TFLite's reference L2Normalization): the output's scale is 1/128 and its zero point 128 or 0. The sum of
the squares of q - zero point is an int32; its inverse square root comes from five Newton steps in fixed point, 1 for
sums of 0 and 1; the output is round(128 * (q - zero point) * inverse) + zero point, clamped. The uint8 kernel
multiplies by 128 before the rounding multiplication, the int8 kernel joins it to the shift.
"""

from __future__ import annotations

import numpy as np

from gossamer.ops._elementwise import prepare_unary
from gossamer.ops._fixed_point import inverse_sqrt_multiplier, wrap_int32
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, Quantizes, Version
from gossamer.ops.op_signature import output_type
from gossamer.quantization import high_mul, multiply_by_quantized_multiplier, rounding_divide_by_pot, saturated
from gossamer.schema.enums import ActivationFunctionType, TensorType
from gossamer.schema.options import L2NormOptions

_TYPES = (TensorType.FLOAT32, TensorType.UINT8, TensorType.INT8)

op = OpDef(
    "L2_NORMALIZATION",
    inputs=("x",),
    outputs=("output",),
    versions=(
        Version(1, "1.5.0"),
        Version(2, "1.14.0", output_type(0, TensorType.INT8)),
    ),
    types={"x": _TYPES, "output": _TYPES},
    options=L2NormOptions,
    quantizes=Quantizes(fixed={TensorType.INT8: (1 / 128, 0), TensorType.INT16: (1 / 32768, 0)}),
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    prepare_unary(ctx)
    ctx.require(ctx.input(0).shape, "x must have at least 1 dimension, got a scalar")
    activation = ctx.options.fused_activation_function
    ctx.require(activation == ActivationFunctionType.NONE, f"has no fused activation, got {activation!r}")
    output = ctx.output()
    if output.type != TensorType.FLOAT32:
        expected = 128 if output.type == TensorType.UINT8 else 0
        scale, point = output.quantization.scale, output.quantization.zero_point
        ctx.require(
            scale == 1 / 128 and point == expected,
            f"output needs a scale of 1/128 and a zero point of {expected}, got {scale} and {point}",
        )


@op.reference
def reference(ctx: InvokeContext) -> Array:
    x, output = ctx.value(0), ctx.output()
    if output.type == TensorType.FLOAT32:
        norm = np.sqrt(np.square(x).sum(axis=-1, keepdims=True))
        result: Array = x / np.maximum(norm, np.float32(1e-6))
        return result
    q = x.astype(np.int64) - ctx.input(0).quantization.zero_point
    multiplier, shift = inverse_sqrt_multiplier(wrap_int32(np.square(q).sum(axis=-1, keepdims=True)))
    if output.type == TensorType.UINT8:
        levels = rounding_divide_by_pot(high_mul(128 * q, multiplier), -shift) + 128
    else:
        levels = multiply_by_quantized_multiplier(q, multiplier, shift + 7)
    return saturated(levels, output.type)


@op.lower
def lower(graph: Lowering) -> None:
    x, tensor = graph.value(0), graph.input(0)
    if tensor.type != TensorType.FLOAT32:
        zero_point = tensor.quantization.zero_point
        y = graph.kernel("quantized_normalize", x, shape=x.shape, type=x.type, zero_point=zero_point)
        graph.result(y)
        return
    graph.result(graph.kernel("normalize", x, shape=x.shape, type=x.type, norm="l2", epsilon=1e-6))
