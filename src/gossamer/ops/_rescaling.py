"""Quantised operands brought to a common scale, and results brought to the output's: ADD, SUB, comparisons and kin.

TFLite's formula: an operand is ``((x - zero_point) << left_shift)`` times a multiplier below 1 with the two roundings
of gemmlowp. Two operands share a scale of twice the larger input scale, so their multipliers are at most 1/2.

In the kernel graph they are expressions of integers (`gossamer.codegen.fixed_point`), whose parameters are made here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.dtypes import numpy_dtype
from gossamer.ops._elementwise import quantized_limits, require_scale, require_symmetric
from gossamer.ops.lowering import Expression, Lowering
from gossamer.ops.op_def import Context, PrepareContext, TensorInfo
from gossamer.quantization import (
    Int,
    QuantizedMultiplier,
    checked_log2,
    high_mul,
    integer_range,
    quantize_multiplier,
    rounding_divide_by_pot,
)
from gossamer.records import record, replace
from gossamer.schema.enums import TensorType
from gossamer.views import View


def scaled(x: Int, multiplier: int, shift: int) -> NDArray[np.int64]:
    """x * multiplier * 2**(shift - 31): MultiplyByQuantizedMultiplierSmallerThanOneExp.

    A positive shift, at which LiteRT aborts, or answers one way in the vectorised part of a loop and another way in its
    remainder, multiplies last and does not overflow.
    """
    product = high_mul(x, multiplier)
    return product << min(shift, 31) if shift > 0 else rounding_divide_by_pot(product, -shift)


@record(frozen=True)
class OperandScale:
    """An operand on the common scale: ``scaled((x - zero_point) << left_shift, multiplier, shift)``."""

    zero_point: int
    left_shift: int
    multiplier: int
    shift: int

    def __call__(self, x: Int) -> NDArray[np.int64]:
        return scaled((x.astype(np.int64) - self.zero_point) << self.left_shift, self.multiplier, self.shift)

    def rounded_once(self) -> OperandScale:
        """The same scale, of one shift and one rounding; itself where it would shift to the right first."""
        left = self.left_shift + self.shift
        return self if left < 0 else replace(self, left_shift=left, shift=0)


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


def require_zero_points_in_range(ctx: PrepareContext) -> None:
    """Raise unless every zero point is a value of the operands' type."""
    low, high = integer_range(ctx.output().type)
    for tensor in (ctx.input(0), ctx.input(1), ctx.output()):
        point = tensor.quantization.zero_point
        ctx.require(low <= point <= high, f"zero points must be {low} to {high}, got {point}")


def scale_ratio(ctx: Context, source: TensorInfo, target: TensorInfo, factor: float = 1.0) -> QuantizedMultiplier:
    """Multiplier and shift of the input's scale, times a factor, divided by the output's, in float32 as kernels do it.

    Raises through ``ctx`` where one of them has no scale: its integers stand for nothing then.
    """
    scale = np.float32(require_scale(ctx, "input", source)) * np.float32(factor)
    return quantize_multiplier(float(scale / np.float32(require_scale(ctx, "output", target))))


FIRST, SECOND = ("toi32", 0), ("toi32", 1)
"""Operands, in 32 bits."""


def scale_in(graph: Lowering, scale: object) -> View:
    """The parameters of ``scalein``. Refused for scales at which LiteRT's shift is undefined."""
    if not isinstance(scale, OperandScale) or scale.shift > 0:
        graph.refuse("the scale of an operand is too large")
    return graph.parameters(scale.zero_point, scale.left_shift, scale.multiplier, -scale.shift)


def scale_out(graph: Lowering, to: QuantizedMultiplier, zero_point: int, low: int, high: int) -> View:
    """The parameters of ``scaleout``."""
    multiplier, shift = to
    return graph.parameters(multiplier, max(shift, 0), max(-shift, 0), zero_point, low, high)


def lower_rescaled(
    graph: Lowering, expression: Expression, to: QuantizedMultiplier, low: int, high: int, *operands: View
) -> None:
    """State an operator's result: an expression of operands, by a multiplier to the output's scale, clamped."""
    graph.result(rescaled(graph, expression, to, low, high, *operands))


def rescaled(
    graph: Lowering, expression: Expression, to: QuantizedMultiplier, low: int, high: int, *operands: View
) -> View:
    """Such an expression, of the type of the operator's output."""
    output = graph.output()
    parameters = scale_out(graph, to, output.quantization.zero_point, low, high)
    return graph.map(("scaleout", expression, len(operands)), *operands, parameters, type=output.type)


def lower_sum(graph: Lowering, function: str, rescaling: Rescaling) -> None:
    """State a quantized sum or difference as the reference kernel has it."""
    graph.result(quantized_sum(graph, function, rescaling, graph.value(0), graph.value(1)))


def quantized_sum(graph: Lowering, function: str, rescaling: Rescaling, x: View, y: View) -> View:
    """That of two operands, of the type of the operator's output."""
    first, second, output = rescaling.first, rescaling.second, rescaling.output
    views: tuple[View, ...]
    if isinstance(first, ShiftedOperand) and isinstance(second, ShiftedOperand) and isinstance(output, Clamp):
        shifts = [graph.array(np.array(shift, np.int32)) for shift in (first.shift, second.shift)]
        total = (function, ("roundshift", FIRST, 2), ("roundshift", SECOND, 3))
        views = (x, y, *shifts, graph.parameters(0, output.low, output.high))
        return graph.map(("limit", total, 4), *views, type=TensorType.INT16)
    if not isinstance(output, OutputScale):
        graph.refuse("powers of two and other scales do not mix")
    total = (function, ("scalein", FIRST, 2), ("scalein", SECOND, 3))
    scales = scale_in(graph, first), scale_in(graph, second)
    if output.shift <= 0:
        to = QuantizedMultiplier(output.multiplier, output.shift)
        return rescaled(graph, total, to, output.low, output.high, x, y, *scales)
    # Multiplied, and then shifted to the left: what will be beyond the type is cut off before, so that it fits.
    most = 2 << 8 * output.dtype.itemsize
    shift = min(output.shift, most.bit_length() - 1)
    product = scale_out(graph, QuantizedMultiplier(output.multiplier, 0), 0, -(most >> shift), most >> shift)
    shifted = ("shiftleft", ("scaleout", total, 4), 5)
    limits = graph.parameters(output.zero_point, output.low, output.high)
    views = (x, y, *scales, product, graph.array(np.array(shift, np.int32)), limits)
    return graph.map(("limit", shifted, 6), *views, type=graph.output().type)


def lower_slopes(
    graph: Lowering,
    identity: QuantizedMultiplier,
    slope: QuantizedMultiplier,
    alpha: View | None = None,
    *,
    negates: bool = False,
) -> None:
    """State x where it is at least 0, else its product with ``alpha``, if there is one: each by a multiplier."""
    x, numbers = graph.value(0), [0, *identity, *slope]
    views = [x] if alpha is None else [x, alpha]
    zero = len(views)
    views += [graph.array(np.array(number, np.int32)) for number in numbers]
    below = FIRST if alpha is None else ("mul", FIRST, SECOND)
    leaked: Expression = ("requant", below, zero + 3, zero + 4)
    kept = ("requant", FIRST, zero + 1, zero + 2)
    chosen = ("select", ("less", FIRST, zero), ("neg", leaked) if negates else leaked, kept)
    views.append(graph.parameters(0, -32768, 32767))
    graph.result(graph.map(("limit", chosen, len(views) - 1), *views, type=TensorType.INT16))
