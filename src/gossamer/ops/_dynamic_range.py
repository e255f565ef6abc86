"""Dynamic-range quantization, TFLite's hybrid kernels: float rows, quantized in every run, times stored 8-bit weights.

Each row has a scale of its own. Symmetric: scale = max|x| / 127, level = round(x * (127 / max|x|)). Asymmetric: the
range is widened to contain 0, scale = (max - min) / 255, and the zero point comes from that end of the range which
gives it with the smaller error; level = point + round(x * (1 / scale)). Everything is float32 but the asymmetric scale
and point, which are double from the division on; the levels are LiteRT's bit by bit.

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
from gossamer.ops import _int16, _qd8
from gossamer.ops._gemm import integer_matmul
from gossamer.ops.lowering import Lowering
from gossamer.quantization import round_half_away
from gossamer.records import record
from gossamer.schema.enums import TensorType
from gossamer.views import View

Floats = NDArray[np.float32]
Ints = NDArray[Any]


def quantize_symmetric(rows: Floats) -> tuple[NDArray[np.int8], Floats]:
    """Levels [n, k] in -127..127 and scales [n] of rows [n, k]; a row of zeros has scale 1."""
    extent: Floats = np.max(np.abs(rows), axis=-1, initial=0)
    zero = extent == 0
    extent = np.where(zero, np.float32(127), extent)
    levels = round_half_away(rows * (np.float32(127) / extent)[:, None])
    return _saturated(levels, -127), extent / np.float32(127)


def quantize_asymmetric(rows: Floats) -> tuple[NDArray[np.int8], Floats, NDArray[np.int32]]:
    """Levels [n, k] in -128..127, scales [n] and zero points [n] of rows [n, k]; a row of zeros has 1 and 0."""
    low, high = np.min(rows, axis=-1, initial=0), np.max(rows, axis=-1, initial=0)
    zero = low == high
    scale = np.where(zero, np.float32(255), high - low).astype(np.float64) / 255
    below, above = low / scale, high / scale
    from_low = 128 + np.abs(below) < 127 + np.abs(above)
    points = np.where(zero, 0, np.clip(round_half_away(np.where(from_low, -128 - below, 127 - above)), -128, 127))
    scales = scale.astype(np.float32)
    levels = round_half_away(rows * (np.float32(1) / scales)[:, None]) + points[:, None]
    return _saturated(levels, -128), scales, np.nan_to_num(points).astype(np.int32)


def _saturated(levels: NDArray[Any], low: int) -> NDArray[np.int8]:
    result: NDArray[np.int8] = np.clip(np.nan_to_num(levels, nan=low), low, 127).astype(np.int8)
    return result


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


@record(frozen=True, eq=False)
class LoweredRows:
    """Quantized rows in the kernel graph: ``levels`` int16 [n, k], less zero points, and ``scales`` float32 [n, 1].

    ``are_bytes``: levels fit int8."""

    levels: View
    scales: View
    are_bytes: bool


def lower_rows(graph: Lowering, x: View, asymmetric: bool) -> LoweredRows:
    """Quantize each row of [n, k] by its own range."""
    count, size = x.shape
    if asymmetric:
        levels, headers = _qd8.images(graph, graph.reshape(x, (count, 1, 1, size)), "builtin")
        scales = graph.kernel("bitcast", headers.slice(1, 0, 4), shape=(count,), type=TensorType.FLOAT32)
        levels = graph.cast(graph.reshape(levels, x.shape), TensorType.INT16)
        return LoweredRows(levels, graph.reshape(scales, (count, 1)), are_bytes=False)
    extent = graph.reduce("max", graph.map("abs", x), (1,))
    greatest, zero = graph.scalar(127, x), graph.scalar(0, x)
    extent = graph.map(("select", ("equal", 0, 1), 2, 0), extent, zero, greatest)
    levels = graph.map(("roundaway", ("mul", 0, ("div", 2, 1))), x, extent, greatest, type=TensorType.INT16)
    return LoweredRows(levels, graph.map("div", extent, greatest), are_bytes=True)


def lower_accumulate(graph: Lowering, result: View, rows: LoweredRows, weights: View, scales: View) -> View:
    """``result`` + rows x weights, int8 [units, k], with ``scales`` [units]."""
    if weights.is_constant:
        sums = _int16.products_of_levels(graph, rows.levels, weights)
    else:
        sums = _lower_dots(graph, rows, weights)
    total = ("add", 0, ("mul", ("tof32", 1), ("mul", 3, 2)))
    return graph.map(total, result, sums, rows.scales, scales)


def _lower_dots(graph: Lowering, rows: LoweredRows, weights: View) -> View:
    """The int32 sums [n, units] of products with int8 [units, k] that are computed."""
    (count, depth), units = rows.levels.shape, weights.shape[0]
    type = TensorType.INT8 if rows.are_bytes else TensorType.INT16
    levels = graph.reshape(graph.cast(rows.levels, type), (count, 1, depth)).broadcast((count, units, depth))
    return graph.kernel("dot16", levels, graph.cast(weights, type), shape=(count, units), type=TensorType.INT32)
