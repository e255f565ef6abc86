"""Arithmetic, comparisons and functions of single elements, with torch's rules for types.

Results have the type that torch says, so arithmetic casts its operands to it; comparisons cast theirs to what torch
would compare them in.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gossamer.convert.blocks import special
from gossamer.convert.blocks.elementwise import widened
from gossamer.convert.blocks.indexing import broadcast_to, broadcast_together
from gossamer.convert.blocks.reductions import truth
from gossamer.convert.blocks.shapes import cast
from gossamer.convert.graph import Value, refuse
from gossamer.convert.lowerings.torch import Call, Number, is_float, lowers, promoted
from gossamer.convert.lowerings.torch.functions import converted, truncated
from gossamer.schema.enums import TensorType

_ARITHMETIC = {"mul": "MUL", "multiply": "MUL", "minimum": "MINIMUM", "maximum": "MAXIMUM"}
_ARITHMETIC |= {"fmin": "MINIMUM", "fmax": "MAXIMUM"}

_COMPARED = {"eq": "EQUAL", "ne": "NOT_EQUAL", "lt": "LESS", "le": "LESS_EQUAL", "gt": "GREATER", "ge": "GREATER_EQUAL"}
_COMPARED |= {
    "greater": "GREATER",
    "greater_equal": "GREATER_EQUAL",
    "less": "LESS",
    "less_equal": "LESS_EQUAL",
    "not_equal": "NOT_EQUAL",
}


@lowers(*[f"aten.{name}" for name in _ARITHMETIC])
def arithmetic(call: Call, self: Value, other: Number) -> Value:
    if call.type == TensorType.BOOL and _ARITHMETIC[call.packet[5:]] in ("MUL", "MINIMUM"):
        return call.add("LOGICAL_AND", call.operand(self), call.operand(other))
    if call.type == TensorType.BOOL:
        return call.add("LOGICAL_OR", call.operand(self), call.operand(other))
    return widened(call.graph, _ARITHMETIC[call.packet[5:]], call.operand(self), call.operand(other))


@lowers("aten.add", "aten.sub", "aten.subtract")
def add(call: Call, self: Value, other: Number, alpha: Number = 1) -> Value:
    return _sum(call, "ADD" if call.packet == "aten.add" else "SUB", self, other, alpha)


@lowers("aten.rsub")
def rsub(call: Call, self: Value, other: Number, alpha: Number = 1) -> Value:
    return _sum(call, "SUB", other, self, alpha)


def _sum(call: Call, op: str, x: Number, y: Number, alpha: Number) -> Value:
    if call.type == TensorType.BOOL:
        return call.add("LOGICAL_OR", call.operand(x), call.operand(y)) if alpha else call.operand(x)
    right = call.operand(y)
    if isinstance(alpha, Value) or alpha != 1:
        right = widened(call.graph, "MUL", right, call.operand(alpha))
    return widened(call.graph, op, call.operand(x), right)


@lowers("aten.div", "aten.divide", "aten.true_divide")
def div(call: Call, self: Number, other: Number, rounding_mode: str | None = None) -> Value:
    x, y = call.operand(self), call.operand(other)
    if rounding_mode is None:
        return widened(call.graph, "DIV", x, y)
    return floored(call, x, y) if rounding_mode == "floor" else towards_zero(call, x, y)


@lowers("aten.floor_divide")
def floor_divide(call: Call, self: Number, other: Number) -> Value:
    return floored(call, call.operand(self), call.operand(other))


def floored(call: Call, x: Value, y: Value) -> Value:
    """The quotient, rounded down."""
    if is_float(x):
        return call.add("FLOOR", call.add("DIV", x, y))
    return widened(call.graph, "FLOOR_DIV", x, y)


def towards_zero(call: Call, x: Value, y: Value) -> Value:
    """The quotient, rounded towards zero."""
    if is_float(x):
        return truncated(call, call.add("DIV", x, y))
    if x.type == TensorType.INT64:
        return cast(call.graph, call.add("DIV", _int32(call, x), _int32(call, y)), x.type)
    return widened(call.graph, "DIV", x, y)


def _int32(call: Call, x: Value) -> Value:
    return cast(call.graph, x, TensorType.INT32)


@lowers("aten.remainder")
def remainder(call: Call, self: Number, other: Number) -> Value:
    return widened(call.graph, "FLOOR_MOD", call.operand(self), call.operand(other))


@lowers("aten.fmod")
def fmod(call: Call, self: Value, other: Number) -> Value:
    x, y = call.operand(self), call.operand(other)
    quotient = towards_zero(call, x, y)
    return widened(call.graph, "SUB", x, widened(call.graph, "MUL", quotient, y))


@lowers(*[f"aten.{name}" for name in _COMPARED])
def compared(call: Call, self: Value, other: Number) -> Value:
    type = promoted(self, other)
    op = _COMPARED[call.packet[5:]]
    x, y = call.operand(self, type), call.operand(other, type)
    return widened(call.graph, op, x, y)


@lowers("aten.isclose")
def isclose(
    call: Call, self: Value, other: Value, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Value:
    x, y = cast(call.graph, self, TensorType.FLOAT32), cast(call.graph, other, TensorType.FLOAT32)
    bound = call.add("ADD", call.add("MUL", call.add("ABS", y), rtol), atol)
    near = call.add("LESS_EQUAL", call.add("ABS", call.add("SUB", x, y)), bound)
    near = call.add("LOGICAL_OR", near, call.add("EQUAL", x, y))
    if equal_nan:
        both = call.add("LOGICAL_AND", call.add("NOT_EQUAL", x, x), call.add("NOT_EQUAL", y, y))
        near = call.add("LOGICAL_OR", near, both)
    return near


_LOGICAL = {"and": "LOGICAL_AND", "or": "LOGICAL_OR", "xor": "NOT_EQUAL"}


@lowers("aten.logical_and", "aten.logical_or", "aten.logical_xor")
def logical(call: Call, self: Value, other: Value) -> Value:
    x, y = truth(call.graph, self), truth(call.graph, other)
    return call.add(_LOGICAL[call.packet.rpartition("_")[2]], x, y)


@lowers("aten.logical_not")
def logical_not(call: Call, self: Value) -> Value:
    return call.add("LOGICAL_NOT", truth(call.graph, self))


@lowers("aten.bitwise_not")
def bitwise_not(call: Call, self: Value) -> Value:
    if self.type == TensorType.BOOL:
        return call.add("LOGICAL_NOT", self)
    return widened(call.graph, "SUB", np.array(-1).astype(self.dtype), self)


@lowers("aten.bitwise_and", "aten.bitwise_or", "aten.bitwise_xor", "aten.__and__", "aten.__or__", "aten.__xor__")
def bitwise(call: Call, self: Number, other: Number) -> Value:
    name = call.packet.removeprefix("aten.").removeprefix("bitwise_").strip("_")
    x, y = call.operand(self), call.operand(other)
    if call.type == TensorType.BOOL:
        return call.add(_LOGICAL[name], x, y)
    if name == "xor":
        return widened(call.graph, "BITWISE_XOR", x, y)
    both = call.add("STABLEHLO_AND", *broadcast_together(call.graph, [x, y]))
    if name == "and":
        return both
    return widened(call.graph, "SUB", widened(call.graph, "ADD", x, y), both)


@lowers("aten.bitwise_left_shift", "aten.__lshift__")
def left_shift(call: Call, self: Number, other: Number) -> Value:
    x, y = call.operand(self), call.operand(other)
    power = call.add("POW", 2, cast(call.graph, y, TensorType.INT32))
    return widened(call.graph, "MUL", x, cast(call.graph, power, x.type))


@lowers("aten.bitwise_right_shift", "aten.__rshift__")
def right_shift(call: Call, self: Number, other: Number) -> Value:
    x, y = call.operand(self), call.operand(other)
    if x.type == TensorType.INT64:
        return cast(call.graph, call.add("RIGHT_SHIFT", _int32(call, x), _int32(call, y)), x.type)
    return call.add("RIGHT_SHIFT", x, y)


@lowers("aten.pow", "aten.float_power")
def pow(call: Call, self: Number, exponent: Number) -> Value:
    x = call.operand(self)
    if not isinstance(exponent, Value):
        if exponent in _POWERS and is_float(x):
            return _POWERS[exponent](call, x)
        if exponent == 2:
            return widened(call.graph, "MUL", x, x)
    return widened(call.graph, "POW", x, call.operand(exponent))


_POWERS: dict[float, Callable[[Call, Value], Value]] = {
    0.5: lambda c, x: c.add("SQRT", x),
    -0.5: lambda c, x: c.add("RSQRT", x),
    1: lambda c, x: x,
    2: lambda c, x: c.add("SQUARE", x),
    3: lambda c, x: c.add("MUL", c.add("SQUARE", x), x),
    -1: lambda c, x: c.add("DIV", 1.0, x),
}


@lowers("aten.ldexp")
def ldexp(call: Call, self: Value, other: Value) -> Value:
    return call.add("MUL", call.operand(self), call.add("POW", 2.0, call.operand(other)))


@lowers("aten.atan2", "aten.arctan2")
def atan2(call: Call, self: Value, other: Value) -> Value:
    return special.atan2(call.graph, call.operand(self), call.operand(other))


@lowers("aten.hypot")
def hypot(call: Call, self: Value, other: Value) -> Value:
    squares = [call.add("SQUARE", call.operand(x)) for x in (self, other)]
    return call.add("SQRT", call.add("ADD", *squares))


@lowers("aten.logaddexp", "aten.logaddexp2")
def logaddexp(call: Call, self: Value, other: Value) -> Value:
    unit = math.log(2) if call.packet.endswith("2") else 1.0
    x, y = call.operand(self), call.operand(other)
    gap = call.add("MUL", call.add("NEG", call.add("ABS", call.add("SUB", x, y))), unit)
    more = call.add("MUL", special.log1p(call.graph, call.add("EXP", gap)), 1 / unit)
    return call.add("ADD", call.add("MAXIMUM", x, y), more)


@lowers("aten.copysign")
def copysign(call: Call, self: Value, other: Number) -> Value:
    size, sign = call.add("ABS", call.operand(self)), call.operand(other)
    return call.add("SELECT_V2", call.add("LESS", sign, 0.0), call.add("NEG", size), size)


@lowers("aten.xlogy", "aten.special_xlogy", "aten.special_xlog1py")
def xlogy(call: Call, self: Number, other: Number) -> Value:
    x, y = call.operand(self), call.operand(other)
    log = special.log1p(call.graph, y) if call.packet.endswith("1py") else call.add("LOG", y)
    zero = call.add("EQUAL", x, 0.0)
    return call.add("SELECT_V2", zero, 0.0, call.add("MUL", x, log))


@lowers("aten.heaviside")
def heaviside(call: Call, self: Value, values: Value) -> Value:
    x = call.operand(self)
    one = cast(call.graph, widened(call.graph, "GREATER", x, np.zeros((), x.dtype)), x.type)
    return call.add("SELECT_V2", widened(call.graph, "EQUAL", x, np.zeros((), x.dtype)), call.operand(values), one)


@lowers("aten.lerp")
def lerp(call: Call, self: Value, end: Value, weight: Number) -> Value:
    x, y = call.operand(self), call.operand(end)
    return call.add("ADD", x, call.add("MUL", call.add("SUB", y, x), call.operand(weight)))


@lowers("aten.addcmul", "aten.addcdiv")
def addcmul(call: Call, self: Value, tensor1: Value, tensor2: Value, value: Number = 1) -> Value:
    op = "MUL" if call.packet == "aten.addcmul" else "DIV"
    change = widened(call.graph, op, call.operand(tensor1), call.operand(tensor2))
    if isinstance(value, Value) or value != 1:
        change = widened(call.graph, "MUL", change, call.operand(value))
    return widened(call.graph, "ADD", call.operand(self), change)


# -- bounds


@lowers("aten.clamp", "aten.clip")
def clamp(call: Call, self: Value, min: Number | None = None, max: Number | None = None) -> Value:
    x = call.operand(self)
    if is_float(x) and (min, max) in _BOUNDED:
        return call.add(_BOUNDED[min, max], x)
    x = x if min is None else widened(call.graph, "MAXIMUM", x, call.operand(min))
    return x if max is None else widened(call.graph, "MINIMUM", x, call.operand(max))


_BOUNDED: dict[Any, str] = {(0, None): "RELU", (0, 6): "RELU6", (-1, 1): "RELU_N1_TO_1", (0, 1): "RELU_0_TO_1"}


@lowers("aten.clamp_min")
def clamp_min(call: Call, self: Value, min: Number) -> Value:
    return clamp(call, self, min)


@lowers("aten.clamp_max")
def clamp_max(call: Call, self: Value, max: Number) -> Value:
    return clamp(call, self, None, max)


# -- choices


@lowers("aten.where")
def where(call: Call, condition: Value, self: Number, other: Number) -> Value:
    return call.add("SELECT_V2", truth(call.graph, condition), call.operand(self), call.operand(other))


@lowers("aten.masked_fill")
def masked_fill(call: Call, self: Value, mask: Value, value: Number) -> Value:
    return call.add("SELECT_V2", mask, call.operand(value, self.type), self)


@lowers("aten.fill", "aten.zero")
def fill(call: Call, self: Value, value: Number = 0) -> Value:
    return call.add("FILL", call.add("SHAPE", self), call.operand(value, self.type))


@lowers("aten.copy")
def copy(call: Call, self: Value, src: Value) -> Value:
    return broadcast_to(call.graph, converted(call, src, self.type), call.add("SHAPE", self))


@lowers("aten.bernoulli", "aten.normal", "aten.uniform", "aten.multinomial", "aten.cauchy", "aten.exponential")
@lowers("aten.geometric", "aten.log_normal", "aten.poisson", "aten.random", "aten.binomial")
def random(call: Call, *ignored: Any, **others: Any) -> Value:
    refuse("draws numbers at random as torch's generator has them, which no other has")
