"""Functions of two or more tensors, element by element, with broadcasting (add_common.cc, sub_common.cc, mul_common.cc,
div.cc, squared_difference.cc, maximum_minimum.cc, floor_div.cc, floor_mod.cc, comparisons.cc, logical.cc, select.cc,
add_n.cc, prelu_common.cc)."""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer.dtypes import numpy_dtype
from gossamer.micro.abi import Array, Struct, boolean, float32, int8, int16, int32, int64
from gossamer.micro.context import MicroPrepareContext
from gossamer.micro.kernels.kernel import (
    BOOL,
    FLOAT32,
    INT8,
    INT16,
    INT32,
    INT64,
    MicroKernel,
    allowed,
    inputs_and_output,
    two_inputs,
)
from gossamer.ops._elementwise import quantized_limits
from gossamer.ops._rescaling import OperandScale, OutputScale, Rescaling, prepare_rescaling
from gossamer.quantization import quantize_multiplier
from gossamer.records import replace
from gossamer.schema.enums import TensorType

OP_DATA_SUB = Struct(
    requires_broadcast=boolean,
    input1_shift=int32,
    input2_shift=int32,
    output_activation_min=int32,
    output_activation_max=int32,
    input1_multiplier=int32,
    input2_multiplier=int32,
    output_multiplier=int32,
    output_shift=int32,
    left_shift=int32,
    input1_offset=int32,
    input2_offset=int32,
    output_offset=int32,
)

OP_DATA_ADD = Struct(**OP_DATA_SUB.fields, output_activation_min_f32=float32, output_activation_max_f32=float32)

OP_DATA_MUL = Struct(
    input1_zero_point=int32,
    input2_zero_point=int32,
    output_activation_min=int32,
    output_activation_max=int32,
    output_zero_point=int32,
    output_multiplier=int32,
    output_shift=int32,
    output_activation_min_f32=float32,
    output_activation_max_f32=float32,
)

OP_DATA_DIV = Struct(
    input1_zero_point=int32,
    input2_zero_point=int32,
    output_zero_point=int32,
    output_activation_min=int32,
    output_activation_max=int32,
    output_multiplier=int32,
    output_shift=int32,
)

ARITHMETIC_PARAMS = Struct(
    broadcast_category=int8,
    input1_offset=int32,
    input2_offset=int32,
    output_offset=int32,
    output_multiplier=int32,
    output_shift=int32,
    left_shift=int32,
    input1_multiplier=int32,
    input1_shift=int32,
    input2_multiplier=int32,
    input2_shift=int32,
    quantized_activation_min=int32,
    quantized_activation_max=int32,
    float_activation_min=float32,
    float_activation_max=float32,
    int64_activation_min=int64,
    int64_activation_max=int64,
    int16_activation_min=int16,
    int16_activation_max=int16,
    broadcast_shape=Array(int32, 5),
)

OP_DATA_SQUARED_DIFFERENCE = Struct(requires_broadcast=boolean, arithmetic_params=ARITHMETIC_PARAMS)

OP_DATA_COMPARISON = Struct(
    left_shift=int32,
    input1_offset=int32,
    input1_multiplier=int32,
    input1_shift=int32,
    input2_offset=int32,
    input2_multiplier=int32,
    input2_shift=int32,
    is_broadcast=boolean,
)

PRELU_PARAMS = Struct(
    input_offset=int32,
    alpha_offset=int32,
    output_offset=int32,
    output_multiplier_1=int32,
    output_shift_1=int32,
    output_multiplier_2=int32,
    output_shift_2=int32,
)


_QUANTIZED = (FLOAT32, INT8, INT16, INT32)
_NUMBERS = (FLOAT32, INT8, INT32, INT64)
_EXTREMES = (FLOAT32, INT8, INT16, INT32, INT64)


def _compare(ctx: MicroPrepareContext) -> None:
    two_inputs(ctx)
    if ctx.input(0).type == INT8:
        for tensor in (ctx.input(0), ctx.input(1)):
            ctx.require(tensor.quantization.scale < 1, "TFLite Micro compares int8 with scales below 1 only")


def _select(ctx: MicroPrepareContext) -> None:
    rank = len(ctx.output().shape)
    ctx.require(rank <= 5, f"TFLite Micro selects from tensors of at most 5 dimensions, got {rank}")
    inputs_and_output(ctx)


def _comparison(name: str, *more: TensorType) -> MicroKernel:
    return MicroKernel(name, (*_NUMBERS, *more), op_data=OP_DATA_COMPARISON, prepare=_compare)


def require_scales(ctx: MicroPrepareContext) -> None:
    """Refuse an 8-bit or 16-bit output without a scale: TFLite Micro takes it for quantized all the same."""
    output = ctx.output()
    if output.type in (INT8, INT16):
        ctx.require(output.quantization, f"a {output.type.name.lower()} output needs a scale on TFLite Micro")


def _quantized(ctx: MicroPrepareContext) -> None:
    require_scales(ctx)
    inputs_and_output(ctx)


def _add(ctx: MicroPrepareContext) -> Any:
    """By multipliers even where all scales are powers of two: TFLite Micro has no ``pot_scale_int16``."""
    _quantized(ctx)
    if ctx.output().type != INT16:
        return None
    return prepare_rescaling(ctx, 15, ctx.options.fused_activation_function)


def _sub(ctx: MicroPrepareContext) -> Rescaling | None:
    """As `_add`, with multipliers that come from scales in single precision."""
    _quantized(ctx)
    x, y, output = ctx.input(0), ctx.input(1), ctx.output()
    if output.type not in (INT8, INT16):
        return None
    shift = 15 if output.type == INT16 else 20
    first, second, to = (np.float32(tensor.quantization.scale) for tensor in (x, y, output))
    common = np.float32(2) * max(first, second)
    low, high = quantized_limits(ctx, ctx.options.fused_activation_function)
    return Rescaling(
        OperandScale(x.quantization.zero_point, shift, *quantize_multiplier(float(first / common))),
        OperandScale(y.quantization.zero_point, shift, *quantize_multiplier(float(second / common))),
        OutputScale(
            *quantize_multiplier(float(common / (np.float32(1 << shift) * to))),
            output.quantization.zero_point,
            low,
            high,
            numpy_dtype(output.type),
        ),
    )


def _mul(ctx: MicroPrepareContext) -> Any:
    """The multiplier comes from scales in double precision; TFLite multiplies and divides them in single."""
    allowed(ctx, ctx.output(), ctx.input(0).type)
    _quantized(ctx)
    if ctx.output().type not in (INT8, INT16):
        return None
    x, y, output = (tensor.quantization.scale for tensor in (ctx.input(0), ctx.input(1), ctx.output()))
    return replace(ctx.node.data, multiplier=quantize_multiplier(x * y / output))


def _prelu(ctx: MicroPrepareContext) -> None:
    if ctx.output().type == INT16:
        ctx.require(ctx.input(1).type == INT8, "alpha of an int16 input must be int8 on TFLite Micro")
    inputs_and_output(ctx)


KERNELS = (
    MicroKernel("ADD", _QUANTIZED, op_data=OP_DATA_ADD, prepare=_add),
    MicroKernel("DIV", (FLOAT32, INT8, INT32), op_data=OP_DATA_DIV, prepare=inputs_and_output),
    _comparison("EQUAL", BOOL),
    MicroKernel("FLOOR_DIV", (FLOAT32,), prepare=inputs_and_output),
    MicroKernel("FLOOR_MOD", (FLOAT32,), prepare=inputs_and_output),
    _comparison("GREATER"),  # its int16 kernel compares with parameters that nobody sets
    _comparison("GREATER_EQUAL"),
    _comparison("LESS"),
    _comparison("LESS_EQUAL"),
    MicroKernel("LOGICAL_AND", (BOOL,)),
    MicroKernel("LOGICAL_OR", (BOOL,)),
    MicroKernel("MAXIMUM", _EXTREMES),
    MicroKernel("MINIMUM", _EXTREMES),
    MicroKernel("MUL", _QUANTIZED, op_data=OP_DATA_MUL, prepare=_mul),
    _comparison("NOT_EQUAL", BOOL),
    MicroKernel("PRELU", (FLOAT32, INT8, INT16), op_data=PRELU_PARAMS, prepare=_prelu),
    MicroKernel(
        "SELECT_V2",
        (FLOAT32, INT8, INT16),
        typed=1,
        op_data=Struct(requires_broadcast=boolean),
        prepare=_select,
    ),
    MicroKernel("SUB", _QUANTIZED, op_data=OP_DATA_SUB, prepare=_sub),
)
