"""Reductions, and what looks for the largest along an axis (reduce.cc, reduce_common.cc, arg_min_max.cc, cumsum.cc,
l2norm.cc)."""

from __future__ import annotations

from math import prod
from typing import Any

from gossamer.arrays import NDArray
from gossamer.micro.abi import Struct, float32, int32
from gossamer.micro.context import MicroInvokeContext, MicroPrepareContext
from gossamer.micro.kernels.kernel import (
    BOOL,
    FLOAT32,
    INT8,
    INT16,
    INT32,
    MicroKernel,
    allowed,
    input_and_output,
)
from gossamer.ops import sum as sum_
from gossamer.ops._mean import quantized_sum

OP_DATA_REDUCE = Struct(
    multiplier=int32,
    shift=int32,
    scratch_accumulator_idx=int32,
    scratch_resolved_axis_idx=int32,
    scratch_input_iter_idx=int32,
    input_zp=int32,
    input_scale=float32,
    output_zp=int32,
    output_scale=float32,
    num_output_elements=int32,
    num_axis=int32,
)

OP_DATA_CUMSUM = Struct(
    output_activation_min=int32,
    output_activation_max=int32,
    input_offset=int32,
    output_offset=int32,
    input_multiplier=int32,
    output_multiplier=int32,
    input_shift=int32,
    output_shift=int32,
    left_shift=int32,
)


def _simple(ctx: MicroPrepareContext) -> None:
    ctx.temp_input(0)
    ctx.temp_input(1)
    if ctx.input(0).type == INT8:
        ctx.temp_output(0)


def _look(ctx: MicroPrepareContext) -> None:
    ctx.temp_input(0)
    ctx.temp_output(0)
    ctx.temp_input(1)


def _iterators(ctx: MicroPrepareContext) -> None:
    ctx.scratch(4 * len(ctx.input(0).shape))
    ctx.scratch(4 * prod(ctx.input(1).shape))


def _min_max(ctx: MicroPrepareContext) -> None:
    _simple(ctx)
    _look(ctx)
    _iterators(ctx)
    input_, output = ctx.input(0), ctx.output()
    if input_.type == INT8:
        ctx.require(input_.quantization == output.quantization, "input and output must have the same quantization")


def _mean_or_sum(ctx: MicroPrepareContext) -> None:
    _look(ctx)
    if ctx.input(0).type != FLOAT32:
        ctx.scratch(4 * prod(ctx.output().shape))
    _iterators(ctx)
    _simple(ctx)


def _all(ctx: MicroPrepareContext) -> None:
    _look(ctx)
    _simple(ctx)
    _iterators(ctx)


def _sum(ctx: MicroInvokeContext) -> NDArray[Any]:
    """As TFLite's reference kernel means it, which the full runtime does not use for int8 and int16."""
    return quantized_sum(ctx, mean=False) if ctx.data is not None else sum_.reference(ctx)


def _arg(ctx: MicroPrepareContext) -> None:
    allowed(ctx, ctx.output(), INT32)
    allowed(ctx, ctx.input(1), INT32)


KERNELS = (
    MicroKernel("ARG_MAX", (FLOAT32, INT8), prepare=_arg),
    MicroKernel("ARG_MIN", (FLOAT32, INT8), prepare=_arg),
    MicroKernel("L2_NORMALIZATION", (FLOAT32, INT8), op_data=Struct(input_zero_point=int32), prepare=input_and_output),
    MicroKernel("MEAN", (FLOAT32, INT8, INT16), op_data=OP_DATA_REDUCE, prepare=_mean_or_sum),
    MicroKernel("REDUCE_ALL", (BOOL,), op_data=OP_DATA_REDUCE, prepare=_all),
    MicroKernel("REDUCE_MAX", (FLOAT32, INT8), op_data=OP_DATA_REDUCE, prepare=_min_max),
    MicroKernel("REDUCE_MIN", (FLOAT32, INT8), op_data=OP_DATA_REDUCE, prepare=_min_max),
    MicroKernel("SUM", (FLOAT32, INT8, INT16), op_data=OP_DATA_REDUCE, prepare=_mean_or_sum, reference=_sum),
)
