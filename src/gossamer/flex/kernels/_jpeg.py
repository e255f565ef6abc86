"""The last steps of decoding a JPEG, as libjpeg-turbo takes them: chroma upsampled, colours converted."""

from __future__ import annotations

import numpy as np

from gossamer.flex.kernels import Array


def rgb_of(ycc: Array, factors: tuple[int, int]) -> Array:
    """uint8 [height, width, 3] of Y, Cb and Cr of the same shape; chroma was repeated over ``factors`` columns (2) and
    rows (1 or 2), and is smoothed now ("fancy upsampling": a triangle filter, jdsample.c)."""
    height, width, _ = ycc.shape
    chroma = ycc[:: factors[1], :: factors[0], 1:].astype(np.int32)
    if chroma.shape[1] <= 2:  # too few columns to be smoothed
        smooth = ycc[..., 1:].astype(np.int32)
    elif factors[1] == 2:
        above, below = np.concatenate([chroma[:1], chroma[:-1]]), np.concatenate([chroma[1:], chroma[-1:]])
        rows = np.stack([3 * chroma + above, 3 * chroma + below], 1).reshape(-1, *chroma.shape[1:])[:height]
        smooth = _across(rows, 8, 7, 4)
    else:
        smooth = _across(chroma, 1, 2, 2)
    y = ycc[..., 0].astype(np.int32)
    blue, red = np.moveaxis(smooth[:, :width] - 128, -1, 0)
    half = 1 << 15
    colours = [
        y + ((_fixed(1.402) * red + half) >> 16),
        y + ((-_fixed(0.34414) * blue - _fixed(0.71414) * red + half) >> 16),
        y + ((_fixed(1.772) * blue + half) >> 16),
    ]
    rgb: Array = np.clip(np.stack(colours, -1), 0, 255).astype(np.uint8)
    return rgb


def _across(rows: Array, even: int, odd: int, shift: int) -> Array:
    """Two columns for each: three parts of it and one of the neighbour at that side, rounded by ``even`` and
    ``odd``."""
    left, right = np.concatenate([rows[:, :1], rows[:, :-1]], 1), np.concatenate([rows[:, 1:], rows[:, -1:]], 1)
    pairs = np.stack([(3 * rows + left + even) >> shift, (3 * rows + right + odd) >> shift], 2)
    return pairs.reshape(rows.shape[0], -1, rows.shape[2])


def _fixed(factor: float) -> int:
    """In units of 1 / 65536."""
    return int(factor * 65536 + 0.5)
