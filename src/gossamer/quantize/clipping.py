"""Weights whose largest values are cut off, so that the steps of the others are finer.

``octav``: where the error of what is cut off and that of rounding are least together, if values within the range are
rounded evenly: Newton's iteration of equation 6 of Sakr et al., Optimal Clipping and Magnitude-aware Differentiation
for Improved Quantization-aware Training (2022, arXiv 2206.06501). ``mse``: the part of the range, of a hundred, whose
squared error is least when weights are really rounded.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.errors import ConvertError
from gossamer.schema.enums import TensorType

BITS = {TensorType.INT8: 8, TensorType.INT4: 4}
ITERATIONS = 10
PARTS = np.linspace(0.2, 1, 81, dtype=np.float32)


def clipped(weights: NDArray[Any], type: TensorType, channel: int | None, clipping: str) -> NDArray[Any]:
    """The weights within their ranges, of each index of an axis or of all. Raises `ConvertError` for a way that is not
    known."""
    if not clipping or not weights.size:
        return weights
    if clipping not in WAYS:
        raise ConvertError(f"clipping {clipping!r} is not known; there are {', '.join(WAYS)}")
    rows = (
        weights.reshape(1, -1)
        if channel is None
        else np.moveaxis(weights, channel, 0).reshape(weights.shape[channel], -1)
    )
    limits = WAYS[clipping](np.abs(rows).astype(np.float32), BITS[type])
    shape = [1] * weights.ndim
    if channel is not None:
        shape[channel] = -1
    bounds = limits.reshape(shape)
    within: NDArray[Any] = np.clip(weights, -bounds, bounds)
    return within


def _octav(magnitudes: NDArray[Any], bits: int) -> NDArray[Any]:
    """``s = sum |x| [|x| >= s] / (4^-bits / 3 * count [|x| < s] + count [|x| >= s])``, from 1."""
    guess = np.ones((len(magnitudes), 1), np.float32)
    noise = np.float32(4.0**-bits / 3)
    for _ in range(ITERATIONS):
        outside = magnitudes >= guess
        count = outside.sum(1, keepdims=True).astype(np.float32)
        new = np.where(outside, magnitudes, 0).sum(1, keepdims=True, dtype=np.float32)
        new /= count * (1 - noise) + noise * magnitudes.shape[1]
        done = np.allclose(guess, new)
        guess = new
        if done:
            break
    return guess


def _mse(magnitudes: NDArray[Any], bits: int) -> NDArray[Any]:
    most = (1 << (bits - 1)) - 1
    largest = magnitudes.max(1, keepdims=True)
    errors = []
    for part in PARTS:
        scale = np.maximum(largest * part / most, np.finfo(np.float32).tiny)
        error = np.minimum(np.rint(magnitudes / scale), most) * scale - magnitudes
        errors.append((error * error).sum(1))
    limits: NDArray[Any] = largest * PARTS[np.argmin(errors, 0)][:, None]
    return limits


WAYS = {"octav": _octav, "mse": _mse}
