"""Operators for signals with random options, always the same ones, and sound that never ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.ops import find_op
from gossamer.schema import TensorType, flexbuffers
from tests.ops.cases import Case, Operand, const, model_of, tensor

COUNT = 4
"""Cases of each operator."""

Parts = tuple[Sequence[Operand], Sequence[Operand], dict[str, Any]]


class Draw:
    """Random numbers. `np.random.RandomState` gives the same stream in every version of NumPy."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.RandomState(seed)

    def number(self, low: int, high: int) -> int:
        """From ``low`` to ``high``, which is left out."""
        return int(self.random.randint(low, high))

    def outer(self) -> tuple[int, ...]:
        """Dimensions in front of the samples."""
        return tuple(self.number(1, 4) for _ in range(self.number(0, 3)))

    def values(self, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
        """Of every magnitude; every eighth time the limits of the type."""
        if np.dtype(dtype).kind == "f":
            return (self.random.standard_normal(shape) * 10.0 ** self.random.randint(-3, 5)).astype(dtype)
        limits = np.iinfo(dtype)
        if self.number(0, 8) == 0:
            return np.array([limits.min, limits.max, 0, 1], dtype)[self.random.randint(0, 4, shape)]
        whole = np.frombuffer(self.random.bytes(int(np.prod(shape)) * limits.dtype.itemsize), dtype).reshape(shape)
        drawn: NDArray[Any] = whole >> self.random.randint(0, limits.bits, shape).astype(dtype)
        return drawn


def _like(dtype: Any, *shape: int) -> Operand:
    return tensor(np.zeros(shape, dtype), dtype)


def _window(draw: Draw) -> Parts:
    size, windows, outer = draw.number(1, 30), draw.number(1, 4), draw.outer()
    x = _like(np.int16, *outer, size * windows)
    return [x, _like(np.int16, size)], [x], {"shift": draw.number(0, 32)}


def _auto_scale(draw: Draw) -> Parts:
    x = _like(np.int16, draw.number(1, 60))
    return [x], [x, _like(np.int32)], {}


def _fft(inverse: bool) -> Callable[[Draw], Parts]:
    def make(draw: Draw) -> Parts:
        dtype, kind = [
            (np.int16, TensorType.INT16),
            (np.int32, TensorType.INT32),
            (np.float32, TensorType.FLOAT32),
        ][draw.number(0, 3)]
        length, outer = [6, 20, 64, 96, 180, 512][draw.number(0, 6)], draw.outer()
        spectrum = _like(dtype, *outer, length + 2)
        samples = _like(dtype, *outer, length if inverse else draw.number(1, length + 1))
        operands = [spectrum, samples] if inverse else [samples, spectrum]
        return operands[:1], operands[1:], {"T": int(kind), "fft_length": length}

    return make


def _energy(draw: Draw) -> Parts:
    count = draw.number(1, 60)
    return [_like(np.int16, 2 * count)], [_like(np.uint32, count)], {"start_index": 0, "end_index": count}


def _filter_bank(draw: Draw) -> Parts:
    channels, frequencies, weights = draw.number(1, 12), draw.number(5, 40), draw.number(5, 40)
    widths = [draw.number(-1, 6) for _ in range(channels + 1)]
    starts = [[draw.number(0, size - max(width, 0) + 1) for width in widths] for size in (frequencies, weights)]
    places = [const(values, np.int16) for values in (*starts, widths)]
    numbers = [_like(np.uint32, frequencies), _like(np.int16, weights), _like(np.int16, weights)]
    return [*numbers, *places], [_like(np.uint64, channels)], {"num_channels": channels}


def _square_root(draw: Draw) -> Parts:
    count = draw.number(1, 60)
    return [_like(np.uint64, count), const(draw.number(0, 32))], [_like(np.uint32, count)], {}


def _log(draw: Draw) -> Parts:
    count = draw.number(1, 60)
    options = {"input_correction_bits": draw.number(0, 8), "output_scale": [64, 1000, -5][draw.number(0, 3)]}
    return [_like(np.uint32, count)], [_like(np.int16, count)], options


def _pcan(draw: Draw) -> Parts:
    x = _like(np.uint32, draw.number(1, 60))
    return [x, x, _like(np.int16, 125)], [x], {"snr_shift": draw.number(0, 32)}


def _subtraction(draw: Draw) -> Parts:
    x = _like(np.uint32, draw.number(1, 60))
    names = ["smoothing", "one_minus_smoothing", "alternate_smoothing", "alternate_one_minus_smoothing"]
    options = {name: draw.number(0, 1 << 14) for name in [*names, "min_signal_remaining"]}
    bits = {"smoothing_bits": draw.number(0, 12), "spectral_subtraction_bits": draw.number(10, 16)}
    return [x], [x, x], {**options, **bits, "num_channels": x.value.size, "clamping": bool(draw.number(0, 2))}


def _stacker(draw: Draw) -> Parts:
    # Without frames to wait for there is always a stack.
    channels, left = draw.number(1, 20), draw.number(0, 5)
    options = {"stacker_left_context": left, "stacker_right_context": 0, "stacker_step": 1}
    stack = _like(np.int16, channels * (left + 1))
    return [_like(np.int16, channels)], [stack, _like(np.bool_)], {**options, "num_channels": channels}


def _delay(draw: Draw) -> Parts:
    x = _like(np.int16, *draw.outer(), draw.number(1, 60))
    return [x], [x], {"delay_length": draw.number(0, 100)}


def _framer(draw: Draw) -> Parts:
    outer, size, frames = draw.outer(), draw.number(1, 40), draw.number(1, 6)
    step = draw.number(1, size + 1)
    outputs = [_like(np.int16, *outer, frames, size), _like(np.bool_)]
    return [_like(np.int16, *outer, frames * step)], outputs, {"frame_size": size, "frame_step": step, "prefill": True}


def _overlap_add(draw: Draw) -> Parts:
    outer, size, frames = draw.outer(), draw.number(1, 40), draw.number(1, 6)
    step = draw.number(1, size + 1)
    dtype, kind = [(np.int16, TensorType.INT16), (np.float32, TensorType.FLOAT32)][draw.number(0, 2)]
    options = {"T": int(kind), "frame_step": step}
    return [_like(dtype, *outer, frames, size)], [_like(dtype, *outer, frames * step)], options


MAKERS: dict[str, Callable[[Draw], Parts]] = {
    "SignalDelay": _delay,
    "SignalEnergy": _energy,
    "SignalFftAutoScale": _auto_scale,
    "SignalFilterBank": _filter_bank,
    "SignalFilterBankLog": _log,
    "SignalFilterBankSpectralSubtraction": _subtraction,
    "SignalFilterBankSquareRoot": _square_root,
    "SignalFramer": _framer,
    "SignalIrfft": _fft(True),
    "SignalOverlapAdd": _overlap_add,
    "SignalPCAN": _pcan,
    "SignalRfft": _fft(False),
    "SignalStacker": _stacker,
    "SignalWindow": _window,
}


def signal_cases() -> Iterator[tuple[str, bytes, list[list[NDArray[Any]]]]]:
    """An id, a model of one operator, and what is fed to its inputs in each of eight invocations."""
    for number, (name, make) in enumerate(MAKERS.items()):
        op = find_op(name, custom=True)
        assert op is not None
        for i in range(COUNT):
            draw = Draw(100 * number + i)
            inputs, outputs, options = make(draw)
            case = Case(name, inputs, outputs, custom_options=flexbuffers.dumps(options))
            fed = [x.value for x in inputs if not x.constant]
            yield f"{name}/{i}", model_of(op, case), [[draw.values(x.shape, x.dtype) for x in fed] for _ in range(8)]
