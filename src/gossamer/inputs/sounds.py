"""Sound files into tensors: one window of a sound for each run of the model.

A model takes samples or features. Samples are an input [N], [1, N] or [1, N, channels]: float32 in -1 to 1, int16 as
they are in a file of 16 bits, or int8 quantized over a range within -1 to 1. Features are what
`gossamer.inputs.features` says. A sound longer than the input is cut into windows, one run each; the last is filled up
with silence. An input of free length takes the whole sound.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.errors import InputError
from gossamer.inputs.features import Features, features_of
from gossamer.inputs.port import Port
from gossamer.inputs.wav import is_wav, read_wav
from gossamer.records import record

SUFFIXES = (".wav", ".flac", ".mp3", ".ogg")
_SHORTEST = 160
"""Samples in 10 ms at 16 kHz."""
_RATES = (8000, 16000, 22050, 32000, 44100, 48000)
_SPEECH = 16000
"""Of the sounds that the models of all kinds of features were trained on."""


@record(frozen=True)
class Options:
    """How a sound becomes tensors. ``rate``: samples a second that the model expects, in hertz; ``hop``: seconds from
    one window to the next; ``features``: kind, window and step in milliseconds. What is ``None`` is taken from the
    input, which `read_sound` says."""

    rate: int | None = None
    hop: float | None = None
    features: tuple[str, float, float] | None = None


@record(frozen=True)
class Window:
    """The part of a sound that one run sees, in seconds, at a sampling rate in hertz. ``assumed``: what the model does
    not say and was taken for granted."""

    start: float
    end: float
    rate: int
    values: NDArray[Any]
    assumed: tuple[str, ...] = ()


def read_sound(path: str, port: Port, options: Options, content: bytes | None = None) -> list[Window]:
    """The windows of a sound for an input; ``content``: what the file would hold, which ``path`` then only names.

    Raises `InputError` if it is no sound or the input takes none.
    """
    features = features_of(port, options.features)
    assumed: tuple[str, ...] = ()
    found = None if features or options.features else _axis_and_channels(port)
    if features is not None:
        samples, rate = _samples(path, content)
        assumed = (
            () if options.features else (f"{features.describe()}, as the shape suggests; --features says otherwise",)
        )
        if options.rate is None:
            assumed += (f"sound taken at {_SPEECH} Hz, as the model does not say; --rate says otherwise",)
        samples, rate = _at(options.rate or _SPEECH, samples, rate, path)
        return _windows_of_features(samples.mean(axis=1), rate, port, features, options.hop, assumed)
    if found is not None:
        axis, channels = found
        samples, rate = _samples(path, content)
        wanted = options.rate
        if wanted is None:
            wanted, told = _likely_rate(port.shape[axis] if port.signature[axis] >= 0 else 0, rate)
            assumed = (told,)
        samples, rate = _at(wanted, samples, rate, path)
        return _windows_of_samples(_mixed(samples, channels), rate, port, axis, options.hop, assumed)
    asked = f"{options.features[0]} features do" if options.features else "sound does"
    raise InputError(
        f"{path}: {asked} not fit the input {port.describe()}: samples need a float32 or int16 input [N], [1, N] or "
        "[1, N, channels], and features one of frames x channels, whose kind --features says. Features of another kind "
        "can be given as a .npy file."
    )


def is_sound(content: bytes) -> bool:
    """Whether a file begins as sounds do."""
    return is_wav(content) or content.startswith((b"fLaC", b"OggS", b"ID3", b"\xff\xfb", b"\xff\xf3", b"\xff\xf2"))


def takes_sound(port: Port) -> bool:
    """Whether a sound is a likely input: a vector of samples that is not too short to be one, or features."""
    if features_of(port, None) is not None:
        return True
    found = _axis_and_channels(port)
    return found is not None and (port.signature[found[0]] < 0 or port.shape[found[0]] >= _SHORTEST)


def _likely_rate(size: int, own: int) -> tuple[int, str]:
    """The rate of which so many samples are about a second, else the sound's own; and what to say of it."""
    nearest = min(_RATES, key=lambda rate: abs(rate - size))
    if abs(nearest - size) <= nearest // 20:
        return nearest, (
            f"sound taken at {nearest} Hz, of which {size} samples are about a second, as the model does not say; "
            "--rate says otherwise"
        )
    return own, f"sound taken at its own rate, {own} Hz, as the model does not say; --rate resamples it"


def _windows_of_samples(
    samples: NDArray[np.float64], rate: int, port: Port, axis: int, hop: float | None, assumed: tuple[str, ...]
) -> list[Window]:
    channels = samples.shape[1]
    length = port.shape[axis] if port.signature[axis] >= 0 else len(samples)
    apart = length if hop is None else max(1, round(hop * rate))
    windows = []
    for start in _starts(len(samples), length, apart):
        part = samples[start : start + length]
        filled = np.concatenate([part, np.zeros((length - len(part), channels), part.dtype)])
        shape = [1] * len(port.shape)
        shape[axis] = length
        if channels > 1:
            shape[2] = channels
        values = _numbers(filled, port).reshape(shape)
        windows.append(Window(start / rate, (start + len(part)) / rate, rate, values, assumed))
    return windows


def _windows_of_features(
    samples: NDArray[np.float64],
    rate: int,
    port: Port,
    features: Features,
    hop: float | None,
    assumed: tuple[str, ...],
) -> list[Window]:
    """Each window is a sound of its own for the features, as in training: what they adapt to begins anew."""
    length, step = features.samples(rate)
    frames = features.frames or max(1, 1 + (len(samples) - length) // step)
    size = length + (frames - 1) * step
    apart = size if hop is None else max(1, round(hop * rate))
    shape = [1 if place == 0 and known < 0 else known for place, known in enumerate(port.signature)]
    shape = [frames if known < 0 else known for known in shape]
    windows = []
    for start in _starts(len(samples) - length + 1, size, apart):  # what is left and makes no row is left out
        part = samples[start : start + size]
        values = features.numbers(np.concatenate([part, np.zeros(size - len(part))]), rate, port)
        windows.append(Window(start / rate, (start + len(part)) / rate, rate, values.reshape(shape), assumed))
    return windows


def _starts(total: int, length: int, hop: int) -> list[int]:
    """Where windows begin: the last is the first that reaches the end."""
    if total <= length:
        return [0]
    return list(range(0, total - length + hop, hop))


def _axis_and_channels(port: Port) -> tuple[int, int] | None:
    # The axis of the samples and the number of channels; None if the input does not look like sound.
    kind, size = port.dtype.kind, port.dtype.itemsize
    if kind != "f" and (kind != "i" or size > 2 or (size == 1 and not port.is_quantized)):
        return None
    if port.is_quantized:
        least, most = port.real_range
        if not -1.1 <= least < 0 < most <= 1.1:
            return None
    sizes = [0 if known < 0 else size for size, known in zip(port.shape, port.signature, strict=True)]
    if len(sizes) not in (1, 2, 3) or (len(sizes) == 3 and sizes[2] not in (1, 2)):
        return None
    column = len(sizes) == 2 and sizes[1] == 1 and sizes[0] != 1
    axis = 0 if len(sizes) == 1 or column else 1
    others = [size for position, size in enumerate(sizes[:2]) if position != axis]
    return None if max(others, default=1) > 1 else (axis, sizes[2] if len(sizes) == 3 else 1)


def _samples(path: str, content: bytes | None) -> tuple[NDArray[np.float64], int]:
    content = Path(path).read_bytes() if content is None else content
    # Our own reader takes what most files hold, so that their answers do not depend on an extra.
    return read_wav(content, path) if is_wav(content) else _other_samples(path, content)


def _other_samples(path: str, content: bytes) -> tuple[NDArray[np.float64], int]:
    try:
        import soundfile
    except ImportError:
        raise InputError(f"{path}: not a WAV file; other sounds need soundfile: install gossamer[audio].") from None
    try:
        values, rate = soundfile.read(io.BytesIO(content), dtype="float64", always_2d=True)
    except soundfile.SoundFileError as error:
        reason = str(getattr(error, "error_string", error))  # its text also names the stream, which nobody has
        raise InputError(f"{path}: not a sound that can be read ({reason.rstrip('.')}).") from None
    if not len(values):
        raise InputError(f"{path}: the file holds no samples.")
    return values, int(rate)


def _mixed(samples: NDArray[np.float64], channels: int) -> NDArray[np.float64]:
    if samples.shape[1] == channels:
        return samples
    mono = samples.mean(axis=1, keepdims=True)
    return np.repeat(mono, channels, axis=1)


def _at(new_rate: int, samples: NDArray[np.float64], rate: int, where: str) -> tuple[NDArray[np.float64], int]:
    """Samples [N, channels] at another rate, and that rate. Raises `InputError` if they need soxr and it is missing."""
    if rate == new_rate:
        return samples, rate
    try:
        import soxr
    except ImportError:
        raise InputError(
            f"{where}: a sound of {rate} Hz, and the model takes {new_rate} Hz; resampling needs soxr: install "
            "gossamer[audio]."
        ) from None
    return soxr.resample(samples, rate, new_rate), new_rate


def _numbers(samples: NDArray[np.float64], port: Port) -> NDArray[Any]:
    if port.dtype.kind == "f":
        return samples.astype(port.dtype)
    if port.is_quantized:
        return port.quantize(samples)
    scale = 2.0 ** (8 * port.dtype.itemsize - 1)
    return np.clip(np.rint(samples * scale), -scale, scale - 1).astype(port.dtype)
