"""SOFTMAX and LOG_SOFTMAX on a device (softmax_common.cc, log_softmax.cc)."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.micro.abi import Struct, float32, float64, int32, pointer, size
from gossamer.micro.context import MicroInvokeContext, MicroPrepareContext
from gossamer.micro.kernels.kernel import FLOAT32, INT8, INT16, MicroKernel, input_and_output
from gossamer.ops import softmax
from gossamer.ops._libm import expf
from gossamer.ops._lookup_tables import interpolation_table
from gossamer.ops.softmax import softmax_16
from gossamer.quantization import QuantizedMultiplier

SOFTMAX_PARAMS = Struct(
    beta=float64,
    input_multiplier=int32,
    input_left_shift=int32,
    reverse_scaling_divisor=int32,
    reverse_scaling_right_shift=int32,
    diff_min=int32,
    zero_point=int32,
    scale=float32,
    table=pointer,
    exp_lut=pointer,
    one_over_one_plus_x_lut=pointer,
    uint8_table1=pointer,
    uint8_table2=pointer,
)

LOG_SOFTMAX_OP_DATA = Struct(
    input_multiplier=int32,
    input_left_shift=int32,
    reverse_scaling_divisor=int32,
    reverse_scaling_right_shift=int32,
    diff_min=int32,
    outer_size=size,
    depth=size,
)

INT16_LUT_BYTES = 2 * 513


def _prepare(ctx: MicroPrepareContext) -> None:
    input_and_output(ctx)
    if ctx.input(0).type == INT16:
        ctx.persistent(INT16_LUT_BYTES)
        ctx.persistent(INT16_LUT_BYTES)


@cache
def _tables() -> tuple[NDArray[np.int16], NDArray[np.int16]]:
    """exp over [-10, 0] and 1 / (1 + x) over [0, 1], filled in single precision."""
    exp_step, inverse_step, level = (float(np.float32(most) / np.float32(65535)) for most in (10, 1, 2))
    exps = interpolation_table(expf, (exp_step, 32767), (level, 0))
    inverses = interpolation_table(_inverse, (inverse_step, -32768), (level, 0))
    return exps, inverses


def _inverse(x: NDArray[np.float32]) -> NDArray[np.float32]:
    result: NDArray[np.float32] = np.float32(1) / (np.float32(1) + x)
    return result


def _softmax(ctx: MicroInvokeContext) -> NDArray[Any]:
    if not isinstance(ctx.data, QuantizedMultiplier) or not ctx.value(0).size:
        return softmax.reference(ctx)
    return softmax_16(ctx.value(0), ctx.data, *_tables())


def _prepare_log(ctx: MicroPrepareContext) -> None:
    input_and_output(ctx)
    if ctx.input(0).type == INT8:
        ctx.persistent(LOG_SOFTMAX_OP_DATA)


KERNELS = (
    MicroKernel("LOG_SOFTMAX", (FLOAT32, INT8), prepare=_prepare_log),
    MicroKernel("SOFTMAX", (FLOAT32, INT8, INT16), op_data=SOFTMAX_PARAMS, prepare=_prepare, reference=_softmax),
)
