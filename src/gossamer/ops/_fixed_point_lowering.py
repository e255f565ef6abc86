"""Elementwise operators of fixed-point integers in terms of the kernel graph: int16, and whatever is computed like it.

`gossamer.codegen.fixed_point` has the functions; here are their parameters.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from gossamer.ops._fixed_point import SIGMOID
from gossamer.ops._rescale import Clamp, OperandScale, OutputScale, Rescaling, ShiftedOperand
from gossamer.ops.lowering import Expression, Lowering
from gossamer.ops.op_def import Array
from gossamer.schema.enums import TensorType
from gossamer.views import View

FIRST, SECOND = ("toi32", 0), ("toi32", 1)
"""Operands, in 32 bits."""

Multiplier = tuple[int, int]
"""A multiplier of 31 bits and a shift."""


def operand(graph: Lowering, scale: object) -> View:
    """The parameters of ``scalein``. Refused for scales at which LiteRT's shift is undefined."""
    if not isinstance(scale, OperandScale) or scale.shift > 0:
        graph.refuse("the scale of an operand is too large")
    return graph.parameters(scale.zero_point, scale.left_shift, scale.multiplier, -scale.shift)


def result(graph: Lowering, multiplier: int, shift: int, zero_point: int, low: int, high: int) -> View:
    """The parameters of ``scaleout``."""
    return graph.parameters(multiplier, max(shift, 0), max(-shift, 0), zero_point, low, high)


def rescaled(graph: Lowering, expression: Expression, to: Multiplier, low: int, high: int, *operands: View) -> None:
    """State the result of an operator: an expression of operands, by a multiplier to the output's scale, clamped."""
    output = graph.output()
    parameters = result(graph, *to, output.quantization.zero_point, low, high)
    graph.result(graph.map(("scaleout", expression, len(operands)), *operands, parameters, type=output.type))


def lower_sum(graph: Lowering, function: str, rescaling: Rescaling) -> None:
    """State a quantized sum or difference of int16."""
    x, y, first, second, output = graph.value(0), graph.value(1), rescaling.first, rescaling.second, rescaling.output
    views: tuple[View, ...]
    if isinstance(first, ShiftedOperand) and isinstance(second, ShiftedOperand) and isinstance(output, Clamp):
        shifts = [graph.array(np.array(shift, np.int32)) for shift in (first.shift, second.shift)]
        total = (function, ("roundshift", FIRST, 2), ("roundshift", SECOND, 3))
        views = (x, y, *shifts, graph.parameters(0, output.low, output.high))
        graph.result(graph.map(("limit", total, 4), *views, type=TensorType.INT16))
        return
    if not isinstance(output, OutputScale) or output.shift > 0:
        graph.refuse("the scale of the output is too small")
    total = (function, ("scalein", FIRST, 2), ("scalein", SECOND, 3))
    to = output.multiplier, output.shift
    rescaled(graph, total, to, output.low, output.high, x, y, operand(graph, first), operand(graph, second))


def lower_slopes(
    graph: Lowering, identity: Multiplier, slope: Multiplier, alpha: View | None = None, *, negates: bool = False
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


def lower_interpolation(graph: Lowering, table: Array) -> None:
    """State an int16 function by a table of 513 entries."""
    graph.result(interpolated(graph, graph.value(0), table))


def interpolated(graph: Lowering, x: View, table: Array) -> View:
    """int16 values, of whatever type, through a table of 513 entries."""
    return graph.map(("interpolate", FIRST, 1), x, pairs(graph, table), type=TensorType.INT16)


def pairs(graph: Lowering, table: Array) -> View:
    """A table of 513 entries as kernels read it: each with the step to the next, in 16 bits each."""
    low = table.astype(np.int64)
    steps = (low[1:] - low[:-1]).astype(np.int16).astype(np.int64)
    return graph.array(((low[:-1] & 0xFFFF) | (steps << 16)).astype(np.int32))


def lower_sigmoid(graph: Lowering, function: Literal["sigmoid16", "tanh16"], to: Multiplier) -> None:
    """State a sigmoid of int16; ``to``: a multiplier and a right shift to the steps of the table.

    Scales that TFLite meets without rounding, 2^-12 and of tanh 2^-11, are those of its optimized kernels, which
    compute in fixed point (gemmlowp) instead of looking up.
    """
    multiplier, shift = to
    if shift == 0 and multiplier in (3, 6):
        level = FIRST if multiplier == 3 else ("saturate16", ("add", FIRST, FIRST))
        fixed = {"sigmoid16": "fixedlogistic", "tanh16": "fixedtanh3"}[function]
        graph.result(graph.map((fixed, level), graph.value(0), type=TensorType.INT16))
        return
    pairs = SIGMOID[:-1] | (SIGMOID[1:] << 16)
    words = np.concatenate([np.array(to, np.uint32), pairs.astype(np.uint32)]).view(np.int32)
    graph.result(graph.map((function, FIRST, 1), graph.value(0), graph.array(words), type=TensorType.INT16))


def not_negative(graph: Lowering, x: View) -> View:
    """int16 values in 32 bits. Where one is negative, the kernel faults, and the reference kernel says so."""
    one = graph.array(np.array(1, np.int32))
    raised = graph.map(("relu", ("add", FIRST, 1)), x, one, type=TensorType.INT32)
    checked = graph.kernel("nonzero", raised, shape=x.shape, type=TensorType.INT32)
    return graph.map("sub", checked, one)


def checked_levels(graph: Lowering, x: View, zero_point: int) -> View:
    """Levels of int8, none of which stands for a negative number: else it is as with `not_negative`."""
    zero = graph.array(np.array(zero_point, np.int32))
    centred = graph.map(("sub", FIRST, 1), x, zero, type=TensorType.INT16)
    return graph.map("add", not_negative(graph, centred), zero, type=x.type)
