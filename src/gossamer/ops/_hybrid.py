"""Float rows quantized on the fly, each with a scale of its own, as TFLite's hybrid kernels do it to their inputs.

Symmetric: scale = max|x| / 127, level = round(x * (127 / max|x|)). Asymmetric: the range is widened to contain 0,
scale = (max - min) / 255, and the zero point comes from that end of the range which gives it with the smaller error;
level = point + round(x * (1 / scale)). Everything is float32 but the asymmetric scale and point, which are double from
the division on; the levels are LiteRT's bit by bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.quantization import round_half_away

Floats = NDArray[np.float32]
Levels = NDArray[np.int8]


def quantize_symmetric(rows: Floats) -> tuple[Levels, Floats]:
    """Levels [n, k] in -127..127 and scales [n] of rows [n, k]; a row of zeros has scale 1."""
    extent: Floats = np.max(np.abs(rows), axis=-1, initial=0)
    zero = extent == 0
    extent = np.where(zero, np.float32(127), extent)
    levels = round_half_away(rows * (np.float32(127) / extent)[:, None])
    return _saturated(levels, -127), extent / np.float32(127)


def quantize_asymmetric(rows: Floats) -> tuple[Levels, Floats, NDArray[np.int32]]:
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


def _saturated(levels: NDArray[Any], low: int) -> Levels:
    result: Levels = np.clip(np.nan_to_num(levels, nan=low), low, 127).astype(np.int8)
    return result
