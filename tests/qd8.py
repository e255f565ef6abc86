"""What LiteRT makes of float activations and int8 weights by default, in NumPy, bit by bit.

XNNPACK quantizes rows as `gossamer.codegen.kernels.dynamic` says. With the exact sum of (level - zero point) x weight,
``y = fma(float(sum) * scale, weight scale, bias)``: two roundings, then the clamp. Depthwise convolutions are LiteRT's
own: ``y = float(sum) * weight scale * scale + bias``, and the last channels the other way round.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gossamer.ops._conv_geometry import Window
from gossamer.ops._convolution import convolve, convolve_depthwise, convolve_transposed
from gossamer.ops._dynamic_range import quantize_asymmetric

Floats = NDArray[np.float32]
Windows = tuple[Window, Window]
F = np.float32


def quantize(x: Floats) -> tuple[NDArray[np.int8], NDArray[np.int32], Floats]:
    """Levels [n, k], zero points [n] and scales [n] of rows [n, k]."""
    low, high = np.minimum(F(0), x.min(1)), np.maximum(F(0), x.max(1))
    with np.errstate(divide="ignore"):
        steps = np.where(low == high, F(1), F(255) / (high - low)).astype(F)
    below, above = low * steps, high * steps
    errors = (F(-128) + below) + (F(127) + above)
    points = np.where(errors > 0, F(-128) - below, F(127) - above)
    points = np.rint(np.clip(points, F(-128), F(127))).astype(np.int32)
    levels = np.rint(x * steps[:, None]).astype(np.int32) + points[:, None]
    return np.clip(levels, -128, 127).astype(np.int8), points, (F(1) / steps).astype(F)


def fma(a: NDArray[Any], b: NDArray[Any], c: NDArray[Any]) -> Floats:
    """a * b + c, rounded once but for cases that no test meets."""
    wide = np.longdouble
    result: Floats = (a.astype(wide) * b.astype(wide) + c.astype(wide)).astype(F)
    return result


def finished(sums: NDArray[Any], scale: Floats, weight_scales: Floats, bias: Floats | None) -> Floats:
    """Exact sums [..., units] as floats."""
    units = (sums.shape[-1],)
    real = sums.astype(np.int64).astype(F) * scale
    return fma(real, np.broadcast_to(weight_scales, units), np.zeros(units, F) if bias is None else bias)


def product(x: Floats, weights: NDArray[Any], scales: Floats, bias: Floats | None = None) -> Floats:
    """[..., k] with weights [..., units, k] of one scale or ``units``."""
    levels, points, row_scales = quantize(x.reshape(-1, x.shape[-1]))
    centred = (levels.astype(np.int64) - points[:, None]).reshape(x.shape)
    sums = centred @ np.swapaxes(weights.astype(np.int64), -1, -2)
    return finished(sums, row_scales.reshape(*x.shape[:-1], 1), scales, bias)


def _centred_images(x: Floats) -> tuple[NDArray[np.float64], Floats]:
    levels, points, scales = quantize(x.reshape(len(x), -1))
    centred = levels.astype(np.float64) - points[:, None]
    return centred.reshape(x.shape), scales.reshape(-1, 1, 1, 1)


def convolution(x: Floats, weights: NDArray[Any], scales: Floats, bias: Floats | None, windows: Windows) -> Floats:
    """[N, H, W, C] with weights [O, h, w, C / groups]; pixels are rows if they are all that a window sees."""
    if weights.shape[1:] == (1, 1, x.shape[3]) and all(window.stride == 1 for window in windows):
        return product(x, weights[:, 0, 0], scales, bias)
    centred, image_scales = _centred_images(x)
    return finished(convolve(centred, weights.astype(np.float64), windows), image_scales, scales, bias)


def transposed(x: Floats, weights: NDArray[Any], scales: Floats, bias: Floats | None, windows: Windows) -> Floats:
    """[N, H, W, C] with weights [O, h, w, C]."""
    centred, image_scales = _centred_images(x)
    sums = np.rint(convolve_transposed(centred, weights.astype(np.float64), windows))
    return finished(sums, image_scales, scales, bias)


def depthwise(x: Floats, weights: NDArray[Any], scales: Floats, bias: Floats, windows: Windows) -> Floats:
    """[N, H, W, C] with weights [h, w, C * m]."""
    levels, image_scales, points = quantize_asymmetric(x.reshape(len(x), -1))
    centred = (levels.astype(np.float64) - points[:, None]).reshape(x.shape)
    sums = convolve_depthwise(centred, weights.astype(np.float64), windows).astype(F)
    image_scales = image_scales.reshape(-1, 1, 1, 1)
    y: Floats = sums * scales * image_scales
    rest = weights.shape[2] // 4 * 4
    y[..., rest:] = (sums * image_scales * scales)[..., rest:]
    return y + bias


def blockwise(x: Floats, weights: NDArray[Any], scales: NDArray[np.float16], bias: Floats) -> Floats:
    """[n, k] with int4 weights [units, k] and a scale for each of their blocks, [units, blocks], as XNNPACK's kernels
    for AVX-512 with VNNI add them up: block after block, scales in bfloat16, levels from 0 to 255."""
    levels, points, row_scales = quantize(x)
    bits = scales.astype(F).view(np.uint32).astype(np.int64)
    bits = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16 << 16
    short = bits.astype(np.uint32).view(F)
    size = weights.shape[1] // scales.shape[1]
    of_weights = np.zeros(len(weights), F)
    for at in range(0, weights.shape[1], 16):
        of_weights -= weights[:, at : at + 16].sum(1, dtype=np.int64).astype(F) * short[:, at // size]
    y: Floats = of_weights * (points + 128).astype(F)[:, None]
    for block in range(scales.shape[1]):
        part = slice(block * size, (block + 1) * size)
        sums = (levels[:, part].astype(np.int64) + 128) @ weights[:, part].T.astype(np.int64)
        y = fma(sums.astype(F), short[:, block], y)
    return y * row_scales[:, None] + bias
