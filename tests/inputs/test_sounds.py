"""Sounds into tensors."""

from __future__ import annotations

import sys
import wave
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gossamer.errors import InputError
from gossamer.inputs.sounds import Options, read_sound
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
    pytest.importorskip("soxr", reason="the extra 'audio' is not installed")
    time = np.arange(4000) / 400
    tone = np.rint(2**14 * np.sin(2 * np.pi * 5 * time)).astype("<i2")
    path = wav(tmp_path / "a.wav", tone, rate=400)
    (window,) = read_sound(path, port(-1), Options(rate=100))
    assert (window.values.shape, window.rate, window.end) == ((1000,), 100, 10.0)
    expected = 0.5 * np.sin(2 * np.pi * 5 * np.arange(1000) / 100)
    np.testing.assert_allclose(window.values[100:-100], expected[100:-100], atol=1e-3)
    (window,) = read_sound(path, port(-1), Options(rate=400))
    assert window.values.shape == (4000,)


def test_another_rate_needs_soxr(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "soxr", None)
    path = wav(tmp_path / "a.wav", RISING, rate=100)
    with pytest.raises(InputError, match=r"100 Hz, .* takes 200 Hz; resampling needs soxr: install gossamer\[audio\]"):
        read_sound(path, port(-1), Options(rate=200))


def test_what_the_model_does_not_say_is_assumed_and_told(tmp_path: Path) -> None:
    path = wav(tmp_path / "a.wav", np.zeros(16000, "<i2"), rate=16000)
    own = "sound taken at its own rate, 16000 Hz, as the model does not say; --rate resamples it"
    second = "sound taken at 16000 Hz, of which 15600 samples are about a second, as the model does not say; --rate"
    for to, options, notes in (
        (port(-1), Options(), [own]),
        (port(1, 640), Options(), [own]),
        (port(1, 640), Options(rate=16000), []),
        (port(15600), Options(), [f"{second} says otherwise"]),
        (
            port(1, 49, 40),
            Options(rate=16000),
            ["49 x 40 features of 30 ms every 20 ms (micro), as the shape suggests; --features says otherwise"],
        ),
        (
            port(1, 49, 40),
            Options(features=("mfcc", 30.0, 20.0)),
            ["sound taken at 16000 Hz, as the model does not say; --rate says otherwise"],
        ),
    ):
        assert list(read_sound(path, to, options)[0].assumed) == notes


def test_features_are_cut_into_windows_of_whole_frames(tmp_path: Path) -> None:
    to = port(1, 49, 40, 1, dtype=np.int8, scale=0.1, zero_point=-128)
    loud = np.resize(np.array([9000, -9000], "<i2"), 32000)
    (window,) = read_sound(wav(tmp_path / "a.wav", loud[:16000], rate=16000), to, Options())
    assert (window.start, window.end, window.values.shape) == (0.0, 0.99, (1, 49, 40, 1))
    windows = read_sound(wav(tmp_path / "a.wav", loud, rate=16000), to, Options())
    assert [(window.start, window.end) for window in windows] == [(0.0, 0.99), (0.99, 1.98)]
    np.testing.assert_array_equal(windows[1].values, windows[0].values)  # each begins anew
    windows = read_sound(wav(tmp_path / "a.wav", loud, rate=16000), to, Options(hop=0.5))
    assert [window.start for window in windows] == [0.0, 0.5, 1.0]
    (window,) = read_sound(wav(tmp_path / "a.wav", loud, rate=16000), port(1, -1, 40), Options())
    assert window.values.shape == (1, 99, 40)


@pytest.mark.parametrize(
    "unfit",
    [
        port(1, 196, dtype=np.int8, scale=0.1, zero_point=-128),
        port(1, 10, dtype=np.int8),
        port(1, 10, dtype=np.int32),
        port(1, 99, 64, 1),
        port(4, 10),
        port(),
    ],
)
def test_inputs_that_do_not_take_samples(tmp_path: Path, unfit: Any) -> None:
    with pytest.raises(InputError, match=r"sound does not fit the input .* given as a \.npy file"):
        read_sound(wav(tmp_path / "a.wav", RISING), unfit, Options())


def test_other_files_need_soundfile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    soundfile = pytest.importorskip("soundfile")
    path = tmp_path / "a.flac"
    soundfile.write(path, np.array([0.25, -0.5]), 100)
    (window,) = read_sound(str(path), port(2), Options())
    assert window.values.tolist() == [0.25, -0.5]
    (window,) = read_sound("standard input", port(2), Options(), path.read_bytes())
    assert window.values.tolist() == [0.25, -0.5]
    path.write_bytes(b"noise")
    with pytest.raises(InputError, match=r"a\.flac: not a sound that can be read \(Format not recognised\)\."):
        read_sound(str(path), port(2), Options())
    monkeypatch.setitem(sys.modules, "soundfile", None)
    with pytest.raises(InputError, match=r"need soundfile: install gossamer\[audio\]"):
        read_sound(str(path), port(2), Options())


def test_an_empty_sound(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"a\.wav: the file holds no samples\."):
        read_sound(wav(tmp_path / "a.wav", RISING[:0]), port(2), Options())
