"""Features of sounds: what keyword models take in place of samples, a row of numbers for each of many short windows.

Three kinds, each as its models were trained and as devices compute it:

``micro``  TFLite Micro's audio frontend (micro_speech, and wake words trained on the same): logarithms of the energy in
           bands of mel frequencies from 125 to 7500 Hz, less the noise and with automatic gain, in integers all the
           way. Exactly its numbers: value * 10 / 256 as a real number, and for int8 inputs, as its example has it,
           (256 * value + 333) div 666 - 128.
``mfcc``   MLPerf Tiny's keyword spotting: the cosine transform of logarithms of 40 mel bands from 20 to 4000 Hz, of a
           sound divided by its greatest sample.
``lfbe``   MLPerf Tiny's streaming wake word: decibels of mel bands up to half the rate, -52 dB to 12 dB as 0 to 1, of a
           sound divided by its greatest sample and with its high frequencies raised.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.errors import InputError
from gossamer.inputs.port import Port
from gossamer.ops._kiss_fft import real_fft
from gossamer.ops.custom.signalfilterbanklog import logarithms
from gossamer.ops.custom.signalfilterbanksquareroot import roots
from gossamer.ops.custom.signalpcan import LUT_SIZE, controlled
from gossamer.records import record

Array = NDArray[Any]

KINDS = {"micro": (30.0, 20.0), "mfcc": (30.0, 20.0), "lfbe": (64.0, 32.0)}
"""The windows of each kind where nothing else is said: how long they are and how far apart, in milliseconds."""

_BANDS = {"micro": 40, "mfcc": 10, "lfbe": 40}
"""Numbers in a row where the shape of an input does not say it."""


@record(frozen=True)
class Features:
    """Rows [frames, channels] of a kind, of windows of so many milliseconds, ``step`` of them apart; ``frames`` is 0
    where an input takes any number."""

    kind: str
    frames: int
    channels: int
    window: float
    step: float

    def describe(self) -> str:
        """In words: ``49 x 40 features of 30 ms every 20 ms (micro)``."""
        size = f"{self.frames or 'any'} x {self.channels}"
        return f"{size} features of {self.window:g} ms every {self.step:g} ms ({self.kind})"

    def samples(self, rate: int) -> tuple[int, int]:
        """The samples in a window and from one to the next."""
        return max(1, round(self.window * rate / 1000)), max(1, round(self.step * rate / 1000))

    def numbers(self, samples: NDArray[np.float64], rate: int, port: Port) -> Array:
        """The features of samples [N], -1 to 1, in the numbers of an input: as many rows as there are windows."""
        length, step = self.samples(rate)
        if self.kind == "micro":
            integers = np.clip(np.rint(samples * 2**15), -(2**15), 2**15 - 1).astype(np.int16)
            values = _micro(_windows(integers, length, step), rate, self.channels)
            if port.dtype == np.int8:
                rounded: Array = np.minimum((values * 256 + 333) // 666 - 128, 127).astype(np.int8)
                return rounded
            real = values * np.float32(10 / 256)
        else:
            greatest = samples.max(initial=0.0)
            real = (_mfcc if self.kind == "mfcc" else _lfbe)(
                samples / greatest if greatest > 0 else samples, length, step, rate, self.channels
            )
        numbers: Array = port.quantize(real) if port.is_quantized else real.astype(port.dtype)
        return numbers


def parse(text: str) -> tuple[str, float, float]:
    """``KIND``, or ``KIND:WINDOW:STEP`` in milliseconds. Raises `ValueError` for anything else."""
    kind, *times = text.split(":")
    if kind not in KINDS or len(times) not in (0, 2):
        raise ValueError(f"{text!r} must be one of {', '.join(KINDS)}, or KIND:WINDOW:STEP in milliseconds.")
    window, step = (float(time) for time in times) if times else KINDS[kind]
    if not (0 < step <= 1000 and 0 < window <= 1000):
        raise ValueError(f"{text!r}: a window and a step have more than 0 and at most 1000 milliseconds.")
    return kind, window, step


def features_of(port: Port, asked: tuple[str, float, float] | None) -> Features | None:
    """The features that an input takes: those asked for, else what its shape and its numbers look like.

    Frames and channels are the two dimensions that are not 1, behind the batch, or parts of one of 49 frames, which are
    a second of 30 ms every 20 ms. 40 channels of numbers from 0 to 1 are ``lfbe``, others ``micro``; at least 10 frames
    of 10 to 20 channels that may be negative are ``mfcc``.
    """
    if not port.is_float and not port.is_quantized:
        return None
    known = [0 if size < 0 else size for size in port.signature]
    batched = known[1:] if len(known) > 1 and known[0] in (0, 1) else known
    sizes = [size for size in batched if size != 1]
    if len(sizes) == 1 and len(batched) > 1:
        sizes = [1, *sizes]
    kind = asked[0] if asked else _kind(sizes, port)
    if kind is None:
        return None
    if len(sizes) == 1 and sizes[0] % _BANDS[kind] == 0:
        sizes = [sizes[0] // _BANDS[kind], _BANDS[kind]]
    if len(sizes) != 2 or sizes[1] < 1:
        return None
    window, step = asked[1:] if asked else KINDS[kind]
    return Features(kind, sizes[0], sizes[1], window, step)


def _kind(sizes: list[int], port: Port) -> str | None:
    if len(sizes) == 1:
        return next((kind for kind in ("micro", "mfcc") if sizes[0] == 49 * _BANDS[kind]), None)
    if len(sizes) != 2:
        return None
    least, most = port.real_range if port.is_quantized else (-math.inf, math.inf)
    if sizes[1] == 40:
        return "lfbe" if most <= 1.5 else "micro"
    return "mfcc" if 10 <= sizes[1] <= 20 and sizes[0] not in range(1, 10) and least < 0 else None


def _windows(samples: Array, length: int, step: int) -> Array:
    """Windows [frames, length] of samples."""
    return np.lib.stride_tricks.sliding_window_view(samples, length)[::step]


# The frontend of TFLite Micro.

_WINDOW_BITS, _WEIGHT_BITS, _SMOOTHING_BITS, _FRACTION_BITS = 12, 12, 10, 14
_GAIN_BITS, _SNR_BITS = 21, 12
_LOWEST, _HIGHEST = np.float32(125), np.float32(7500)
_STRENGTH, _OFFSET = np.float32(0.95), np.float32(80)
_LOG_SCALE = 64


def _fraction(value: float) -> np.uint64:
    return np.uint64(int(np.float32(value) * (1 << _FRACTION_BITS)))


def _micro(windows: Array, rate: int, channels: int) -> Array:
    """The frontend's values [frames, channels] of windows of int16 samples, from silence on."""
    frames, length = windows.shape
    size = 1 << (length - 1).bit_length()
    shaped = (windows.astype(np.int32) * _hann(length)) >> _WINDOW_BITS
    # As loud as int16 holds, so that the transform loses little; as many bits are taken off the roots.
    magnitudes = np.where(shaped == -(2**15), 0, np.abs(shaped))  # whose magnitude is no int16: not looked at
    louder = 15 - np.frexp(magnitudes.max(axis=1))[1]
    padded = np.zeros((frames, size), np.int16)
    padded[:, :length] = shaped << louder[:, None]
    parts = real_fft(padded).reshape(frames, -1, 2).astype(np.int64)
    energy = np.square(parts).sum(axis=2).astype(np.uint64)
    amplitudes = roots(energy @ _weights(size // 2 + 1, rate, channels), louder[:, None])
    correction = size.bit_length() - 1 - _WEIGHT_BITS // 2
    values = np.empty((frames, channels), np.int64)
    new = np.where(np.arange(channels) % 2 == 0, _fraction(0.025), _fraction(0.06))
    old = np.uint64(1 << _FRACTION_BITS) - new
    noise = np.zeros(channels, np.uint32)
    for frame, amplitude in enumerate(amplitudes):
        signal = amplitude << np.uint32(_SMOOTHING_BITS)
        noise = ((signal * new + noise * old) >> np.uint64(_FRACTION_BITS)).astype(np.uint32)
        left = (signal - np.minimum(noise, signal)) >> np.uint32(_SMOOTHING_BITS)
        floor = ((amplitude * _fraction(0.05)) >> np.uint64(_FRACTION_BITS)).astype(np.uint32)
        gained = controlled(np.maximum(left, floor), noise, _gains(correction), _GAIN_BITS - correction - _SNR_BITS)
        values[frame] = logarithms(gained, correction, _LOG_SCALE)
    return values


@cache
def _hann(length: int) -> Array:
    phase = 2 * np.float32(math.pi) * (np.arange(length, dtype=np.float32) + np.float32(0.5)) / np.float32(length)
    window: Array = np.floor((0.5 - 0.5 * np.cos(phase, dtype=np.float64)) * (1 << _WINDOW_BITS) + 0.5).astype(np.int32)
    return window


def _mel(hertz: Any) -> Any:
    return np.float32(1127.0 * np.log1p(np.asarray(hertz, np.float64) / 700.0))


@cache
def _weights(bins: int, rate: int, channels: int) -> Array:
    """Triangles over the bins of a spectrum [bins, channels], uint64 fractions of 12 bits: each rises from the centre
    before its own and falls to the one after it."""
    width = np.float32(0.5 * rate / (bins - 1))
    mels = _mel(np.arange(bins, dtype=np.float32) * width)
    low, high = _mel(_LOWEST), _mel(_HIGHEST)
    spacing = (high - low) / np.float32(channels + 1)
    edges = np.concatenate([[low], low + spacing * np.arange(1, channels + 2, dtype=np.float32)]).astype(np.float32)
    if mels[-1] <= edges[-1]:
        raise InputError(f"features of this kind need sounds of more than {2 * float(_HIGHEST):g} Hz, got {rate} Hz.")
    table = np.zeros((bins, channels), np.uint64)
    first = int(1.5 + float(_LOWEST) / float(width))
    for bin in range(first, int(np.searchsorted(mels, edges[-1], side="right"))):
        band = max(int(np.searchsorted(edges[1:], mels[bin], side="left")), 0)
        share = np.float32((edges[band + 1] - mels[bin]) / (edges[band + 1] - edges[band]))
        falling, rising = (int(part * (1 << _WEIGHT_BITS) + 0.5) for part in (float(share), 1 - float(share)))
        if band > 0:
            table[bin, band - 1] += np.uint64(falling)
        if band < channels:
            table[bin, band] += np.uint64(rising)
    return table


@cache
def _gains(correction: int) -> Array:
    """The table of gains for noise of 2^k: the gain there, and two coefficients of a parabola up to the next."""
    bits = _SMOOTHING_BITS - correction

    def gain(noise: int) -> int:
        x = np.float32(noise) / np.float32(1 << bits)
        value = np.float32(1 << _GAIN_BITS) * np.power(x + _OFFSET, -_STRENGTH)
        return min(int(value + np.float32(0.5)), 2**15 - 1)

    table = np.zeros(LUT_SIZE, np.int16)
    table[0], table[1] = gain(0), gain(1)
    for interval in range(2, 33):
        start = 1 << (interval - 1)
        end = 2 * start - (interval == 32)
        first, middle, last = gain(start), gain(start + start // 2), gain(end)
        slope = 4 * (middle - first) - (last - first)
        place = 4 * interval - 6
        table[place : place + 3] = first, slope, last - first - slope
    return table


# What tf.signal computes in floats.


def _spectrum(samples: NDArray[np.float64], length: int, step: int, window: Array) -> Array:
    """Magnitudes [frames, bins] of windows filled up to a power of two."""
    frames = _windows(samples, length, step) * window
    return np.abs(np.fft.rfft(frames, 1 << (length - 1).bit_length(), axis=1))


def _mel_bands(bins: int, rate: int, channels: int, low: float, high: float) -> Array:
    """Triangles [bins, channels] between mel frequencies, as `tf.signal.linear_to_mel_weight_matrix` has them: bin 0 is
    left out."""
    mels = 1127.0 * np.log1p(np.linspace(0, rate / 2, bins)[1:] / 700.0)
    edges = np.linspace(1127.0 * math.log1p(low / 700.0), 1127.0 * math.log1p(high / 700.0), channels + 2)
    lower, centre, upper = edges[:-2], edges[1:-1], edges[2:]
    rising, falling = (mels[:, None] - lower) / (centre - lower), (upper - mels[:, None]) / (upper - centre)
    return np.concatenate([np.zeros((1, channels)), np.maximum(0, np.minimum(rising, falling))])


def _mfcc(samples: NDArray[np.float64], length: int, step: int, rate: int, channels: int) -> Array:
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(length) / length)
    magnitudes = _spectrum(samples, length, step, hann)
    bands = 40
    logs = np.log(magnitudes @ _mel_bands(magnitudes.shape[1], rate, bands, 20.0, 4000.0) + 1e-6)
    cosines = np.cos(np.pi / bands * (np.arange(bands)[:, None] + 0.5) * np.arange(channels))
    result: Array = logs @ cosines * math.sqrt(2 / bands)
    return result


def _lfbe(samples: NDArray[np.float64], length: int, step: int, rate: int, channels: int) -> Array:
    raised = samples - (1 - 2**-5) * np.concatenate([[0.0], samples[:-1]])
    power = np.square(_spectrum(raised, length, step, np.hamming(length))) / length
    bands = np.maximum(power, 1e-30) @ _mel_bands(power.shape[1], rate, channels, 0.0, rate / 2)
    result: Array = np.clip((10 * np.log10(np.maximum(bands, 1e-30)) + 52) / 64, 0, 1)
    return result
