"""The activations of TFLite's recurrent and hybrid float kernels.

Those kernels hand whole vectors to a linear-algebra library that replaces tanh and the logistic function by rational
and polynomial approximations in float32. Hybrid kernels quantize the result again, where one bit may become a step of
the scale, so the approximations are followed operation by operation: multiply, round, add, round, no fused steps.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Context
from gossamer.schema.enums import ActivationFunctionType
from gossamer.views import View

Floats = NDArray[np.float32]

# x * (numerator(x**2) * x**2 + 1) / denominator(x**2); beyond the bound the quotient is 1 to the last bit.
_TANH_BOUND = np.float32(7.90738964080810547)
_TANH_NUMERATOR = np.array([1.394553628e-8, 2.102733560e-5, 3.520756727e-3, 1.340216100e-1], np.float32)
_TANH_DENOMINATOR = np.array([8.015776984e-7, 3.326951409e-4, 2.597254514e-2, 4.673548340e-1, 1.0], np.float32)

_LOGISTIC_HIGH, _LOGISTIC_LOW = np.float32(16.6355324), np.float32(-104.0)
_LOG2_E = np.float32(1.44269504088896341)
_LN2_HIGH, _LN2_LOW = np.float32(0.693359375), np.float32(-2.12194440e-4)  # their sum is ln 2
_EXP = np.array([0.49999141693115234, 0.16666877269744873, 4.1898667812347412e-2, 8.3347130566835403e-3], np.float32)


def tanh(x: Floats) -> Floats:
    """tanh as a quotient of two polynomials; wrong by at most three units in the last place."""
    x = np.maximum(np.minimum(x, _TANH_BOUND), -_TANH_BOUND)
    square = x * x
    result: Floats = (square * x * _polynomial(square, _TANH_NUMERATOR) + x) / _polynomial(square, _TANH_DENOMINATOR)
    return result


def logistic(x: Floats) -> Floats:
    """e**x / (1 + e**x), with e**x = (2**m * e**r)**2 for x / 2 = m * ln 2 + r and a polynomial for e**r."""
    half = np.minimum(x, _LOGISTIC_HIGH) * np.float32(0.5)
    m = np.floor(half * _LOG2_E + np.float32(0.5))
    r = half - m * _LN2_HIGH - m * _LN2_LOW
    square = r * r
    even = square * _EXP[2] + _EXP[0]
    odd = square * _EXP[3] + _EXP[1]
    exponential = np.ldexp(square * (r * odd + even) + (r + np.float32(1)), np.nan_to_num(m).astype(np.int32))
    power: Floats = exponential * exponential
    result: Floats = np.where(x < _LOGISTIC_LOW, np.float32(0), power / (np.float32(1) + power))
    return result


def activate(x: Floats, activation: int) -> Floats:
    """A fused activation as the vector kernels apply it; NONE returns ``x`` itself."""
    if activation == ActivationFunctionType.TANH:
        return tanh(x)
    result = x
    if activation == ActivationFunctionType.SIGN_BIT:
        result = np.signbit(x).astype(np.float32)
    elif activation == ActivationFunctionType.RELU:
        result = np.maximum(x, np.float32(0))
    elif activation == ActivationFunctionType.RELU_N1_TO_1:
        result = np.clip(x, np.float32(-1), np.float32(1))
    elif activation == ActivationFunctionType.RELU6:
        result = np.clip(x, np.float32(0), np.float32(6))
    return result


def lower_activation(graph: Lowering, x: View, activation: ActivationFunctionType) -> View:
    """A fused activation of machine code, which has a tanh of its own."""
    if activation == ActivationFunctionType.SIGN_BIT:
        graph.refuse("there is no activation SIGN_BIT")
    return graph.map("tanh", x) if activation == ActivationFunctionType.TANH else graph.activation(x, activation)


def check_activation(ctx: Context, activation: int) -> None:
    """Raise through ``ctx`` for an activation that TFLite does not know."""
    if activation not in tuple(ActivationFunctionType):
        ctx.fail(f"fused_activation_function must be 0 to 5, got {int(activation)}")


def _polynomial(x: Floats, coefficients: NDArray[Any]) -> Floats:
    result: Floats = coefficients[0] * x + coefficients[1]
    for coefficient in coefficients[2:]:
        result = result * x + coefficient
    return result
