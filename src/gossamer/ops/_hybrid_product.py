"""Hybrid products: float rows, quantized on the fly (`_hybrid`), times stored 8-bit weights.

The dot products are exact in integers; then, in float32 and with one rounding for each of the two operations,

    result += float32(dot - zero_point * sum of the weight row) * (row scale * weight scale)

so that results are determined bit by bit. They are LiteRT's, with one exception: its x86 kernel negates weights in
8 bits, where -128 stays -128, and so gives a weight of -128 the wrong sign under a negative input. Its ARM and portable
kernels do not, and neither does this one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.ops._gemm import integer_matmul
from gossamer.ops._hybrid import quantize_asymmetric, quantize_symmetric
from gossamer.records import record

Floats = NDArray[np.float32]
Ints = NDArray[Any]


@record(frozen=True, eq=False)
class Rows:
    """Quantized rows: ``levels`` int8 [n, k], ``scales`` float32 [n], ``points`` int32 [n] or None where all are 0."""

    levels: Ints
    scales: Floats
    points: Ints | None


def quantize_rows(rows: Floats, asymmetric: bool) -> Rows:
    """Quantize each row of [n, k] by its own range."""
    return Rows(*quantize_asymmetric(rows)) if asymmetric else Rows(*quantize_symmetric(rows), None)


def signed(weights: Ints) -> Ints:
    """Weights as the hybrid kernels read them: the bytes of uint8 weights are taken for int8."""
    return weights.view(np.int8) if weights.dtype == np.uint8 else weights


def dot(rows: Rows, weights: Ints) -> Ints:
    """Sums of (level - point) * weight: [n, units] for weights [units, k], exact."""
    products: Ints = integer_matmul(rows.levels, weights.T)
    if rows.points is not None:
        products -= rows.points[:, None] * np.sum(weights, axis=1, dtype=np.int64)
    return products


def accumulate(result: Floats, rows: Rows, weights: Ints, scale: float | Floats) -> Floats:
    """``result`` + rows x weights, for weights [units, k] with one scale or, as an array, one for each unit."""
    if isinstance(scale, np.ndarray):
        scales = scale * rows.scales[:, None]
    else:
        scales = (rows.scales * np.float32(scale))[:, None]
    total: Floats = result + dot(rows, weights).astype(np.float32) * scales
    return total
