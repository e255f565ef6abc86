"""Sounds into tensors."""

from __future__ import annotations

import wave
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gossamer.errors import InputError
from gossamer.inputs.sounds import Options, read_sound, resampled
from tests.inputs.ports import port


def wav(path: Path, samples: Any, rate: int = 100, width: int = 2, channels: int = 1) -> str:
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(width)
        file.setframerate(rate)
        file.writeframes(np.asarray(samples).tobytes())
    return str(path)


RISING = np.arange(10, dtype="<i2") * 1000


@pytest.mark.parametrize("signature", [(10,), (1, 10), (10, 1), (1, 10, 1), (-1,), (1, -1), (-1, 10)])
def test_samples_as_float(tmp_path: Path, signature: tuple[int, ...]) -> None:
    (window,) = read_sound(wav(tmp_path / "a.wav", RISING), port(*signature), Options())
    assert (window.start, window.end) == (0.0, 0.1)
    assert window.values.dtype == np.float32
    assert window.values.shape == (
        (1, 10) if signature == (-1, 10) else tuple(abs(size) * (10 if size < 0 else 1) for size in signature)
    )
    np.testing.assert_array_equal(window.values.reshape(-1), RISING.astype(np.float32) / 32768)


def test_samples_as_integers(tmp_path: Path) -> None:
    path = wav(tmp_path / "a.wav", RISING)
    (window,) = read_sound(path, port(1, 10, dtype=np.int16), Options())
    np.testing.assert_array_equal(window.values, RISING[None])
    (window,) = read_sound(path, port(1, 10, dtype=np.int8, scale=1 / 128), Options())
    np.testing.assert_array_equal(window.values, np.rint(RISING / 256)[None])
    (window,) = read_sound(path, port(1, 10, dtype=np.int16, scale=1 / 32768), Options())
    np.testing.assert_array_equal(window.values, RISING[None])


def test_files_of_other_widths(tmp_path: Path) -> None:
    for width, raw, expected in (
        (1, np.array([0, 128, 255], np.uint8), [-1, 0, 127 / 128]),
        (3, np.frombuffer(b"\x00\x00\x80\x00\x00\x00\xff\xff\x7f", np.uint8), [-1, 0, 1 - 2**-23]),
        (4, np.array([-(2**31), 0, 2**30], "<i4"), [-1, 0, 0.5]),
    ):
        (window,) = read_sound(wav(tmp_path / "a.wav", raw, width=width), port(3), Options())
        np.testing.assert_allclose(window.values, expected, rtol=1e-6)


def test_a_long_sound_is_cut_into_windows_and_the_last_filled_with_silence(tmp_path: Path) -> None:
    path = wav(tmp_path / "a.wav", RISING)
    windows = read_sound(path, port(1, 4, dtype=np.int16), Options())
    assert [window.values.tolist() for window in windows] == [
        [[0, 1000, 2000, 3000]],
        [[4000, 5000, 6000, 7000]],
        [[8000, 9000, 0, 0]],
    ]
    assert [(window.start, window.end) for window in windows] == [(0.0, 0.04), (0.04, 0.08), (0.08, 0.1)]
    windows = read_sound(path, port(1, 4, dtype=np.int16), Options(hop=0.03))
    assert [window.values[0, 0] for window in windows] == [0, 3000, 6000]


def test_a_short_sound_is_filled_with_silence(tmp_path: Path) -> None:
    (window,) = read_sound(wav(tmp_path / "a.wav", RISING[:3]), port(1, 5, dtype=np.int16), Options())
    assert window.values.tolist() == [[0, 1000, 2000, 0, 0]]


def test_channels_are_mixed_or_kept(tmp_path: Path) -> None:
    path = wav(tmp_path / "a.wav", np.array([[1000, 3000], [2000, 2000]], "<i2"), channels=2)
    (window,) = read_sound(path, port(1, 2, dtype=np.int16), Options())
    assert window.values.tolist() == [[2000, 2000]]
    (window,) = read_sound(path, port(1, 2, 2, dtype=np.int16), Options())
    assert window.values.tolist() == [[[1000, 3000], [2000, 2000]]]


def test_another_rate(tmp_path: Path) -> None:
    time = np.arange(400) / 400
    wave_400 = np.sin(2 * np.pi * 5 * time)[:, None]
    np.testing.assert_allclose(
        resampled(wave_400, 400, 100), np.sin(2 * np.pi * 5 * np.arange(100) / 100)[:, None], atol=1e-12
    )
    np.testing.assert_allclose(resampled(resampled(wave_400, 400, 800), 800, 400), wave_400, atol=1e-12)
    path = wav(tmp_path / "a.wav", RISING, rate=100)
    (window,) = read_sound(path, port(-1), Options(rate=200))
    assert window.values.shape == (20,)
    (window,) = read_sound(path, port(-1), Options(rate=100))
    assert window.values.shape == (10,)


@pytest.mark.parametrize(
    "unfit",
    [
        port(1, 1960, dtype=np.int8, scale=0.1, zero_point=-128),
        port(1, 10, dtype=np.int8),
        port(1, 10, dtype=np.int32),
        port(1, 49, 10, 1),
        port(4, 10),
        port(),
    ],
)
def test_inputs_that_do_not_take_samples(tmp_path: Path, unfit: Any) -> None:
    with pytest.raises(InputError, match=r"sound does not fit the input .* give a \.npy file"):
        read_sound(wav(tmp_path / "a.wav", RISING), unfit, Options())


def test_float_files_need_soundfile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    soundfile = pytest.importorskip("soundfile")
    path = tmp_path / "a.wav"
    soundfile.write(path, np.array([0.25, -0.5]), 100, subtype="FLOAT")
    (window,) = read_sound(str(path), port(2), Options())
    assert window.values.tolist() == [0.25, -0.5]
    path.write_bytes(b"noise")
    with pytest.raises(InputError, match=r"a\.wav: not a sound that can be read"):
        read_sound(str(path), port(2), Options())
    import sys

    monkeypatch.setitem(sys.modules, "soundfile", None)
    with pytest.raises(InputError, match=r"need soundfile: install gossamer\[audio\]"):
        read_sound(str(path), port(2), Options())


def test_an_empty_sound(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"a\.wav: the file holds no samples\."):
        read_sound(wav(tmp_path / "a.wav", RISING[:0]), port(2), Options())
