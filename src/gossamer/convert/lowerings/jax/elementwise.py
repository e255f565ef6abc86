"""Arithmetic, comparisons, logic and functions of single elements."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from gossamer.convert.blocks import special
from gossamer.convert.blocks.complex_numbers import complex_arithmetic, conjugate, of_parts
from gossamer.convert.blocks.elementwise import widened
from gossamer.convert.blocks.indexing import broadcast_together
from gossamer.convert.blocks.reductions import truth
from gossamer.convert.blocks.shapes import cast
from gossamer.convert.graph import Graph, Value, refuse
from gossamer.convert.lowerings.jax import Call, is_float, like, lowers
from gossamer.schema.enums import TensorType

T = TensorType

# -- functions of one value

UNARY = {
    "abs": "ABS",
    "cos": "COS",
    "exp": "EXP",
    "log": "LOG",
    "logistic": "LOGISTIC",
    "neg": "NEG",
    "rsqrt": "RSQRT",
    "sign": "SIGN",
    "sin": "SIN",
    "sqrt": "SQRT",
    "tanh": "TANH",
}

FUNCTIONS: dict[str, Callable[[Graph, Value], Value]] = {
    "acos": special.acos,
    "acosh": special.acosh,
    "asin": special.asin,
    "asinh": special.asinh,
    "atan": special.atan,
    "atanh": special.atanh,
    "bessel_i0e": special.bessel_i0e,
    "bessel_i1e": special.bessel_i1e,
    "cosh": special.cosh,
    "digamma": special.digamma,
    "erf": special.erf,
    "erf_inv": special.erfinv,
    "erfc": special.erfc,
    "expm1": special.expm1,
    "lgamma": special.lgamma,
    "log1p": special.log1p,
    "sinh": special.sinh,
    "tan": special.tan,
    "cbrt": lambda graph, x: graph.add("MUL", graph.add("SIGN", x), graph.add("POW", graph.add("ABS", x), 1 / 3)),
    "exp2": lambda graph, x: graph.add("EXP", graph.add("MUL", x, math.log(2))),
    "is_finite": lambda graph, x: graph.add("LESS", graph.add("ABS", x), math.inf),
}

COMPLEX = {
    "add": "Add",
    "add_any": "Add",
    "div": "Div",
    "exp": "Exp",
    "log": "Log",
    "mul": "Mul",
    "neg": "Neg",
    "rsqrt": "Rsqrt",
    "sqrt": "Sqrt",
    "square": "Square",
    "sub": "Sub",
}
"""TensorFlow's names of what is computed with complex numbers."""


@lowers(*UNARY)
def unary(call: Call) -> Value:
    x = call.operand(0)
    if x.type == T.COMPLEX64:
        if call.name == "abs":
            return call.add("COMPLEX_ABS", x)
        return complex_arithmetic(call.graph, COMPLEX.get(call.name, call.name), [x])
    return widened(call.graph, UNARY[call.name], x)


@lowers(*FUNCTIONS)
def function(call: Call) -> Value:
    return FUNCTIONS[call.name](call.graph, call.operand(0))


MAPPED = {"ceil": "CEIL", "floor": "FLOOR", "imag": "IMAG", "real": "REAL"}
"""Of floats or complex numbers alone."""


@lowers(*MAPPED)
def mapped(call: Call) -> Value:
    return call.add(MAPPED[call.name], call.operand(0))


@lowers("round")
def round_(call: Call) -> Value:
    """To the nearest integer; halves to even ones, or, as the method says, away from zero."""
    x = call.operand(0)
    if int(call.params["rounding_method"]) == 1:
        return call.add("ROUND", x)
    below_half = float(np.nextafter(np.float32(0.5), np.float32(0)))
    return call.add("MUL", call.add("SIGN", x), call.add("FLOOR", call.add("ADD", call.add("ABS", x), below_half)))


@lowers("square")
def square(call: Call) -> Value:
    x = call.operand(0)
    return call.add("SQUARE", x) if is_float(x) else widened(call.graph, "MUL", x, x)


@lowers("integer_pow")
def integer_pow(call: Call) -> Value:
    x, exponent = call.operand(0), int(call.params["y"])
    if not exponent:
        return like(call.graph, x, 1)
    power = _power(call.graph, x, abs(exponent))
    return power if exponent > 0 else call.add("DIV", 1.0, power)


def _power(graph: Graph, x: Value, exponent: int) -> Value:
    """By squaring."""
    if exponent == 1:
        return x
    half = _power(graph, x, exponent // 2)
    square = graph.add("SQUARE", half) if is_float(x) else widened(graph, "MUL", half, half)
    return widened(graph, "MUL", square, x) if exponent % 2 else square


# -- functions of two and three

ARITHMETIC = {"add": "ADD", "add_any": "ADD", "sub": "SUB", "mul": "MUL", "div": "DIV", "max": "MAXIMUM"}
ARITHMETIC |= {"min": "MINIMUM"}

LOGICAL = {"ADD": "LOGICAL_OR", "MAXIMUM": "LOGICAL_OR", "MUL": "LOGICAL_AND", "MINIMUM": "LOGICAL_AND"}

NEUTRAL = {"MAXIMUM": -math.inf, "MINIMUM": math.inf}


@lowers(*ARITHMETIC)
def arithmetic(call: Call) -> Value:
    op, (x, y) = ARITHMETIC[call.name], call.operands()
    if call.type == T.COMPLEX64:
        return complex_arithmetic(call.graph, COMPLEX[call.name], broadcast_together(call.graph, [x, y]))
    if call.type == T.BOOL:
        return call.add(LOGICAL[op], x, y)
    if op in NEUTRAL:
        for one, other in ((x, y), (y, x)):
            if other.data is not None and is_float(x) and (other.data == NEUTRAL[op]).all():
                return one
    if op == "DIV" and not is_float(x):
        return quotient(call.graph, x, y)
    return widened(call.graph, op, x, y)


def quotient(graph: Graph, x: Value, y: Value) -> Value:
    """Integers divided towards zero. What is divided by 0 is -1, as XLA has it, and no error."""
    if y.data is not None and y.data.all():
        return widened(graph, "DIV", x, y)
    nothing = widened(graph, "EQUAL", y, like(graph, y, 0))
    found = widened(graph, "DIV", x, graph.add("SELECT_V2", nothing, like(graph, y, 1), y))
    return graph.add("SELECT_V2", nothing, graph.constant(np.array(-1).astype(x.dtype), x.type), found)


@lowers("pow")
def pow_(call: Call) -> Value:
    x, y = call.operands()
    return widened(call.graph, "POW", x, cast(call.graph, y, x.type))


@lowers("rem")
def rem(call: Call) -> Value:
    """What is left of a division towards zero; exact, where the quotient would be rounded."""
    x, y = call.operands()
    if not is_float(x):
        return widened(call.graph, "SUB", x, widened(call.graph, "MUL", quotient(call.graph, x, y), y))
    rest = call.add("FLOOR_MOD", call.add("ABS", x), call.add("ABS", y))
    return call.add("SELECT_V2", call.add("LESS", x, 0.0), call.add("NEG", rest), rest)


@lowers("atan2")
def atan2(call: Call) -> Value:
    return special.atan2(call.graph, *call.operands())


@lowers("clamp")
def clamp(call: Call) -> Value:
    low, x, high = call.operands()
    return widened(call.graph, "MINIMUM", widened(call.graph, "MAXIMUM", x, low), high)


COMPARED = {"eq": "EQUAL", "ne": "NOT_EQUAL", "lt": "LESS", "le": "LESS_EQUAL", "gt": "GREATER", "ge": "GREATER_EQUAL"}
COMPARED |= {"eq_to": "EQUAL", "lt_to": "LESS", "le_to": "LESS_EQUAL"}


@lowers(*COMPARED)
def compared(call: Call) -> Value:
    x, y = call.operands()
    if x.type == T.COMPLEX64:
        parts = [call.add("EQUAL", call.add(part, x), call.add(part, y)) for part in ("REAL", "IMAG")]
        same = call.add("LOGICAL_AND", *parts)
        return same if call.name == "eq" else call.add("LOGICAL_NOT", same)
    return widened(call.graph, COMPARED[call.name], x, y)


@lowers("select_n")
def select_n(call: Call) -> Value:
    """The operand whose number is the first one's element."""
    which, *cases = call.operands()
    if which.type == T.BOOL:
        return call.add("SELECT_V2", which, cases[-1], cases[0])
    found = cases[-1]
    for number in range(len(cases) - 2, -1, -1):
        is_it = call.add("EQUAL", which, like(call.graph, which, number))
        found = call.add("SELECT_V2", is_it, cases[number], found)
    return found


# -- bits


@lowers("and", "or", "xor")
def logic(call: Call) -> Value:
    x, y = call.operands()
    if call.type == T.BOOL:
        return call.add("NOT_EQUAL" if call.name == "xor" else f"LOGICAL_{call.name.upper()}", x, y)
    if call.name == "xor":
        return widened(call.graph, "BITWISE_XOR", x, y)
    both = call.add("STABLEHLO_AND", *broadcast_together(call.graph, [x, y]))
    return both if call.name == "and" else widened(call.graph, "SUB", widened(call.graph, "ADD", x, y), both)


@lowers("not")
def not_(call: Call) -> Value:
    x = call.operand(0)
    if x.type == T.BOOL:
        return call.add("LOGICAL_NOT", x)
    return widened(call.graph, "SUB", _ones(call.graph, x), x)


def _ones(graph: Graph, x: Value) -> Value:
    return graph.constant(np.array(~np.zeros((), x.dtype)), x.type)


@lowers("shift_left")
def shift_left(call: Call) -> Value:
    x, places = call.operands()
    power = call.add("POW", 2, cast(call.graph, places, T.INT32))
    return widened(call.graph, "MUL", x, cast(call.graph, power, x.type))


@lowers("shift_right_arithmetic", "shift_right_logical")
def shift_right(call: Call) -> Value:
    """RIGHT_SHIFT hands signs on; where zeros are to come in, they are cut off afterwards."""
    x, places = call.operands()
    shifted = widened(call.graph, "RIGHT_SHIFT", x, places)
    if call.name.endswith("arithmetic") or x.dtype.kind == "u":
        return shifted
    if places.data is None:
        refuse("shifts zeros in by as many places as only values tell; make the operand unsigned")
    bits = 8 * x.dtype.itemsize
    masks = [np.array((1 << (bits - int(n))) - 1).astype(x.dtype) if n else ~np.zeros((), x.dtype)
             for n in places.data.reshape(-1)]  # fmt: skip
    mask = call.graph.constant(np.array(masks, x.dtype).reshape(places.data.shape), x.type)
    return call.add("STABLEHLO_AND", *broadcast_together(call.graph, [shifted, mask]))


# -- types


@lowers("convert_element_type")
def convert_element_type(call: Call) -> Value:
    """To bool: whether elements are not zero."""
    x = call.operand(0)
    if x.type == T.COMPLEX64 and call.type != T.COMPLEX64:
        x = call.add("REAL", x)
    return truth(call.graph, x) if call.type == T.BOOL else cast(call.graph, x, call.type)


@lowers("reduce_precision")
def reduce_precision(call: Call) -> Value:
    """Rounded to what fewer bits have."""
    x, bits = call.operand(0), (int(call.params["exponent_bits"]), int(call.params["mantissa_bits"]))
    if bits == (8, 23):
        return x
    types = {(8, 7): T.BFLOAT16, (5, 10): T.FLOAT16}
    if bits not in types:
        refuse(f"floats of {bits[0]} bits of exponent and {bits[1]} of mantissa")
    return cast(call.graph, cast(call.graph, x, types[bits]), x.type)


# -- complex numbers


@lowers("complex")
def complex_(call: Call) -> Value:
    return of_parts(call.graph, *call.operands())


@lowers("conj")
def conj(call: Call) -> Value:
    x = call.operand(0)
    return conjugate(call.graph, x) if x.type == T.COMPLEX64 else of_parts(call.graph, x, like(call.graph, x, 0))
