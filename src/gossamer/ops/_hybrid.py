"""Hybrid products: float rows, quantized on the fly, times stored 8-bit weights, as TFLite's tensor_utils has them.

Every row of the input gets a scale of its own. Symmetric: scale = max|x| / 127, q = round(x * (127 / max|x|)).
Asymmetric (``asymmetric_quantize_inputs``): the range is widened to contain 0, scale = (max - min) / 255, and the zero
point is whichever end of the range gives it with the smaller error. The dot product is exact in integers; then

    result += float32(dot - zero_point * sum of the weight row) * (row scale * weight scale)

in float32, one rounding for each of the two operations. The results are determined bit by bit, and are LiteRT's on
x86 with one exception: there, a weight of -128 under a negative input counts with the wrong sign (its kernel negates
weights in 8 bits). ARM builds, its portable kernel and this one do not do that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gossamer.ops._gemm import integer_matmul
from gossamer.quantization import round_half_away

Floats = NDArray[np.float32]
Ints = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Rows:
    """Quantized rows: ``values`` [..., n, k] within int8, ``scales`` float32 and ``zero_points`` int32 [..., n]."""

    values: Ints
    scales: Floats
    zero_points: Ints


def quantize_rows(x: Floats, asymmetric: bool) -> Rows:
    """Quantize along the last axis, each row by its own range; a row of zeros gets scale 1."""
    return _quantize_asymmetric(x) if asymmetric else _quantize_symmetric(x)


def _quantize_symmetric(x: Floats) -> Rows:
    extent = np.max(np.abs(x), axis=-1, initial=0)
    zero = extent == 0
    extent = np.where(zero, np.float32(127), extent)
    scaled = round_half_away(x * (np.float32(127) / extent)[..., None])
    scales = np.where(zero, np.float32(1), extent / np.float32(127))
    return Rows(_saturated(scaled, -127), scales, np.zeros(scales.shape, np.int32))


def _quantize_asymmetric(x: Floats) -> Rows:
    low, high = np.min(x, axis=-1, initial=0), np.max(x, axis=-1, initial=0)
    zero = low == high
    span = np.where(zero, np.float32(255), high - low)  # float32, unlike what follows
    scale = span.astype(np.float64) / 255
    below, above = low / scale, high / scale
    nearer_low = 128 + np.abs(below) < 127 + np.abs(above)
    point = np.where(nearer_low, -128 - below, 127 - above)
    points = np.where(zero, 0, np.clip(round_half_away(point), -128, 127)).astype(np.int32)
    scales = scale.astype(np.float32)
    # The point is added before rounding: it decides ties.
    scaled = round_half_away(points[..., None].astype(np.float32) + x * (np.float32(1) / scales)[..., None])
    return Rows(_saturated(scaled, -128), np.where(zero, np.float32(1), scales), points)


def _saturated(scaled: Floats, low: int) -> Ints:
    return np.clip(np.nan_to_num(scaled, nan=low), low, 127).astype(np.int8)


def signed(weights: Ints) -> Ints:
    """Weights as the hybrid kernels read them: the bytes of uint8 weights are taken for int8."""
    return weights.view(np.int8) if weights.dtype == np.uint8 else weights


def dot(rows: Rows, weights: Ints) -> Ints:
    """Sums of (row - its zero point) * weight row: [..., n, units] for weights [..., units, k], exact."""
    products = integer_matmul(rows.values, np.swapaxes(weights, -1, -2))
    if rows.zero_points.any():
        products -= rows.zero_points[..., None] * np.sum(weights, axis=-1, dtype=np.int64)[..., None, :]
    return products


def accumulate(result: Floats, rows: Rows, weights: Ints, scale: float | Floats) -> Floats:
    """``result`` + rows x weights, for weights [units, k] with one scale or, as an array, one for each unit."""
    if isinstance(scale, np.ndarray):
        scales = scale * rows.scales[..., None]
    else:
        scales = (rows.scales * np.float32(scale))[..., None]
    total: Floats = result + dot(rows, weights).astype(np.float32) * scales
    return total
