"""Functions of mathematics that TFLite has no operator for, made of those that it has. All take and give float32.

Polynomials and their quotients are written lowest power first. Those of erf and erfc were fitted to the functions in
double precision (least squares with weights that even out the relative error); where others are from is said.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from gossamer.convert.blocks.indexing import broadcast_together
from gossamer.convert.blocks.shapes import size_vector
from gossamer.convert.graph import Graph, Value

SELU_ALPHA = 1.6732632423543772
SELU_SCALE = 1.0507009873554805


def polynomial(graph: Graph, x: Value, coefficients: Sequence[float]) -> Value:
    """The sum of ``coefficients[n] * x ** n``, by Horner's rule."""
    total = graph.add("MUL", x, float(coefficients[-1]))
    for coefficient in coefficients[-2:0:-1]:
        total = graph.add("MUL", graph.add("ADD", total, float(coefficient)), x)
    return graph.add("ADD", total, float(coefficients[0]))


# -- trigonometric and hyperbolic functions


def tan(graph: Graph, x: Value) -> Value:
    return graph.add("DIV", graph.add("SIN", x), graph.add("COS", x))


def asin(graph: Graph, x: Value) -> Value:
    return graph.add("ATAN2", x, _leg(graph, x))


def acos(graph: Graph, x: Value) -> Value:
    return graph.add("ATAN2", _leg(graph, x), x)


def atan(graph: Graph, x: Value) -> Value:
    return graph.add("ATAN2", x, graph.add("FILL", size_vector(graph, x), 1.0))


def atan2(graph: Graph, y: Value, x: Value) -> Value:
    """The angle of the point (x, y); the operands broadcast, which those of TFLite's operator do not."""
    return graph.add("ATAN2", *broadcast_together(graph, [y, x]))


def _leg(graph: Graph, x: Value) -> Value:
    """sqrt(1 - x * x)."""
    return graph.add("SQRT", graph.add("MUL", graph.add("SUB", 1.0, x), graph.add("ADD", x, 1.0)))


def sinh(graph: Graph, x: Value) -> Value:
    both = graph.add("SUB", graph.add("EXP", x), graph.add("EXP", graph.add("NEG", x)))
    return graph.add("MUL", both, 0.5)


def cosh(graph: Graph, x: Value) -> Value:
    both = graph.add("ADD", graph.add("EXP", x), graph.add("EXP", graph.add("NEG", x)))
    return graph.add("MUL", both, 0.5)


def asinh(graph: Graph, x: Value) -> Value:
    """sign(x) * log(abs(x) + sqrt(x * x + 1))."""
    size = graph.add("ABS", x)
    root = graph.add("SQRT", graph.add("ADD", graph.add("SQUARE", x), 1.0))
    return graph.add("MUL", graph.add("SIGN", x), graph.add("LOG", graph.add("ADD", size, root)))


def acosh(graph: Graph, x: Value) -> Value:
    root = graph.add("SQRT", graph.add("MUL", graph.add("SUB", x, 1.0), graph.add("ADD", x, 1.0)))
    return graph.add("LOG", graph.add("ADD", x, root))


def atanh(graph: Graph, x: Value) -> Value:
    both = graph.add("DIV", graph.add("ADD", x, 1.0), graph.add("SUB", 1.0, x))
    return graph.add("MUL", graph.add("LOG", both), 0.5)


# -- exponentials and logarithms


def expm1(graph: Graph, x: Value) -> Value:
    """exp(x) - 1."""
    return graph.add("SUB", graph.add("EXP", x), 1.0)


def log1p(graph: Graph, x: Value) -> Value:
    """log(1 + x)."""
    return graph.add("LOG", graph.add("ADD", x, 1.0))


def softplus(graph: Graph, x: Value) -> Value:
    """log(1 + exp(x)), which nothing can overflow: max(x, 0) + log(1 + exp(-abs(x)))."""
    small = graph.add("EXP", graph.add("NEG", graph.add("ABS", x)))
    return graph.add("ADD", graph.add("RELU", x), log1p(graph, small))


def softsign(graph: Graph, x: Value) -> Value:
    """x / (1 + abs(x))."""
    return graph.add("DIV", x, graph.add("ADD", graph.add("ABS", x), 1.0))


def selu(graph: Graph, x: Value) -> Value:
    """scale * x, and scale * alpha * (exp(x) - 1) below 0 (Klambauer and others, Self-Normalizing Neural Networks)."""
    below = graph.add("MUL", graph.add("ELU", x), SELU_SCALE * SELU_ALPHA)
    return graph.add("SELECT_V2", graph.add("GREATER", x, 0.0), graph.add("MUL", x, SELU_SCALE), below)


# -- the error function and its kin

_ERF_LIMIT = 3.9
_ERF_OVER = (
    1.1283791375755543,
    0.18865615254042947,
    0.05136880191289943,
    0.0035400081604008552,
    0.00022999455737825905,
)
_ERF_UNDER = (
    1.0,
    0.5005246471645448,
    0.1123704513619838,
    0.014341829344736056,
    0.00104514903589238,
    2.3240752086555242e-05,
    -1.1346655935653594e-07,
)
_ERFC = (
    0.282085007004796,
    0.28240013419695514,
    0.2429227183485676,
    0.20340438058161056,
    -0.028323200306516975,
    0.2805326856251885,
    -0.4893554135825255,
    0.28561590567310874,
    -0.059282261290752446,
)


def erf(graph: Graph, x: Value) -> Value:
    """x * P(x * x) / Q(x * x), up to where it is 1; relative error 1e-7."""
    x = graph.add("MAXIMUM", -_ERF_LIMIT, graph.add("MINIMUM", _ERF_LIMIT, x))  # so NaN stays NaN
    square = graph.add("SQUARE", x)
    over = graph.add("MUL", x, polynomial(graph, square, _ERF_OVER))
    return graph.add("DIV", over, polynomial(graph, square, _ERF_UNDER))


def erfc(graph: Graph, x: Value) -> Value:
    """1 - erf(x): exp(-x * x) * t * P(t) with t = 1 / (1 + abs(x) / 2), and 2 less that below 0; relative error 1e-6
    above."""
    size = graph.add("ABS", x)
    t = graph.add("DIV", 1.0, graph.add("ADD", graph.add("MUL", size, 0.5), 1.0))
    power = graph.add("EXP", graph.add("NEG", graph.add("SQUARE", size)))
    above = graph.add("MUL", graph.add("MUL", power, t), polynomial(graph, t, _ERFC))
    return graph.add("SELECT_V2", graph.add("LESS", x, 0.0), graph.add("SUB", 2.0, above), above)


_ERFINV_CENTRE = (
    1.50140941, 0.246640727, -0.00417768164, -0.00125372503, 0.00021858087, -4.39150654e-06, -3.5233877e-06,
    3.43273939e-07, 2.81022636e-08,
)  # fmt: skip
_ERFINV_TAIL = (
    2.83297682, 1.00167406, 0.00943887047, -0.0076224613, 0.00573950773, -0.00367342844, 0.00134934322,
    0.000100950558, -0.000200214257,
)  # fmt: skip


def erfinv(graph: Graph, x: Value) -> Value:
    """Whose erf is x (Giles, Approximating the erfinv function, single precision); infinite at -1 and 1."""
    w = graph.add("NEG", graph.add("LOG", graph.add("MUL", graph.add("SUB", 1.0, x), graph.add("ADD", x, 1.0))))
    centre = polynomial(graph, graph.add("SUB", w, 2.5), _ERFINV_CENTRE)
    tail = polynomial(graph, graph.add("SUB", graph.add("SQRT", w), 3.0), _ERFINV_TAIL)
    factor = graph.add("SELECT_V2", graph.add("LESS", w, 5.0), centre, tail)
    end = graph.add("EQUAL", graph.add("ABS", x), 1.0)
    return graph.add("MUL", graph.add("SELECT_V2", end, math.inf, factor), x)


def ndtr(graph: Graph, x: Value) -> Value:
    """The share of the standard normal distribution below x."""
    return graph.add("MUL", erfc(graph, graph.add("MUL", x, -math.sqrt(0.5))), 0.5)


def ndtri(graph: Graph, x: Value) -> Value:
    """Below which the standard normal distribution has the share x."""
    return graph.add("MUL", erfinv(graph, graph.add("SUB", graph.add("MUL", x, 2.0), 1.0)), math.sqrt(2))


# -- the gamma function and its kin

_SHIFTS = 7


def lgamma(graph: Graph, x: Value) -> Value:
    """The logarithm of the absolute value of the gamma function.

    From 1/2 on by Stirling's series (Abramowitz and Stegun 6.1.41) seven places further on (6.1.16), below by
    reflection (6.1.17): log(pi / abs(sin(pi * x))) - lgamma(1 - x).
    """
    f = graph.add
    low = f("LESS", x, 0.5)
    y = f("SELECT_V2", low, f("SUB", 1.0, x), x)
    near = f("LESS", y, float(_SHIFTS))
    small = f("MINIMUM", y, float(_SHIFTS))
    product = small
    for step in range(1, _SHIFTS):
        product = f("MUL", product, f("ADD", small, float(step)))
    z = f("SELECT_V2", near, f("ADD", y, float(_SHIFTS)), y)
    inverse = f("DIV", 1.0, z)
    series = f("MUL", polynomial(graph, f("SQUARE", inverse), (1 / 12, -1 / 360, 1 / 1260)), inverse)
    main = f("SUB", f("MUL", f("SUB", z, 0.5), f("LOG", z)), z)
    stirling = f("ADD", f("ADD", main, 0.5 * math.log(2 * math.pi)), series)
    upper = f("SELECT_V2", near, f("SUB", stirling, f("LOG", product)), stirling)
    sine = f("ABS", _sin_pi(graph, x))
    reflected = f("SUB", f("SUB", math.log(math.pi), f("LOG", sine)), upper)
    found = f("SELECT_V2", low, reflected, upper)
    return f("SELECT_V2", f("EQUAL", f("ABS", x), math.inf), math.inf, found)


def digamma(graph: Graph, x: Value) -> Value:
    """The derivative of `lgamma`: the asymptotic series (Abramowitz and Stegun 6.3.18) seven places further on (6.3.6),
    below 1/2 by reflection (6.3.7): digamma(1 - x) - pi / tan(pi * x)."""
    f = graph.add
    low = f("LESS", x, 0.5)
    y = f("SELECT_V2", low, f("SUB", 1.0, x), x)
    fractions = f("DIV", 1.0, y)
    for step in range(1, _SHIFTS):
        fractions = f("ADD", fractions, f("DIV", 1.0, f("ADD", y, float(step))))
    inverse = f("DIV", 1.0, f("ADD", y, float(_SHIFTS)))
    square = f("SQUARE", inverse)
    series = f("MUL", polynomial(graph, square, (1 / 12, -1 / 120, 1 / 252)), square)
    series = f("ADD", f("MUL", inverse, 0.5), series)
    upper = f("SUB", f("SUB", f("LOG", f("ADD", y, float(_SHIFTS))), series), fractions)
    cotangent = f("DIV", f("MUL", _cos_pi(graph, x), math.pi), _sin_pi(graph, x))
    return f("SELECT_V2", low, f("SUB", upper, cotangent), upper)


def _turn(graph: Graph, x: Value) -> Value:
    """The part of pi * x that is left without whole turns, so that it stays exact where x is large."""
    rest = graph.add("SUB", x, graph.add("MUL", graph.add("ROUND", graph.add("MUL", x, 0.5)), 2.0))
    return graph.add("MUL", rest, math.pi)


def _sin_pi(graph: Graph, x: Value) -> Value:
    """sin(pi * x), 0 where x is whole."""
    whole = graph.add("EQUAL", graph.add("FLOOR", x), x)
    return graph.add("SELECT_V2", whole, 0.0, graph.add("SIN", _turn(graph, x)))


def _cos_pi(graph: Graph, x: Value) -> Value:
    return graph.add("COS", _turn(graph, x))


# -- modified Bessel functions (Abramowitz and Stegun 9.8.1-9.8.4)

_I0_NEAR = (1.0, 3.5156229, 3.0899424, 1.2067492, 0.2659732, 0.0360768, 0.0045813)
_I0_FAR = (
    0.39894228, 0.01328592, 0.00225319, -0.00157565, 0.00916281, -0.02057706, 0.02635537, -0.01647633, 0.00392377,
)  # fmt: skip
_I1_NEAR = (0.5, 0.87890594, 0.51498869, 0.15084934, 0.02658733, 0.00301532, 0.00032411)
_I1_FAR = (
    0.39894228, -0.03988024, -0.00362018, 0.00163801, -0.01031555, 0.02282967, -0.02895312, 0.01787654, -0.00420059,
)  # fmt: skip


def bessel_i0e(graph: Graph, x: Value) -> Value:
    """exp(-abs(x)) * I0(x)."""
    return _bessel(graph, graph.add("ABS", x), _I0_NEAR, _I0_FAR)


def bessel_i1e(graph: Graph, x: Value) -> Value:
    """exp(-abs(x)) * I1(x)."""
    size = graph.add("ABS", x)
    value = _bessel(graph, size, _I1_NEAR, _I1_FAR, odd=True)
    return graph.add("MUL", graph.add("SIGN", x), value)


def _bessel(graph: Graph, size: Value, near: Sequence[float], far: Sequence[float], *, odd: bool = False) -> Value:
    f = graph.add
    square = f("SQUARE", f("MUL", f("MINIMUM", size, 3.75), 1 / 3.75))
    close = f("MUL", polynomial(graph, square, near), f("EXP", f("NEG", size)))
    close = f("MUL", close, size) if odd else close
    distant = f("MAXIMUM", size, 3.75)
    away = f("MUL", polynomial(graph, f("DIV", 3.75, distant), far), f("RSQRT", distant))
    return f("SELECT_V2", f("LESS", size, 3.75), close, away)
