"""Element types that TFLite Micro has and the full runtime has not: ADD_N and CUMSUM of int8, SQUARED_DIFFERENCE of
int16, QUANTIZE from int8 to int32, SVDF of int8 with any activation.

Sources: add_n.cc and reference/add_n.h, cumsum.cc and reference/cumsum.h, squared_difference.cc, quantize_common.cc,
svdf_common.cc. Each kernel has the `OpDef` of the full runtime with the types added, and leaves the others to it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.micro.abi import Struct, int32, pointer
from gossamer.micro.context import MicroInvokeContext, MicroPrepareContext
from gossamer.micro.kernels.activations import OP_DATA_QUANTIZE, REQUANTIZATIONS
from gossamer.micro.kernels.arithmetic import OP_DATA_SQUARED_DIFFERENCE, require_scales
from gossamer.micro.kernels.kernel import (
    FLOAT32,
    INT8,
    INT16,
    INT32,
    MicroKernel,
    allowed,
    input_and_output,
    inputs_and_output,
    with_types,
)
from gossamer.micro.kernels.reductions import OP_DATA_CUMSUM
from gossamer.micro.kernels.svdf import OP_DATA_SVDF, take_memory
from gossamer.ops import add_n, cumsum, quantize, squared_difference, svdf
from gossamer.ops._rescaling import OperandScale, OutputScale, prepare_rescaling
from gossamer.ops.op_def import OpDef
from gossamer.quantization import multiply_by_quantized_multiplier, quantize_multiplier, saturated
from gossamer.records import record
from gossamer.schema.enums import ActivationFunctionType

OP_DATA_ADD_N = Struct(
    output_activation_min=int32,
    output_activation_max=int32,
    input_offset=int32,
    output_offset=int32,
    input_multiplier=int32,
    output_multiplier=int32,
    input_shift=int32,
    output_shift=int32,
    left_shift=int32,
    scratch_index=int32,
)

_SHIFT = 20
"""8-bit operands are shifted left by so many bits before they are rescaled."""


def _prepare_full(ctx: MicroPrepareContext, op: OpDef) -> Any:
    return op.prepare_function(ctx) if op.prepare_function is not None else None


@record(frozen=True)
class _Sum:
    """int8 to a common scale, half of the input's, and from there to the output's."""

    operand: OperandScale
    output: OutputScale

    def start(self) -> NDArray[np.int64]:
        """TFLite Micro begins with what stands for -zero point, not for 0."""
        return self.operand(np.zeros(1, np.int8))


def _prepare_sum(ctx: MicroPrepareContext) -> _Sum:
    x, output = ctx.input(0), ctx.output()
    ctx.set_shape(0, x.shape)
    require_scales(ctx)
    ctx.require(x.quantization.scale > 0, "the input needs a positive scale")
    common = 2 * x.quantization.scale
    operand = OperandScale(x.quantization.zero_point, _SHIFT, *quantize_multiplier(x.quantization.scale / common))
    to = quantize_multiplier(common / ((1 << _SHIFT) * output.quantization.scale))
    return _Sum(operand, OutputScale(*to, output.quantization.zero_point, -128, 127, np.dtype(np.int8)))


def _add_n(ctx: MicroPrepareContext) -> Any:
    x, count = ctx.input(0), len(ctx.inputs)
    ctx.require(count >= 2, f"needs 2 inputs or more, got {count}")
    data = None
    if x.type == INT8:
        for position in range(1, count):
            other = ctx.input(position)
            ctx.require(other.shape == x.shape and other.type == x.type, "all inputs must have one shape and type")
            ctx.require(other.quantization == x.quantization, "all inputs must have the same scale and zero point")
        data = _prepare_sum(ctx)
    else:
        _prepare_full(ctx, add_n.op)
    input_and_output(ctx)
    for position in range(1, count):
        ctx.temp_input(position)
    if data is not None:
        ctx.persistent(OP_DATA_ADD_N)
    ctx.scratch(count * ctx.micro.size_of(pointer))
    return data


def _sum_of_all(ctx: MicroInvokeContext) -> NDArray[Any]:
    if ctx.data is None:
        return add_n.reference(ctx)
    data: _Sum = ctx.data
    total = data.start()
    for position in range(len(ctx.inputs)):
        total = total + data.operand(ctx.value(position))
    return data.output(total)


def _cumsum(ctx: MicroPrepareContext) -> Any:
    data = _prepare_sum(ctx) if ctx.input(0).type == INT8 else _prepare_full(ctx, cumsum.op)
    inputs_and_output(ctx)
    if ctx.output().type == INT8:
        ctx.persistent(OP_DATA_CUMSUM)
    return data


def _cumulated(ctx: MicroInvokeContext) -> NDArray[Any]:
    if not isinstance(ctx.data, _Sum):
        return cumsum.reference(ctx)
    x, rank = ctx.value(0), len(ctx.input(0).shape)
    axis = int(ctx.value(1).reshape(-1)[0])
    ctx.require(-rank <= axis < rank, f"axis {axis} is outside an input of {rank} dimensions")
    terms = np.moveaxis(ctx.data.operand(x), axis, -1)
    if ctx.options.reverse:
        terms = terms[..., ::-1]
    sums = np.cumsum(terms, axis=-1)
    if ctx.options.exclusive:
        sums = sums - terms
    sums = sums + ctx.data.start()
    if ctx.options.reverse:
        sums = sums[..., ::-1]
    result: NDArray[Any] = np.moveaxis(ctx.data.output(sums), -1, axis)
    return result


def _squared_difference(ctx: MicroPrepareContext) -> Any:
    data = _prepare_full(ctx, squared_difference.op)
    require_scales(ctx)
    inputs_and_output(ctx)
    if ctx.output().type != INT16:
        return data
    for tensor in (ctx.input(0), ctx.input(1), ctx.output()):
        ctx.require(tensor.quantization.zero_point == 0, "int16 needs zero points of 0")
    return prepare_rescaling(ctx, 0, ActivationFunctionType.NONE, squared=True)


def _squared(ctx: MicroInvokeContext) -> NDArray[Any]:
    if ctx.data is None:
        return squared_difference.reference(ctx)
    difference, output = ctx.data.first(ctx.value(0)) - ctx.data.second(ctx.value(1)), ctx.data.output
    scaled = multiply_by_quantized_multiplier(difference * difference, output.multiplier, output.shift)
    return saturated(scaled + output.zero_point, ctx.output().type)


def _quantize(ctx: MicroPrepareContext) -> Any:
    x, output = ctx.input(0), ctx.output()
    allowed(ctx, output, *REQUANTIZATIONS[x.type])
    ctx.require(output.quantization.scales.size == 1, "the output must have one scale on TFLite Micro")
    if (x.type, output.type) == (INT8, INT32):
        ctx.require(x.quantization, "int8 needs a scale")
        ctx.set_shape(0, x.shape)
        data = quantize_multiplier(x.quantization.scale / output.quantization.scale)
    else:
        data = _prepare_full(ctx, quantize.op)
    input_and_output(ctx)
    return data


def prepare_svdf(ctx: MicroPrepareContext) -> Any:
    """The int8 kernel clamps to the range of int8, whatever the activation: what the full runtime does for RELU."""
    if ctx.input(0).type == INT8:
        ctx.options = ctx.options.replace(fused_activation_function=ActivationFunctionType.RELU)
    data = _prepare_full(ctx, svdf.op)
    take_memory(ctx)
    return data


KERNELS = (
    MicroKernel(
        "ADD_N",
        (FLOAT32, INT8),
        prepare=_add_n,
        reference=_sum_of_all,
        op=with_types(add_n.op, **dict.fromkeys(add_n.op.types, INT8)),
        own_prepare=True,
    ),
    MicroKernel(
        "CUMSUM",
        (FLOAT32, INT8),
        prepare=_cumsum,
        reference=_cumulated,
        op=with_types(cumsum.op, x=INT8, output=INT8),
        own_prepare=True,
    ),
    MicroKernel("QUANTIZE", tuple(REQUANTIZATIONS), op_data=OP_DATA_QUANTIZE, prepare=_quantize, own_prepare=True),
    MicroKernel(
        "SQUARED_DIFFERENCE",
        (FLOAT32, INT8, INT16, INT32),
        op_data=OP_DATA_SQUARED_DIFFERENCE,
        prepare=_squared_difference,
        reference=_squared,
        op=with_types(squared_difference.op, **dict.fromkeys(squared_difference.op.types, INT16)),
        own_prepare=True,
    ),
    MicroKernel("SVDF", (FLOAT32, INT8), op_data=OP_DATA_SVDF, prepare=prepare_svdf, own_prepare=True),
)
