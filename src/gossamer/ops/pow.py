"""POW: x**y, element by element, with broadcasting, of float32 or int32.

int32 refuses negative exponents when they turn up. Results come from float64 ``pow``; one that does not fit is -2**31,
as x86 converts it.

An exponent of one element and another shape than x is taken as an integer n if it is at least 1 and within 1e-5 of it
(TFLite's ``BroadcastPow4D``): x**n is then made by squaring and multiplying, int32 wrapping and float32 clamped to its
finite range at every step.
"""

from __future__ import annotations

import numpy as np

from gossamer.ops._elementwise import fused_activation, prepare_binary
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, versions
from gossamer.quantization import round_half_away
from gossamer.schema.enums import ActivationFunctionType, TensorType
from gossamer.schema.options import PowOptions
from gossamer.views import View

_TYPES = (TensorType.FLOAT32, TensorType.INT32)

BITS = 5
"""Of one exponent of integers that is computed."""

op = OpDef(
    "POW",
    inputs=("x", "y"),
    outputs=("output",),
    versions=versions("1.10.0"),
    types={"x": _TYPES, "y": _TYPES, "output": _TYPES},
    options=PowOptions,
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    prepare_binary(ctx)


@op.reference
def reference(ctx: InvokeContext) -> Array:
    x, y = ctx.value(0), ctx.value(1)
    if y.dtype == np.int32 and np.any(y < 0):
        ctx.fail(f"exponents of int32 must not be negative, got {int(y.min())}")
    if y.size == 1 and x.shape != y.shape:
        exponent = _whole(y)
        if exponent >= 1:
            return _integer_power(x, exponent).reshape(np.broadcast_shapes(x.shape, y.shape))
    if x.dtype == np.float32:
        return np.power(x, y)
    exact = np.rint(np.power(x.astype(np.float64), y.astype(np.float64)))
    fits = np.abs(exact) < 2.0**31
    return np.where(fits, exact, -(2.0**31)).astype(np.int32)


def _whole(exponent: Array) -> int:
    """The one exponent as an integer; 0 if it is none."""
    value = exponent.reshape(-1)[0]
    nearest = round_half_away(float(value))
    if not abs(nearest) < 2**31 or abs(value - value.dtype.type(nearest)) >= 1e-5:
        return 0
    return int(nearest)


def _integer_power(x: Array, exponent: int) -> Array:
    if exponent == 1:
        return x
    root = _integer_power(x, exponent // 2)
    power = fused_activation(root * root, ActivationFunctionType.NONE)
    return fused_activation(x * power, ActivationFunctionType.NONE) if exponent % 2 else power


@op.lower
def lower(graph: Lowering) -> None:
    x, y = graph.value(0), graph.value(1)
    is_one = y.size == 1 and x.shape != y.shape
    if is_one and x.type == TensorType.FLOAT32 and not graph.input(1).is_constant:
        graph.result(_lower_one_exponent(graph, x, y))
        return
    if is_one and not graph.input(1).is_constant:
        graph.result(graph.reshape(_lower_one_integer(graph, x, y), graph.output().shape))
        return
    exponent = _whole(graph.known(1)) if is_one else 0
    if exponent >= 1:
        power = _lower_integer_power(graph, x, exponent)
        if exponent > 1 and x.type == TensorType.FLOAT32:
            power = graph.map("finite", power)
        graph.result(graph.reshape(power, graph.output().shape))
    elif x.type == TensorType.FLOAT32:
        graph.result(graph.map("pow", x, y))
    else:
        graph.result(_lower_power(graph, x, y))


def _lower_one_exponent(graph: Lowering, x: View, y: View) -> View:
    """That of floats where it is computed: it may turn out to be an integer, or as good as one."""
    zero, most, half = (graph.array(np.array(number, np.float32)) for number in (0, 1e-5, 0.5))
    distance = ("abs", ("sub", 0, ("round", 0)))
    whole = graph.map(("select", ("less", distance, 1), ("round", 0), 2), y, most, zero)
    exponent = graph.map(("select", ("less", 0, 1), 1, 2), half, whole, y)
    power = graph.map("pow", x, exponent)
    squared = graph.array(np.array(1.5, np.float32))
    clamped = ("select", ("less", 1, 2), ("finite", 0), 0)
    return graph.reshape(graph.map(clamped, power, squared, whole), graph.output().shape)


def _lower_one_integer(graph: Lowering, x: View, y: View) -> View:
    """The same of int32, which wraps. Exponents of more bits than most have are left to the reference kernel."""
    zero, one = (graph.array(np.array(number, np.int32)) for number in (0, 1))
    power, result = x, one
    exponent = _allowed(graph, y, (1 << BITS) - 1)
    for bit in range(BITS):
        operands = exponent, graph.array(np.array(1 << bit, np.int32)), zero, result, power
        result = graph.map(("select", ("notequal", ("and", 0, 1), 2), ("mul", 3, 4), 3), *operands)
        power = graph.map("square", power)
    return result


def _allowed(graph: Lowering, y: View, most: int = 2**31 - 1) -> View:
    """Exponents. A negative one is a fault, and so is one that is greater than what is said."""
    zero, one, greatest = (graph.array(np.array(number, np.int32)) for number in (0, 1, most))
    allowed = graph.map(("select", ("or", ("less", 0, 1), ("less", 3, 0)), 1, 2), y, zero, one, greatest)
    return graph.map("mul", y, graph.kernel("nonzero", allowed, shape=y.shape, type=y.type))


def _lower_integer_power(graph: Lowering, x: View, exponent: int) -> View:
    if exponent == 1:
        return x
    power = graph.map("square", _lower_integer_power(graph, x, exponent // 2))
    return graph.map("mul", x, power) if exponent % 2 else power


def _lower_power(graph: Lowering, x: View, y: View) -> View:
    """By squaring and multiplying in float64, where all that fits int32 is exact. Exponents over 31 are all alike, but
    for -1, of which it counts whether they are even."""
    zero, one, most = (graph.array(np.array(number, np.int32)) for number in (0, 1, 32))
    few = ("select", ("less", 0, 1), 0, ("add", 1, ("and", 0, 2)))
    exponent = graph.map(few, _allowed(graph, y), most, one)
    power = graph.cast(x, TensorType.FLOAT64)
    result = graph.array(np.ones(()))
    for bit in range(6):
        is_set = ("notequal", ("and", 0, 1), 2)
        operands = exponent, graph.array(np.array(1 << bit, np.int32)), zero, result, power
        result = graph.map(("select", is_set, ("mul", 3, 4), 3), *operands, type=TensorType.FLOAT64)
        power = graph.map("square", power)
    least, limit = graph.array(np.array(-(2**31), np.int32)), graph.array(np.array(2.0**31))
    fits = ("less", ("abs", 0), 1)
    return graph.map(("select", fits, ("toi32", 0), 2), result, limit, least, type=TensorType.INT32)
