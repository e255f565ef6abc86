"""Special functions, computed in float64.

Where C's library has the function, it is called for each element; the others are recurrences, series and continued
fractions of the Handbook of Mathematical Functions (Abramowitz and Stegun 1964), whose numbers are given.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gossamer.flex.kernels import Array, Call, Shape, elementwise, kernel, like_first
from gossamer.flex.node import FlexNode

MOST_TERMS = 20_000
"""Of a series or fraction: those of arguments below 10^6 end before."""

_ENOUGH = 1e-17


def _each(function: Callable[[float], float], x: Array) -> Array:
    """A function of Python's for every element, float64."""
    return np.asarray(np.frompyfunc(function, 1, 1)(np.asarray(x, np.float64)), np.float64)


def _log_gamma_of(x: float) -> float:
    try:
        return math.lgamma(x)
    except (ValueError, OverflowError):
        return math.inf


def _log_gamma(x: Array) -> Array:
    """ln |gamma(x)|; infinite at 0, -1, -2 …"""
    return _each(_log_gamma_of, x)


def _digamma(x: Array) -> Array:
    """The derivative of ln(gamma(x)): 6.3.7 (reflection), 6.3.5 (recurrence) up to 10, 6.3.18 (asymptotic series)."""
    x = np.asarray(x, np.float64)
    reflected = x <= 0
    z = np.where(reflected, 1 - x, x)
    total = np.zeros_like(z)
    for _ in range(10):
        small = z < 10
        total = np.where(small, total - 1 / z, total)
        z = np.where(small, z + 1, z)
    square = 1 / (z * z)
    series = np.zeros_like(z)
    # B(2n) / 2n of the Bernoulli numbers B
    for term in (1 / 12, -691 / 32760, 1 / 132, -1 / 240, 1 / 252, -1 / 120, 1 / 12):
        series = (series + term) * square
    result = total + np.log(z) - 0.5 / z - series
    result = np.where(reflected, result - np.pi / np.tan(np.pi * x), result)
    result = np.where(np.isposinf(x), np.inf, result)
    return np.where(reflected & (x == np.floor(x)), np.nan, result)


def _erfinv(x: Array) -> Array:
    """The inverse of erf: the normal distribution's quantiles below one half, and one step of Newton's method."""
    from statistics import NormalDist

    quantile = NormalDist().inv_cdf
    x = np.asarray(x, np.float64)
    tail = (1 - np.abs(x)) / 2
    inside = np.where((tail > 0) & (tail <= 0.5), tail, 0.5)
    y = -_each(quantile, inside) / math.sqrt(2)
    near = np.abs(x) < 0.5
    y = np.where(near, y - (_each(math.erf, y) - np.abs(x)) * (math.sqrt(np.pi) / 2) * np.exp(y * y), y)
    y = np.copysign(np.where(tail == 0, np.inf, y), x)
    return np.where((tail >= 0) & (tail <= 0.5), y, np.nan)


def _ndtri_of(p: float) -> float:
    from statistics import NormalDist

    if 0 < p < 1:
        return NormalDist().inv_cdf(p)
    return -math.inf if p == 0 else math.inf if p == 1 else math.nan


def _bessel_scaled(order: int, x: Array) -> Array:
    """exp(-|x|) I(x) of order 0 or 1: 9.6.10 (all terms have one sign) up to 30, 9.7.1 (asymptotic) above."""
    x = np.asarray(x, np.float64)
    size = np.abs(x)
    near = np.minimum(size, 30.0)
    quarter = near * near / 4
    term = (near / 2) ** order * np.exp(-near)
    total = np.zeros_like(size)
    for k in range(90):
        total = total + term
        term = term * quarter / ((k + 1) * (k + 1 + order))
    far = np.maximum(size, 30.0)
    term = np.ones_like(size)
    series = np.zeros_like(size)
    for k in range(25):
        series = series + term
        term = term * -(4 * order**2 - (2 * k + 1) ** 2) / ((k + 1) * 8 * far)
    result = np.where(size <= 30, total, series / np.sqrt(2 * np.pi * far))
    return np.where(np.isnan(x), np.nan, result * np.sign(x) if order else result)


_UNARY: dict[str, Callable[[Array], Array]] = {
    "BesselI0e": lambda x: _bessel_scaled(0, x),
    "BesselI1e": lambda x: _bessel_scaled(1, x),
    "Digamma": _digamma,
    "Erf": lambda x: _each(math.erf, x),
    "Erfc": lambda x: _each(math.erfc, x),
    "Erfinv": _erfinv,
    "Lgamma": _log_gamma,
    "Ndtri": lambda x: _each(_ndtri_of, x),
}


@kernel(*_UNARY, shape=like_first)
def unary(call: Call, x: Array) -> Array:
    """The function that the operator is named after."""
    return _UNARY[call.op](x)


@kernel("Igamma", shape=elementwise)
def igamma(call: Call, a: Array, x: Array) -> Array:
    """The regularized incomplete gamma function P(a, x): the series 6.5.29 below a + 1, the fraction 6.5.31 above."""
    a, x = [np.asarray(one, np.float64) for one in np.broadcast_arrays(a, x)]
    valid = (a > 0) & (x >= 0)
    safe_a = np.where(valid & np.isfinite(a), a, 1.0)
    safe_x = np.where(valid & np.isfinite(x), x, 1.0)
    weight = np.exp(safe_a * np.log(safe_x) - safe_x - _log_gamma(safe_a))
    low = safe_x < safe_a + 1
    series = _gamma_series(call, safe_a, np.where(low, safe_x, 0.0))
    fraction = _gamma_fraction(call, safe_a, np.where(low, safe_a + 1, safe_x))
    result = np.where(low, np.where(safe_x > 0, weight * series, 0.0), 1 - weight * fraction)
    result = np.where(np.isposinf(x), 1.0, np.where(np.isposinf(a), 0.0, result))
    return np.where(valid, result, np.nan)


def _gamma_series(call: Call, a: Array, x: Array) -> Array:
    term = 1 / a
    total = term
    for n in range(1, MOST_TERMS):
        term = term * x / (a + n)
        total = total + term
        if np.all(term <= total * _ENOUGH):
            break
        call.poll()
    return total


def _gamma_fraction(call: Call, a: Array, x: Array) -> Array:
    """1 / (x + 1 - a - 1 (1 - a) / (x + 3 - a - …)), from the front by Lentz's method."""

    def step(n: int) -> tuple[Array, Array]:
        return -n * (n - a), x + 2 * n + 1 - a

    return 1 / _fraction(call, x + 1 - a, step)


def _fraction(call: Call, first: Array, step: Callable[[int], tuple[Array, Array]]) -> Array:
    """first + n1 / (d1 + n2 / (d2 + …)): Lentz's method (Applied Optics 15, 1976)."""
    tiny = 1e-300
    value = np.where(first == 0, tiny, first)
    c, d = value, np.zeros_like(value)
    for n in range(1, MOST_TERMS):
        numerator, denominator = step(n)
        d = denominator + numerator * d
        d = 1 / np.where(d == 0, tiny, d)
        c = denominator + numerator / c
        c = np.where(c == 0, tiny, c)
        value = value * (c * d)
        if np.all((np.abs(c * d - 1) < 1e-16) | ~np.isfinite(value)):
            break
        call.poll()
    return value


def _betainc_shape(node: FlexNode, shapes: Any) -> list[Shape]:
    return [max(map(tuple, shapes), key=len)]


@kernel("Betainc", shape=_betainc_shape)
def betainc(call: Call, a: Array, b: Array, x: Array) -> Array:
    """The regularized incomplete beta function I(a, b) at x: the fraction 26.5.8, by 26.5.2 where that is quicker."""
    whole = {one.shape for one in (a, b, x) if one.ndim}
    call.require(len(whole) <= 1, f"operands must have one shape or be scalars, got {sorted(map(list, whole))}")
    a, b, x = [np.asarray(one, np.float64) for one in np.broadcast_arrays(a, b, x)]
    valid = (a > 0) & (b > 0) & (x >= 0) & (x <= 1)
    a, b, x = np.where(valid, a, 1.0), np.where(valid, b, 1.0), np.where(valid, x, 0.5)
    turned = x > (a + 1) / (a + b + 2)
    p, q, y = np.where(turned, b, a), np.where(turned, a, b), np.where(turned, 1 - x, x)
    log_beta = _log_gamma(p) + _log_gamma(q) - _log_gamma(p + q)
    front = np.exp(p * np.log(y) + q * np.log1p(-y) - log_beta) / p

    def step(n: int) -> tuple[Array, Array]:
        m = n // 2
        if n % 2:
            return -(p + m) * (p + q + m) * y / ((p + 2 * m) * (p + 2 * m + 1)), np.ones_like(y)
        return m * (q - m) * y / ((p + 2 * m - 1) * (p + 2 * m)), np.ones_like(y)

    part = np.where(y > 0, front / _fraction(call, np.ones_like(y), step), 0.0)
    return np.where(valid, np.where(turned, 1 - part, part), np.nan)
