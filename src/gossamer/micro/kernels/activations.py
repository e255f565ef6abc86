"""Functions of one tensor, element by element.

Sources: activations_common.cc, elementwise.cc, elu.cc, exp.cc, hard_swish_common.cc, leaky_relu_common.cc,
logistic_common.cc, tanh.cc, quantize_common.cc, dequantize_common.cc, cast.cc, neg.cc, round.cc, zeros_like.cc.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.micro.abi import Array, Struct, boolean, enumeration, float64, int8, int16, int32
from gossamer.micro.context import MicroInvokeContext, MicroPrepareContext
from gossamer.micro.kernels.kernel import (
    BOOL,
    FLOAT32,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
    MicroKernel,
    allowed,
    first_input,
    input_and_output,
)
from gossamer.ops import relu6
from gossamer.quantization import dequantize, integer_range, per_tensor, round_half_away
from gossamer.schema.enums import TensorType

OP_DATA_RELU = Struct(
    activation_type=int8,
    quantized_activation_min=int32,
    quantized_activation_max=int32,
    input_offset=int32,
    output_offset=int32,
    output_multiplier=int32,
    output_shift=int32,
)

OP_DATA_ABS_RSQRT = Struct(
    multiplier=int32,
    shift=int32,
    input_offset=int32,
    output_offset=int32,
    needs_rescale=boolean,
    input_quantization_type=int32,
    input_type=enumeration,
)

HARD_SWISH_PARAMS = Struct(
    input_zero_point=int16,
    output_zero_point=int16,
    reluish_multiplier_fixedpoint_int16=int16,
    reluish_multiplier_exponent=int32,
    output_multiplier_fixedpoint_int16=int16,
    output_multiplier_exponent=int32,
)

OP_DATA_LEAKY_RELU = Struct(
    output_multiplier_alpha=int32,
    output_shift_alpha=int32,
    output_multiplier_identity=int32,
    output_shift_identity=int32,
    input_zero_point=int32,
    output_zero_point=int32,
)

OP_DATA_LOGISTIC = Struct(
    input_zero_point=int32, input_range_radius=int32, input_multiplier=int32, input_left_shift=int32
)

OP_DATA_QUANTIZE = Struct(
    quantization_params=Struct(zero_point=int32, scale=float64),
    requantize_output_multiplier=int32,
    requantize_output_shift=int32,
    input_zero_point=int32,
)

OP_DATA_DEQUANTIZE = Struct(
    quantization_params=Struct(scale=float64, zero_point=int32),
    output_multiplier=int32,
    output_shift=int32,
    output_zero_point=int32,
)

REQUANTIZATIONS = {
    FLOAT32: (INT8, INT16),
    INT32: (INT8, INT16),
    INT16: (INT8, INT16, INT32),
    INT8: (INT8, UINT8, INT16, INT32),
    UINT8: (INT8,),
}
"""What QUANTIZE makes of each type."""


def _relu6(ctx: MicroInvokeContext) -> NDArray[Any]:
    """TFLite Micro clamps levels of the input, and does not rescale them to the output."""
    x, quantization = ctx.value(0), ctx.input(0).quantization
    if x.dtype == np.float32:
        return relu6.reference(ctx)
    low, high = integer_range(ctx.input(0).type)
    six = int(round_half_away(np.float32(6) / np.float32(quantization.scale))) + quantization.zero_point
    result: NDArray[Any] = np.clip(x, quantization.zero_point, min(max(six, low), high))
    return result


def _cast(ctx: MicroPrepareContext) -> None:
    input_and_output(ctx)
    allowed(ctx, ctx.output(), INT8, INT16, INT32, TensorType.UINT32, FLOAT32)


def _dequantize(ctx: MicroInvokeContext) -> NDArray[Any]:
    """With the first scale and zero point: the kernel knows one of each."""
    quantization = ctx.input(0).quantization
    zero_point = int(quantization.zero_points[0])
    return dequantize(ctx.value(0), per_tensor(float(quantization.scales[0]), zero_point))


def _prepare_dequantize(ctx: MicroPrepareContext) -> None:
    quantization = ctx.input(0).quantization
    ctx.require(quantization.scales.size and quantization.zero_points.size, "the input needs a scale and a zero point")
    input_and_output(ctx)


def _tanh(ctx: MicroPrepareContext) -> None:
    ctx.temp_input(0)
    ctx.temp_input(0)
    ctx.temp_output(0)


_FLOAT = (FLOAT32,)
_QUANTIZED = (FLOAT32, INT8, INT16)


def _numeric(name: str) -> MicroKernel:
    return MicroKernel(name, _FLOAT, prepare=input_and_output)


KERNELS = (
    MicroKernel("ABS", _QUANTIZED, op_data=OP_DATA_ABS_RSQRT, prepare=input_and_output),
    MicroKernel("CAST", (INT8, INT16, INT32, TensorType.UINT32, FLOAT32, BOOL), prepare=_cast),
    _numeric("CEIL"),
    _numeric("COS"),
    MicroKernel(
        "DEQUANTIZE",
        (INT8, INT16, UINT8),
        op_data=OP_DATA_DEQUANTIZE,
        prepare=_prepare_dequantize,
        reference=_dequantize,
    ),
    MicroKernel("ELU", (FLOAT32, INT8), op_data=Struct(table=Array(int8, 256)), prepare=input_and_output),
    _numeric("EXP"),
    MicroKernel("FLOOR", _FLOAT),
    MicroKernel("HARD_SWISH", (FLOAT32, INT8), op_data=HARD_SWISH_PARAMS, prepare=input_and_output),
    MicroKernel("LEAKY_RELU", _QUANTIZED, op_data=OP_DATA_LEAKY_RELU, prepare=input_and_output),
    _numeric("LOG"),
    MicroKernel("LOGICAL_NOT", (BOOL,), prepare=input_and_output),
    MicroKernel("LOGISTIC", _QUANTIZED, op_data=OP_DATA_LOGISTIC, prepare=input_and_output),
    MicroKernel("NEG", _FLOAT),
    MicroKernel("RELU", _QUANTIZED, op_data=OP_DATA_RELU, prepare=input_and_output),
    MicroKernel("RELU6", _QUANTIZED, op_data=Struct(six=int32, zero=int32), prepare=first_input, reference=_relu6),
    _numeric("ROUND"),
    MicroKernel("RSQRT", _QUANTIZED, op_data=OP_DATA_ABS_RSQRT, prepare=input_and_output),
    _numeric("SIN"),
    _numeric("SQRT"),
    _numeric("SQUARE"),
    MicroKernel("TANH", _QUANTIZED, op_data=OP_DATA_LOGISTIC, prepare=_tanh),
    MicroKernel("ZEROS_LIKE", (INT64, INT32, INT8, FLOAT32), prepare=input_and_output),
)
