"""Sound: files, spectrograms, cepstral coefficients."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from gossamer.flex.kernels import Array, Call, kernel
from gossamer.flex.kernels._checks import checked_shape, number, require_rank
from gossamer.flex.objects import strings
from gossamer.ops.custom import audiospectrogram, mfcc

_PCM, _EXTENSIBLE = 1, 0xFFFE


@kernel("DecodeWav")
def decode_wav(call: Call, contents: Array) -> tuple[Array, int]:
    """[samples, channels] in [-1, 1) of a RIFF WAVE file of 16 bits, and its rate; ``desired_samples`` cuts or
    fills with zeros, ``desired_channels`` cuts or repeats the last one."""
    call.require(contents.size == 1, f"contents must be one string, got shape {list(contents.shape)}")
    content: bytes = contents.reshape(-1)[0]
    call.require(content[:4] == b"RIFF" and content[8:12] == b"WAVE", "the content is no RIFF WAVE file")
    channels = rate = 0
    data: bytes | None = None
    at = 12
    while at + 8 <= len(content) and data is None:
        kind, size = content[at : at + 4], int.from_bytes(content[at + 4 : at + 8], "little")
        if kind == b"fmt ":
            call.require(size >= 16 and at + 24 <= len(content), "the format of the file ends early")
            form, channels, rate, _, _, bits = struct.unpack_from("<HHIIHH", content, at + 8)
            call.require(form in (_PCM, _EXTENSIBLE) and bits == 16, f"sound must be PCM of 16 bits, got {bits}")
        elif kind == b"data":
            data = content[at + 8 : at + 8 + size]
        at += 8 + size + size % 2
    call.require(channels > 0 and data is not None, "the file has no format or no data")
    whole = np.frombuffer(data or b"", "<i2", len(data or b"") // (2 * channels) * channels)
    sound = whole.reshape(-1, channels).astype(np.float32) / np.float32(1 << 15)
    wanted = [call.attributes.int(f"desired_{name}") for name in ("samples", "channels")]
    shape = checked_shape(call, [got if size == -1 else size for got, size in zip(sound.shape, wanted, strict=True)])
    result = np.zeros(shape, np.float32)
    kept = tuple([slice(min(a, b)) for a, b in zip(shape, sound.shape, strict=True)])
    result[kept] = sound[kept]
    result[kept[0], channels:] = sound[kept[0], -1:]
    return result, rate


@kernel("EncodeWav", shape=lambda node, shapes: [()])
def encode_wav(call: Call, audio: Array, sample_rate: Array) -> Array:
    """A RIFF WAVE file of 16 bits of [samples, channels] in [-1, 1]."""
    require_rank(call, "audio", audio, 2)
    rate, channels = number(call, "sample_rate", sample_rate), audio.shape[1]
    call.require(0 < rate < 1 << 32, f"sample_rate must be positive, got {rate}")
    call.require(0 < channels < 1 << 16, f"audio must have channels, got shape {list(audio.shape)}")
    scaled = np.rint(np.clip(audio * np.float32(1 << 15), -(1 << 15), (1 << 15) - 1))
    data = scaled.astype("<i2").tobytes()
    form = struct.pack("<HHIIHH", _PCM, channels, rate, rate * channels * 2, channels * 2, 16)
    body = b"WAVEfmt " + struct.pack("<I", 16) + form + b"data" + struct.pack("<I", len(data)) + data
    return strings([b"RIFF" + struct.pack("<I", len(body)) + body], ())


@kernel("AudioSpectrogram")
def audio_spectrogram(call: Call, sound: Array) -> Array:
    """How loud each frequency is, window by window: as the builtin operator of this name."""
    require_rank(call, "input", sound, 2)
    size, stride = call.attributes.int("window_size"), call.attributes.int("stride")
    call.require(size >= 2 and stride >= 1, f"window_size {size} must be 2 or more, stride {stride} 1 or more")
    length = 1 << (size - 1).bit_length()
    windows = max(1 + (len(sound) - size) // stride, 0) if len(sound) >= size else 0
    checked_shape(call, [windows, sound.shape[1], length])
    squared = call.attributes.bool("magnitude_squared")
    settings = audiospectrogram.Settings(size, stride, squared, length)
    return audiospectrogram.spectrogram(sound, windows, settings)


@kernel("Mfcc")
def mel_cepstrum(call: Call, spectrogram: Array, sample_rate: Array) -> Any:
    """The mel-frequency cepstral coefficients of a spectrogram: as the builtin operator of this name."""
    require_rank(call, "spectrogram", spectrogram, 3)
    attributes = call.attributes
    settings = mfcc.Settings(
        attributes.float("lower_frequency_limit"),
        attributes.float("upper_frequency_limit"),
        attributes.int("filterbank_channel_count"),
        attributes.int("dct_coefficient_count"),
    )
    call.require(0 <= settings.lower_limit < settings.upper_limit, "frequency limits must be 0 <= lower < upper")
    call.require(
        1 <= settings.coefficients <= settings.filters <= mfcc.MAX_FILTERS,
        f"dct_coefficient_count {settings.coefficients} must be in [1, filterbank_channel_count {settings.filters}]",
    )
    rate = number(call, "sample_rate", sample_rate)
    call.require(rate > 0 and spectrogram.shape[2] >= 2, f"rate {rate} must be positive, and there must be 2 bins")
    return mfcc.coefficients(spectrogram, rate, settings)
