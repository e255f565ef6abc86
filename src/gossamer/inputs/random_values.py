"""Inputs for whoever has none: random, and the same every time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.inputs.port import Port

Array = NDArray[Any]


def random_input(
    port: Port, shape: tuple[int, ...], bounds: tuple[float, float] | None = None, seed: Sequence[int] = ()
) -> Array:
    """Values for an input, in the ranges of TFLite's benchmark_model unless there are ``bounds``: floats from -0.5 to
    0.5, uint8 0 to 254, int8 -127 to 127, other integers 0 to 99; always the same for one ``seed``."""
    source = np.random.default_rng([*seed, port.position])
    if port.is_text:
        values = np.empty(shape, object)
        values[...] = b"gossamer"
        return values
    kind, size = port.dtype.kind, port.dtype.itemsize
    if kind == "b":
        return source.integers(0, 2, shape).astype(bool)
    if kind in "iu":
        low, high = bounds or ({"i": (-127, 127), "u": (0, 254)}[kind] if size == 1 else (0, 99))
        return source.integers(int(low), int(high), shape, dtype=port.dtype, endpoint=True)
    low, high = bounds or (-0.5, 0.5)
    if kind == "c":
        return (source.uniform(low, high, shape) + 1j * source.uniform(low, high, shape)).astype(port.dtype)
    return source.uniform(low, high, shape).astype(port.dtype)
