"""Sound files into tensors: one window of samples for each run of the model.

A model that takes samples has an input [N], [1, N] or [1, N, channels]: float32 in -1 to 1, int16 as they are in a
file of 16 bits, or int8 quantized over -1 to 1. A sound longer than N samples is cut into windows, one run
each; the last is filled up with silence. A free N takes the whole sound.
"""

from __future__ import annotations

import wave
from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.errors import InputError
from gossamer.inputs.port import Port
from gossamer.records import record

_SHORTEST = 160
"""Samples in 10 ms at 16 kHz."""
SUFFIXES = (".wav", ".flac", ".ogg")


@record(frozen=True)
class Options:
    """How a sound becomes tensors: sampling rate of the model (``None``: that of the file), seconds between windows."""

    rate: int | None = None
    hop: float | None = None


@record(frozen=True)
class Window:
    """The part of a sound that one run sees, in seconds, at a sampling rate in hertz."""

    start: float
    end: float
    rate: int
    values: NDArray[Any]


def read_sound(path: str, port: Port, options: Options) -> list[Window]:
    """The windows of a sound for an input. Raises `InputError` if it is no sound or the input takes none."""
    found = _axis_and_channels(port)
    if found is None:
        raise InputError(
            f"{path}: sound does not fit the input {port.describe()}: samples need a float32 or int16 input [N], "
            "[1, N] or [1, N, channels]. If it takes features of a frontend, compute them and give a .npy file."
        )
    axis, channels = found
    samples, rate = _samples(path)
    if options.rate is not None and options.rate != rate:
        samples, rate = resampled(samples, rate, options.rate), options.rate
    samples = _mixed(samples, channels)
    length = port.shape[axis] if port.signature[axis] >= 0 else len(samples)
    hop = length if options.hop is None else max(1, round(options.hop * rate))
    starts = [0, *range(hop, len(samples), hop)] if length < len(samples) else [0]
    windows = []
    for start in starts:
        part = samples[start : start + length]
        filled = np.concatenate([part, np.zeros((length - len(part), channels), part.dtype)])
        shape = [1] * len(port.shape)
        shape[axis] = length
        if channels > 1:
            shape[2] = channels
        windows.append(Window(start / rate, (start + len(part)) / rate, rate, _numbers(filled, port).reshape(shape)))
        if start + length >= len(samples):
            break
    return windows


def looks_like_sound(port: Port) -> bool:
    """Whether a sound is a likely input: a vector of samples that is not too short to be one."""
    found = _axis_and_channels(port)
    return found is not None and (port.signature[found[0]] < 0 or port.shape[found[0]] >= _SHORTEST)


def _axis_and_channels(port: Port) -> tuple[int, int] | None:
    # The axis of the samples and the number of channels; None if the input does not look like sound.
    kind, size = port.dtype.kind, port.dtype.itemsize
    if kind != "f" and (kind != "i" or size > 2 or (size == 1 and not port.is_quantized)):
        return None
    if port.is_quantized and not np.allclose(port.real_range, (-1, 1), atol=0.1):
        return None
    sizes = [0 if known < 0 else size for size, known in zip(port.shape, port.signature, strict=True)]
    if len(sizes) not in (1, 2, 3) or (len(sizes) == 3 and sizes[2] not in (1, 2)):
        return None
    column = len(sizes) == 2 and sizes[1] == 1 and sizes[0] != 1
    axis = 0 if len(sizes) == 1 or column else 1
    others = [size for position, size in enumerate(sizes[:2]) if position != axis]
    return None if max(others, default=1) > 1 else (axis, sizes[2] if len(sizes) == 3 else 1)


def _samples(path: str) -> tuple[NDArray[np.float64], int]:
    # The standard library reads what most files hold, so that their answers do not depend on an extra.
    try:
        with wave.open(path, "rb") as file:
            width, channels, rate = file.getsampwidth(), file.getnchannels(), file.getframerate()
            raw = np.frombuffer(file.readframes(file.getnframes()), np.uint8)
    except (wave.Error, EOFError):
        return _other_samples(path)
    raw = raw[: len(raw) // (width * channels) * width * channels]
    if not len(raw):
        raise InputError(f"{path}: the file holds no samples.")
    if width == 1:
        values = (raw.astype(np.float64) - 128) / 128
    elif width == 3:
        padded = np.zeros((len(raw) // 3, 4), np.uint8)
        padded[:, 1:] = raw.reshape(-1, 3)
        values = padded.view("<i4").reshape(-1) / 2.0**31
    else:
        values = raw.view(f"<i{width}") / 2.0 ** (8 * width - 1)
    return values.reshape(-1, channels), rate


def _other_samples(path: str) -> tuple[NDArray[np.float64], int]:
    try:
        import soundfile
    except ImportError:
        raise InputError(
            f"{path}: not a WAV file of integer samples; other sounds need soundfile: install gossamer[audio]."
        ) from None
    try:
        values, rate = soundfile.read(path, dtype="float64", always_2d=True)
    except soundfile.SoundFileError as error:
        raise InputError(f"{path}: not a sound that can be read ({error}).") from None
    if not len(values):
        raise InputError(f"{path}: the file holds no samples.")
    return values, int(rate)


def _mixed(samples: NDArray[np.float64], channels: int) -> NDArray[np.float64]:
    if samples.shape[1] == channels:
        return samples
    mono = samples.mean(axis=1, keepdims=True)
    return np.repeat(mono, channels, axis=1)


def resampled(samples: NDArray[np.float64], rate: int, new_rate: int) -> NDArray[np.float64]:
    """Samples [N, channels] at another rate, by cutting or extending their spectrum."""
    length = max(1, round(len(samples) * new_rate / rate))
    spectrum = np.fft.rfft(samples, axis=0)[: length // 2 + 1]
    result: NDArray[np.float64] = np.fft.irfft(spectrum, length, axis=0) * (length / len(samples))
    return result


def _numbers(samples: NDArray[np.float64], port: Port) -> NDArray[Any]:
    if port.dtype.kind == "f":
        return samples.astype(port.dtype)
    if port.is_quantized:
        return port.quantize(samples)
    scale = 2.0 ** (8 * port.dtype.itemsize - 1)
    return np.clip(np.rint(samples * scale), -scale, scale - 1).astype(port.dtype)
