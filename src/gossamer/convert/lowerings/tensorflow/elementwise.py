"""Functions of each element: arithmetic, activations and the functions of mathematics.

Operands broadcast. Where TFLite's operator does not have their type, they are cast to one that it has and the result is
cast back (`gossamer.convert.blocks.elementwise.widened`); complex numbers are computed by their parts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gossamer.convert.blocks import special
from gossamer.convert.blocks.complex_numbers import COMPLEX, complex_arithmetic
from gossamer.convert.blocks.elementwise import widened
from gossamer.convert.blocks.shapes import cast, reshape
from gossamer.convert.graph import Graph, Value
from gossamer.convert.lowerings.tensorflow import Call, lowers
from gossamer.schema.enums import TensorType

T = TensorType

SAME = {
    "Abs": "ABS",
    "Add": "ADD",
    "AddV2": "ADD",
    "Ceil": "CEIL",
    "Cos": "COS",
    "Div": "DIV",
    "Elu": "ELU",
    "Exp": "EXP",
    "Floor": "FLOOR",
    "FloorDiv": "FLOOR_DIV",
    "FloorMod": "FLOOR_MOD",
    "Log": "LOG",
    "Maximum": "MAXIMUM",
    "Minimum": "MINIMUM",
    "Mul": "MUL",
    "Neg": "NEG",
    "RealDiv": "DIV",
    "Relu": "RELU",
    "Relu6": "RELU6",
    "Rint": "ROUND",
    "Round": "ROUND",
    "Rsqrt": "RSQRT",
    "Sigmoid": "LOGISTIC",
    "Sign": "SIGN",
    "Sin": "SIN",
    "Sqrt": "SQRT",
    "Square": "SQUARE",
    "SquaredDifference": "SQUARED_DIFFERENCE",
    "Sub": "SUB",
    "Tanh": "TANH",
    "TruncateDiv": "DIV",
}
"""Operators that TFLite has under another name."""

Lowering = Callable[..., Value]


def _abs(graph: Graph, x: Value) -> Value:
    return graph.add("MAXIMUM", x, graph.add("NEG", x)) if x.type == T.INT64 else widened(graph, "ABS", x)


def _sign(graph: Graph, x: Value) -> Value:
    zero = np.zeros((), x.dtype)
    above, below = (graph.add("CAST", graph.add(op, x, zero), type=x.type) for op in ("GREATER", "LESS"))
    return graph.add("SUB", above, below)


def _square(graph: Graph, x: Value) -> Value:
    return widened(graph, "MUL", x, x)


def _squared_difference(graph: Graph, x: Value, y: Value) -> Value:
    return _square(graph, widened(graph, "SUB", x, y))


def _relu(graph: Graph, x: Value) -> Value:
    return widened(graph, "MAXIMUM", x, np.zeros((), x.dtype))


def _relu6(graph: Graph, x: Value) -> Value:
    return widened(graph, "MINIMUM", _relu(graph, x), np.full((), 6, x.dtype))


def _itself(graph: Graph, x: Value) -> Value:
    return x


WHOLE: dict[str, Lowering] = {
    "Relu": _relu,
    "Relu6": _relu6,
    "Rint": _itself,
    "Round": _itself,
    "Square": _square,
}
"""What becomes of integers where TFLite has the operator for floats alone."""

WIDE: dict[str, Lowering] = {"Abs": _abs, "Sign": _sign, "SquaredDifference": _squared_difference}
"""What becomes of int64 where TFLite's operator has none."""


@lowers(*SAME)
def same(call: Call) -> Value:
    values = call.values()
    first = values[0]
    if first.type in COMPLEX:
        return complex_arithmetic(call.graph, call.op, values)
    if first.type in (T.INT64, T.UINT32, T.UINT64) and call.op in WIDE:
        return WIDE[call.op](call.graph, *values)
    if first.dtype.kind in "iu" and call.op in WHOLE:
        return WHOLE[call.op](call.graph, *values)
    return widened(call.graph, SAME[call.op], *values)


FLOATING: dict[str, Lowering] = {
    "Acos": special.acos,
    "Acosh": special.acosh,
    "Asin": special.asin,
    "Asinh": special.asinh,
    "Atan": special.atan,
    "Atan2": special.atan2,
    "Atanh": special.atanh,
    "BesselI0e": special.bessel_i0e,
    "BesselI1e": special.bessel_i1e,
    "Cosh": special.cosh,
    "Digamma": special.digamma,
    "Erf": special.erf,
    "Erfc": special.erfc,
    "Erfinv": special.erfinv,
    "Expm1": special.expm1,
    "Lgamma": special.lgamma,
    "Log1p": special.log1p,
    "Ndtri": special.ndtri,
    "Selu": special.selu,
    "Sinh": special.sinh,
    "Softplus": special.softplus,
    "Softsign": special.softsign,
    "Tan": special.tan,
}
"""Operators that are made of several of TFLite's, which have float32."""


@lowers(*FLOATING)
def floating(call: Call) -> Value:
    return in_float32(call.graph, FLOATING[call.op], *call.values())


def in_float32(graph: Graph, function: Lowering, *operands: Value) -> Value:
    """A function of float32 of operands of another type, the result of theirs."""
    return cast(graph, function(graph, *[cast(graph, x, T.FLOAT32) for x in operands]), operands[0].type)


@lowers("BesselI0", "BesselI1")
def bessel(call: Call) -> Value:
    scaled = special.bessel_i0e if call.op == "BesselI0" else special.bessel_i1e

    def unscaled(graph: Graph, x: Value) -> Value:
        return graph.add("MUL", scaled(graph, x), graph.add("EXP", graph.add("ABS", x)))

    return in_float32(call.graph, unscaled, call.value(0))


@lowers("LeakyRelu")
def leaky_relu(call: Call) -> Value:
    return widened(call.graph, "LEAKY_RELU", call.value(0), alpha=call.attributes.float("alpha", 0.2))


@lowers("Inv", "Reciprocal")
def reciprocal(call: Call) -> Value:
    x = call.value(0)
    if x.type in COMPLEX:
        return complex_arithmetic(call.graph, "RealDiv", [call.graph.constant(np.ones((), x.dtype)), x])
    return widened(call.graph, "DIV", np.ones((), x.dtype), x)


@lowers("AddN", "AccumulateNV2")
def add_n(call: Call) -> Value:
    values = call.values()
    if len(values) == 1:
        return values[0]
    if values[0].type in COMPLEX:
        total = values[0]
        for value in values[1:]:
            total = complex_arithmetic(call.graph, "Add", [total, value])
        return total
    return widened(call.graph, "ADD_N", *values)


POWERS = {1: (), 2: ("SQUARE",), 0.5: ("SQRT",), -0.5: ("RSQRT",)}
"""Powers that are other operators."""


@lowers("Pow")
def power(call: Call) -> Value:
    x, y = call.values()
    exponent = y.data
    if exponent is not None and exponent.size == 1 and exponent.ndim <= x.rank:
        number = float(exponent.reshape(-1)[0])
        if number == 2 and x.dtype.kind in "iu":
            return _square(call.graph, x)
        if number in POWERS and (number == 1 or x.dtype.kind not in "iu") and x.type not in COMPLEX:
            for op in POWERS[number]:
                x = widened(call.graph, op, x)
            return x
    return widened(call.graph, "POW", x, y)


@lowers("ClipByValue")
def clip(call: Call) -> Value:
    x, low, high = call.values()
    return widened(call.graph, "MAXIMUM", widened(call.graph, "MINIMUM", x, high), low)


@lowers("BiasAdd", "BiasAddV1")
def bias_add(call: Call) -> Value:
    """``NCHW`` stands for every layout in which the channels come second."""
    x, bias = call.values()
    if call.attributes.text("data_format", "NHWC") == "NCHW" and x.rank > 2:
        bias = reshape(call.graph, bias, [bias.size(0), *[1] * (x.rank - 2)])
    return widened(call.graph, "ADD", x, bias)


# -- divisions


@lowers("Mod", "TruncateMod")
def truncated_remainder(call: Call) -> Value:
    """What is left of a division whose quotient is rounded to zero: it has the sign of the dividend."""
    graph, (x, y) = call.graph, call.values()
    if x.dtype.kind == "u":
        return widened(graph, "FLOOR_MOD", x, y)
    if x.dtype.kind == "i" and x.type != T.INT64:
        return widened(graph, "SUB", x, widened(graph, "MUL", widened(graph, "DIV", x, y), y))
    own = x.type
    x, y = (x, y) if own == T.INT64 else (cast(graph, x, T.FLOAT32), cast(graph, y, T.FLOAT32))
    left = graph.add("FLOOR_MOD", _abs(graph, x), _abs(graph, y))
    negative = graph.add("LESS", x, np.zeros((), x.dtype))
    return cast(graph, graph.add("SELECT_V2", negative, graph.add("NEG", left), left), own)


GUARDED: dict[str, tuple[str, int]] = {
    "DivNoNan": ("DIV", 1),
    "MulNoNan": ("MUL", 1),
    "Xdivy": ("DIV", 0),
    "Xlogy": ("LOG", 0),
    "Xlog1py": ("LOG", 0),
}
"""Products and quotients that are 0 where one operand is, whatever the other one: the operator and which operand."""


@lowers(*GUARDED)
def guarded(call: Call) -> Value:
    graph, (x, y) = call.graph, call.values()
    op, position = GUARDED[call.op]
    if x.type in COMPLEX:
        zero = widened(graph, "EQUAL", graph.add("COMPLEX_ABS", (x, y)[position]), 0.0)
        result = complex_arithmetic(graph, "Mul" if op == "MUL" else "RealDiv", [x, y])
    else:
        zero = widened(graph, "EQUAL", (x, y)[position], np.zeros((), x.dtype))
        second = widened(graph, "ADD", y, np.ones((), y.dtype)) if call.op == "Xlog1py" else y
        if op == "LOG":
            op, second = "MUL", widened(graph, "LOG", second)
        result = widened(graph, op, x, second)
    return graph.add("SELECT_V2", zero, graph.constant(np.zeros((), result.dtype), result.type), result)


@lowers("NextAfter")
def next_after(call: Call) -> Value:
    """The number next to x towards y. Floats without their sign follow each other as their bits do as integers."""
    graph, f = call.graph, call.add
    x, y = (cast(graph, value, T.FLOAT32) for value in call.values())
    bits = f("BITCAST", x, type=T.INT32)
    grows = f("EQUAL", f("GREATER", y, x), f("GREATER", x, 0.0))
    step = f("SELECT_V2", grows, np.array(1, np.int32), np.array(-1, np.int32))
    next_ = f("BITCAST", f("ADD", bits, step), type=T.FLOAT32)
    least = np.nextafter(np.float32(0), np.float32(1))
    first = f("SELECT_V2", f("GREATER", y, 0.0), np.array(least), np.array(-least))
    next_ = f("SELECT_V2", f("EQUAL", x, 0.0), first, next_)
    next_ = f("SELECT_V2", f("EQUAL", x, y), y, next_)
    ordered = f("LOGICAL_AND", f("EQUAL", x, x), f("EQUAL", y, y))
    return cast(graph, f("SELECT_V2", ordered, next_, math.nan), call.value(0).type)


# -- types


@lowers("Cast")
def cast_(call: Call) -> Value:
    return cast(call.graph, call.value(0), call.attributes.type("DstT"))


@lowers("Bitcast")
def bitcast(call: Call) -> Value:
    x, type = call.value(0), call.attributes.type("type")
    return x if x.type == type else call.add("BITCAST", x, type=type)


# -- gradients, as graphs have them that differentiate


def _times(graph: Graph, *factors: Any) -> Value:
    product = graph.value(factors[0])
    for factor in factors[1:]:
        product = graph.add("MUL", product, factor)
    return product


def _where_positive(graph: Graph, x: Value, yes: Any, no: Any) -> Value:
    return graph.add("SELECT_V2", graph.add("GREATER", x, 0.0), yes, no)


def _relu_grad(graph: Graph, gradient: Value, x: Value) -> Value:
    return _where_positive(graph, x, gradient, 0.0)


def _relu6_grad(graph: Graph, gradient: Value, x: Value) -> Value:
    return graph.add("SELECT_V2", graph.add("LESS", x, 6.0), _relu_grad(graph, gradient, x), 0.0)


def _elu_grad(graph: Graph, gradient: Value, y: Value) -> Value:
    return _where_positive(graph, y, gradient, _times(graph, gradient, graph.add("ADD", y, 1.0)))


def _selu_grad(graph: Graph, gradient: Value, y: Value) -> Value:
    below = graph.add("ADD", y, special.SELU_SCALE * special.SELU_ALPHA)
    return _where_positive(graph, y, _times(graph, gradient, special.SELU_SCALE), _times(graph, gradient, below))


def _softplus_grad(graph: Graph, gradient: Value, x: Value) -> Value:
    return _times(graph, gradient, graph.add("LOGISTIC", x))


def _softsign_grad(graph: Graph, gradient: Value, x: Value) -> Value:
    return graph.add("DIV", gradient, graph.add("SQUARE", graph.add("ADD", graph.add("ABS", x), 1.0)))


def _sigmoid_grad(graph: Graph, y: Value, gradient: Value) -> Value:
    return _times(graph, _times(graph, gradient, y), graph.add("SUB", 1.0, y))


def _tanh_grad(graph: Graph, y: Value, gradient: Value) -> Value:
    return _times(graph, gradient, graph.add("SUB", 1.0, graph.add("SQUARE", y)))


def _sqrt_grad(graph: Graph, y: Value, gradient: Value) -> Value:
    return graph.add("DIV", _times(graph, gradient, 0.5), y)


def _rsqrt_grad(graph: Graph, y: Value, gradient: Value) -> Value:
    return _times(graph, gradient, -0.5, y, graph.add("SQUARE", y))


def _reciprocal_grad(graph: Graph, y: Value, gradient: Value) -> Value:
    return _times(graph, gradient, graph.add("NEG", graph.add("SQUARE", y)))


GRADIENTS: dict[str, Lowering] = {
    "EluGrad": _elu_grad,
    "InvGrad": _reciprocal_grad,
    "ReciprocalGrad": _reciprocal_grad,
    "Relu6Grad": _relu6_grad,
    "ReluGrad": _relu_grad,
    "RsqrtGrad": _rsqrt_grad,
    "SeluGrad": _selu_grad,
    "SigmoidGrad": _sigmoid_grad,
    "SoftplusGrad": _softplus_grad,
    "SoftsignGrad": _softsign_grad,
    "SqrtGrad": _sqrt_grad,
    "TanhGrad": _tanh_grad,
}


@lowers(*GRADIENTS)
def gradient(call: Call) -> Value:
    return in_float32(call.graph, GRADIENTS[call.op], *call.values())


@lowers("LeakyReluGrad")
def leaky_relu_grad(call: Call) -> Value:
    alpha = call.attributes.float("alpha", 0.2)

    def of(graph: Graph, given: Value, x: Value) -> Value:
        return _where_positive(graph, x, given, _times(graph, given, alpha))

    return in_float32(call.graph, of, *call.values())
