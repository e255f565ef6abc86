"""Fourier transforms over the last one, two or three dimensions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gossamer.flex.kernels import Array, Call, kernel, like_first
from gossamer.flex.kernels._checks import checked_shape, require_least_rank


def _dimensions(op: str) -> int:
    return int(op[-2]) if op.endswith("D") else 1


@kernel("FFT", "FFT2D", "FFT3D", "IFFT", "IFFT2D", "IFFT3D", shape=like_first)
def transform(call: Call, x: Array) -> Array:
    """The transform of complex numbers, or the inverse one, which divides by the number of elements."""
    rank = _dimensions(call.op)
    require_least_rank(call, "input", x, rank)
    if not x.size:
        return x
    function: Callable[..., Array] = np.fft.ifftn if call.op.startswith("I") else np.fft.fftn
    return function(x, axes=tuple(range(-rank, 0)))


@kernel("RFFT", "RFFT2D", "RFFT3D", "IRFFT", "IRFFT2D", "IRFFT3D")
def real_transform(call: Call, x: Array, fft_length: Array) -> Array:
    """The transform of real numbers, whose last dimension has the frequencies up to one half, or its inverse; what an
    operand has beyond ``fft_length`` is cut off."""
    rank = _dimensions(call.op)
    inverse = call.op.startswith("I")
    require_least_rank(call, "input", x, rank)
    call.require(
        fft_length.shape == (rank,), f"fft_length must have {rank} elements, got shape {list(fft_length.shape)}"
    )
    lengths = checked_shape(call, [*x.shape[:-rank], *fft_length])[-rank:]
    batch = x.shape[:-rank]
    half = lengths[-1] // 2 + 1 if lengths[-1] else 0
    if not x.size or not all(lengths):
        return np.zeros(
            (*batch, *lengths[:-1], lengths[-1] if inverse else half), call.dtype("Treal" if inverse else "Tcomplex")
        )
    for size, length in zip(x.shape[-rank:], (*lengths[:-1], half if inverse else lengths[-1]), strict=True):
        call.require(size >= length, f"input must have {length} elements in each row, got shape {list(x.shape)}")
    axes: Any = tuple(range(-rank, 0))
    return (np.fft.irfftn if inverse else np.fft.rfftn)(x, s=lengths, axes=axes)
