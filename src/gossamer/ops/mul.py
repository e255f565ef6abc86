"""MUL: x * y, element by element, with broadcasting and a fused activation.

Floats are clamped to the activation, or without one to their finite range: overflow gives the largest number, not
infinity. (Machine code leaves infinity, as XNNPACK does.) int32, int64, uint32 and unquantised int16 wrap, then are
clamped. complex64 takes no activation, and is multiplied as in `gossamer.ops._complex`.

uint8, int8 and int16 with a quantized output (TFLite's ``reference_integer_ops::Mul``): ``(x - zero_x) * (y - zero_y)``
in 32 bits, times ``scale_x * scale_y / scale_out`` (a float32 product, made a 32-bit multiplier and a shift), plus the
output's zero point, clamped. int16 needs zero points of 0. int16 inputs may have an 8-bit output: then both are taken
as fractions of 2**15, their product is rounded to 16 and then to 8 bits, and scales do not matter.

Two constants give a constant: the product is made when the model is prepared.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer.dtypes import numpy_dtype
from gossamer.ops import _xnnpack_elementwise
from gossamer.ops._broadcast import broadcast_shape
from gossamer.ops._complex import product
from gossamer.ops._elementwise import (
    fused_activation,
    lower_elementwise,
    quantized_limits,
    require_output_type,
    require_same_types,
    require_scale,
    require_symmetric,
)
from gossamer.ops._rescaling import FIRST, SECOND, lower_rescaled
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import INT, Array, InPlace, InvokeContext, OpDef, PrepareContext, Version
from gossamer.ops.op_signature import Condition, OpSignature, input_type, quantized
from gossamer.quantization import (
    QuantizedMultiplier,
    high_mul,
    multiply_by_quantized_multiplier,
    quantize_multiplier,
    rounding_divide_by_pot,
)
from gossamer.records import record
from gossamer.schema.enums import ActivationFunctionType, TensorType
from gossamer.schema.options import MulOptions

_TYPES = (
    TensorType.FLOAT32,
    TensorType.FLOAT16,
    TensorType.INT32,
    TensorType.INT64,
    TensorType.UINT32,
    TensorType.INT16,
    TensorType.INT8,
    TensorType.UINT8,
    TensorType.COMPLEX64,
)


def _scales_up(signature: OpSignature) -> bool:
    scales = [tensor.scales[:1] for tensor in (signature.input(0), signature.input(1), signature.output())]
    if not all(len(scale) and scale[0] for scale in scales):
        return False
    x, y, output = np.array(scales, np.float32).reshape(3)
    return bool(x * y / output >= 1)


SCALES_UP = Condition(
    "{input[0]}'s scale * {input[1]}'s scale >= {output[0]}'s scale",
    "{input[0]}'s scale * {input[1]}'s scale < {output[0]}'s scale",
    _scales_up,
)
PLAIN_INT16 = input_type(0, TensorType.INT16) & ~quantized(0) & ~quantized(1)

op = OpDef(
    "MUL",
    inputs=("x", "y"),
    outputs=("output",),
    versions=(
        Version(1, "1.5.0"),
        Version(2, "1.14.0", input_type(0, TensorType.INT8)),
        Version(3, "1.15.0", SCALES_UP),
        Version(4, "2.3.0", input_type(0, TensorType.INT16)),
        Version(5, "2.6.0", input_type(0, TensorType.INT64)),
        Version(6, "2.11.0", input_type(0, TensorType.COMPLEX64)),
        Version(7, "2.13.0", PLAIN_INT16 | input_type(0, TensorType.UINT32)),
        Version(8, "2.23.0", input_type(0, TensorType.FLOAT16)),
    ),
    reference_version=7,
    types={"x": _TYPES, "y": _TYPES, "output": _TYPES},
    options=MulOptions,
    in_place=InPlace.INPUT_0 | InPlace.INPUT_1,
    quantizes=INT,
)


@record(frozen=True)
class _Quantized:
    zero_points: tuple[int, int, int]
    multiplier: QuantizedMultiplier
    low: int
    high: int
    dtype: np.dtype[Any]


@op.prepare
def prepare(ctx: PrepareContext) -> _Quantized | None:
    input_type = require_same_types(ctx)
    output = ctx.output()
    eight_bits = output.type in (TensorType.INT8, TensorType.UINT8)
    if not (input_type == TensorType.INT16 and eight_bits):
        require_output_type(ctx, input_type)
    activation = ctx.options.fused_activation_function
    ctx.require(
        input_type != TensorType.COMPLEX64 or activation == ActivationFunctionType.NONE,
        "complex64 takes no fused activation",
    )
    shape = broadcast_shape(ctx, ctx.input(0).shape, ctx.input(1).shape)
    quantized = None
    if eight_bits or (output.type == TensorType.INT16 and output.quantization):
        quantized = _prepare_quantized(ctx, activation)
    known = ctx.all_known(0, 1)
    if known is not None:
        x, y = known
        with np.errstate(all="ignore"):
            ctx.set_constant(0, np.asarray(_multiply(x, y, activation, quantized)))
    else:
        ctx.set_shape(0, shape)
    return quantized


def _prepare_quantized(ctx: PrepareContext, activation: int) -> _Quantized:
    x, y, output = ctx.input(0), ctx.input(1), ctx.output()
    low, high = quantized_limits(ctx, activation)
    multiplier = QuantizedMultiplier(0, 0)
    if x.type == output.type:
        scales = np.float32(require_scale(ctx, "x", x)) * np.float32(require_scale(ctx, "y", y))
        multiplier = quantize_multiplier(float(scales / np.float32(require_scale(ctx, "output", output))))
    if output.type == TensorType.INT16:
        require_symmetric(ctx, x, y, output)
    zero_points = x.quantization.zero_point, y.quantization.zero_point, output.quantization.zero_point
    return _Quantized(zero_points, multiplier, low, high, numpy_dtype(output.type))


def _multiply(x: Array, y: Array, activation: int, quantized: _Quantized | None) -> Array:
    if quantized is None:
        return product(x, y) if x.dtype == np.complex64 else fused_activation(np.multiply(x, y), activation)
    zero_x, zero_y, zero_output = quantized.zero_points
    if x.dtype == np.int16 and quantized.dtype != np.int16:
        result = rounding_divide_by_pot(high_mul(x, y, bits=16), 8)
    else:
        levels_of_both = (x.astype(np.int64) - zero_x) * (y.astype(np.int64) - zero_y)
        result = multiply_by_quantized_multiplier(levels_of_both, *quantized.multiplier)
    levels: Array = np.minimum(np.maximum(result + zero_output, quantized.low), quantized.high)
    return levels.astype(quantized.dtype)


@op.reference
def reference(ctx: InvokeContext) -> Array:
    return _multiply(ctx.value(0), ctx.value(1), ctx.options.fused_activation_function, ctx.data)


@op.lower
def lower(graph: Lowering) -> None:
    """8 bits as in `_xnnpack_elementwise`; beyond the scales that it takes, as the reference kernel."""
    activation = graph.options.fused_activation_function
    quantized: _Quantized | None = graph.data
    if quantized is None:
        lower_elementwise(graph, "mul", activation)
        return
    y = _xnnpack_elementwise.lower_product(graph, activation)
    if y is not None:
        graph.result(y)
        return
    if graph.input(0).type != graph.output().type:
        _lower_fractions(graph, quantized)
        return
    *zeros, _ = quantized.zero_points
    differences = (("sub", ("toi32", at), at + 2) for at in (0, 1))
    operands = (graph.value(0), graph.value(1), *(graph.array(np.array(zero, np.int32)) for zero in zeros))
    lower_rescaled(graph, ("mul", *differences), quantized.multiplier, quantized.low, quantized.high, *operands)


def _lower_fractions(graph: Lowering, quantized: _Quantized) -> None:
    """int16 to 8 bits."""
    limits = graph.parameters(quantized.zero_points[2], quantized.low, quantized.high)
    levels = ("limit", ("roundshift", ("product16", FIRST, SECOND), 2), 3)
    operands = graph.value(0), graph.value(1), graph.array(np.array(8, np.int32)), limits
    graph.result(graph.map(levels, *operands, type=graph.output().type))
