"""Fused activations of float kernels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.quantization import activation_range
from gossamer.schema.enums import ActivationFunctionType


def activate(x: NDArray[Any], activation: int) -> NDArray[Any]:
    """Apply a fused activation to a float array: the clamps, TANH and SIGN_BIT (1.0 where negative)."""
    if activation == ActivationFunctionType.TANH:
        return np.asarray(np.tanh(x))
    if activation == ActivationFunctionType.SIGN_BIT:
        return np.asarray(np.signbit(x).astype(x.dtype))
    return clamp(x, *activation_range(activation))


def clamp(x: NDArray[Any], low: float, high: float) -> NDArray[Any]:
    """min(max(x, low), high) in the type of ``x``; infinite bounds do nothing."""
    if low > -math.inf:
        x = np.maximum(x, x.dtype.type(low))
    if high < math.inf:
        x = np.minimum(x, x.dtype.type(high))
    return x
