"""Quantised operands brought to a common scale, and results brought to the output's: ADD, SUB, comparisons and kin.

TFLite's formula: an operand is ``((x - zero_point) << left_shift)`` times a multiplier below 1 with the two roundings
of gemmlowp. Two operands share a scale of twice the larger input scale, so their multipliers are at most 1/2.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer.arrays import ArrayLike, NDArray
from gossamer.dtypes import numpy_dtype
from gossamer.ops._elementwise import quantized_limits, require_scale, require_symmetric
from gossamer.ops.op_def import PrepareContext
from gossamer.quantization import (
    Int,
    integer_range,
    quantize_multiplier,
    rounding_divide_by_pot,
    saturating_rounding_doubling_high_mul,
)
from gossamer.records import record
from gossamer.schema.enums import TensorType


def divide_by_any_pot(x: Int, exponent: ArrayLike) -> NDArray[np.int64]:
    """`rounding_divide_by_pot` of 32-bit ``x``, also where the exponent is not 0 to 31.

    C++ leaves that undefined. Compilers for x86-64 and AArch64 agree on what comes of it, which LiteRT answers with and
    so do we: the mask is all ones, and the shift counts modulo 32.
    """
    exponent = np.asarray(exponent, np.int64)
    defined = (exponent >= 0) & (exponent <= 31)
    return np.where(
        defined, rounding_divide_by_pot(x, np.where(defined, exponent, 0)), (x >> (exponent & 31)) + (x >= 0)
    )


def scaled(x: Int, multiplier: int, shift: int) -> NDArray[np.int64]:
    """x * multiplier * 2**(shift - 31): MultiplyByQuantizedMultiplierSmallerThanOneExp.

    A positive shift, at which LiteRT aborts, or answers one way in the vectorised part of a loop and another way in its
    remainder, multiplies last and does not overflow.
    """
    product = saturating_rounding_doubling_high_mul(x, multiplier)
    return product << shift if shift > 0 else rounding_divide_by_pot(product, -shift)


@record(frozen=True)
class OperandScale:
    """An operand on the common scale: ``scaled((x - zero_point) << left_shift, multiplier, shift)``."""

    zero_point: int
    left_shift: int
    multiplier: int
    shift: int

    def __call__(self, x: Int) -> NDArray[np.int64]:
        return scaled((x.astype(np.int64) - self.zero_point) << self.left_shift, self.multiplier, self.shift)


@record(frozen=True)
class OutputScale:
    """From the common scale to the output: ``clamp(scaled(x, multiplier, shift) + zero_point, low, high)``."""

    multiplier: int
    shift: int
    zero_point: int
    low: int
    high: int
    dtype: np.dtype[Any]

    def __call__(self, x: Int) -> Int:
        shifted = scaled(x, self.multiplier, self.shift) + self.zero_point
        result: Int = np.minimum(np.maximum(shifted, self.low), self.high).astype(self.dtype)
        return result


@record(frozen=True)
class ShiftedOperand:
    """An operand whose scale is a power of two times the output's: shifted right with rounding."""

    shift: int

    def __call__(self, x: Int) -> NDArray[np.int64]:
        return rounding_divide_by_pot(x, self.shift)


@record(frozen=True)
class Clamp:
    """The output stage of power-of-two arithmetic."""

    low: int
    high: int
    dtype: np.dtype[Any]

    def __call__(self, x: Int) -> Int:
        result: Int = np.minimum(np.maximum(x, self.low), self.high).astype(self.dtype)
        return result


@record(frozen=True)
class Rescaling:
    """Two operands and their output."""

    first: OperandScale | ShiftedOperand
    second: OperandScale | ShiftedOperand
    output: OutputScale | Clamp


def prepare_rescaling(ctx: PrepareContext, left_shift: int, activation: int, *, squared: bool = False) -> Rescaling:
    """Rescaling of a sum or a difference, or (``squared``) of the square of one, whose scale is squared too."""
    x, y, output = ctx.input(0), ctx.input(1), ctx.output()
    scales = require_scale(ctx, "input 0", x), require_scale(ctx, "input 1", y)
    common = 2 * max(scales)
    unit = common * common / (1 << 2 * left_shift) if squared else common / (1 << left_shift)
    low, high = quantized_limits(ctx, activation)
    return Rescaling(
        OperandScale(x.quantization.zero_point, left_shift, *quantize_multiplier(scales[0] / common)),
        OperandScale(y.quantization.zero_point, left_shift, *quantize_multiplier(scales[1] / common)),
        OutputScale(
            *quantize_multiplier(unit / require_scale(ctx, "output", output)),
            output.quantization.zero_point,
            low,
            high,
            numpy_dtype(output.type),
        ),
    )


def prepare_sum(ctx: PrepareContext, activation: int, power_of_two: bool) -> Rescaling:
    """Rescaling of a quantised sum or difference of uint8, int8 or int16.

    8-bit operands are shifted left by 20, 16-bit ones by 15. For int16 all zero points must be 0; if ``power_of_two``
    (the option ``pot_scale_int16``) is set and all three scales are powers of two, an operand is only shifted right.
    """
    x, y, output = ctx.input(0), ctx.input(1), ctx.output()
    if output.type != TensorType.INT16:
        return prepare_rescaling(ctx, 20, activation)
    require_symmetric(ctx, x, y, output)
    first = checked_log2(require_scale(ctx, "input 0", x))
    second = checked_log2(require_scale(ctx, "input 1", y))
    result = checked_log2(require_scale(ctx, "output", output))
    if not power_of_two or first is None or second is None or result is None:
        return prepare_rescaling(ctx, 15, activation)
    ctx.require(
        min(first, second) >= result - 31 and max(first, second) == result,
        f"with pot_scale_int16 one input must have the output's scale 2**{result} and the other a smaller one, "
        f"got 2**{first} and 2**{second}",
    )
    low, high = quantized_limits(ctx, activation)
    return Rescaling(
        ShiftedOperand(result - first), ShiftedOperand(result - second), Clamp(low, high, numpy_dtype(TensorType.INT16))
    )


def checked_log2(scale: float) -> int | None:
    """log2 of a scale if it is whole within 0.001, in float32 as TFLite's CheckedLog2; else ``None``."""
    log2 = np.log(np.float32(scale)) * (np.float32(1) / np.log(np.float32(2)))
    whole = np.rint(log2)
    return int(whole) if np.abs(log2 - whole) < np.float32(1e-3) else None


def require_zero_points_in_range(ctx: PrepareContext) -> None:
    """Raise unless every zero point is a value of the operands' type."""
    low, high = integer_range(ctx.output().type)
    for tensor in (ctx.input(0), ctx.input(1), ctx.output()):
        point = tensor.quantization.zero_point
        ctx.require(low <= point <= high, f"zero points must be {low} to {high}, got {point}")
