"""Fourier transforms along the last axes."""

from __future__ import annotations

import numpy as np

from gossamer.convert.blocks.fourier import along, fitted, half, is_power, of_fitted, whole
from gossamer.convert.blocks.shapes import cast
from gossamer.convert.graph import Graph, Value, refuse
from gossamer.convert.lowerings.tensorflow import Call, lowers
from gossamer.schema.enums import TensorType

T = TensorType

RANKS = {"FFT": 1, "FFT2D": 2, "FFT3D": 3, "BatchFFT": 1, "BatchFFT2D": 2, "BatchFFT3D": 3}


@lowers(*RANKS)
def fft(call: Call) -> Value:
    return _complex_transform(call.graph, call.value(0), RANKS[call.op], inverse=False)


@lowers(*[name.replace("FFT", "IFFT") for name in RANKS])
def ifft(call: Call) -> Value:
    return _complex_transform(call.graph, call.value(0), RANKS[call.op.replace("IFFT", "FFT")], inverse=True)


@lowers("RFFT", "RFFT2D", "RFFT3D")
def rfft(call: Call) -> Value:
    """The last axis without the half that symmetry gives."""
    graph, x = call.graph, cast(call.graph, call.value(0), T.FLOAT32)
    lengths = _lengths(call, x.rank)
    if len(lengths) == 2 and all(is_power(length) for length in lengths):
        return graph.add("RFFT2D", x, np.array(lengths, np.int32))
    for place, length in enumerate(lengths[:-1]):
        x = fitted(graph, x, place - len(lengths), length)
    x = half(graph, x, lengths[-1])
    for place in range(len(lengths) - 1):
        x = along(graph, x, place - len(lengths), inverse=False)
    return x


@lowers("IRFFT", "IRFFT2D", "IRFFT3D")
def irfft(call: Call) -> Value:
    graph, x = call.graph, call.value(0)
    lengths = _lengths(call, x.rank)
    for place, length in enumerate(lengths[:-1]):
        axis = place - len(lengths)
        x = along(graph, of_fitted(graph, x, axis, length), axis, inverse=True)
    x = of_fitted(graph, x, -1, lengths[-1] // 2 + 1)
    return cast(graph, whole(graph, x, lengths[-1]), call.attributes.type("Treal", T.FLOAT32))


def _lengths(call: Call, rank: int) -> list[int]:
    found = [int(length) for length in call.constant(1, "fft_length").reshape(-1)]
    if len(found) > rank or min(found, default=0) < 1:
        refuse(f"its lengths are {found}, it has {rank} dimensions")
    return found


def _complex_transform(graph: Graph, x: Value, axes: int, *, inverse: bool) -> Value:
    own = x.type
    if own != T.COMPLEX64:
        refuse("only transforms of complex64 can be converted")
    for axis in range(-axes, 0):
        x = along(graph, x, axis, inverse=inverse)
    return x
