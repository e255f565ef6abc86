"""Features of sounds: the numbers are those of the frontends that models were trained with."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import pytest

from gossamer.errors import InputError
from gossamer.inputs.features import Features, features_of, parse
from tests.inputs.ports import port

MICRO = port(1, 1960, dtype=np.int8, scale=0.1017, zero_point=-128)


def sound() -> Any:
    """A second of noise at 16 kHz that swells four times, less each time, as int16."""
    n = np.arange(16000, dtype=np.int64)
    return (((n * n * 7919 + n * 104729) % 65536 - 32768) * (n % 4000) // 4000 >> (n // 4000)).astype(np.int16)


@pytest.mark.parametrize(
    ("channels", "window", "step", "rate", "frames", "checksum", "some"),
    [
        (40, 30, 20, 16000, 49, 234631385, [564, 524, 573, 482, 550, 522]),
        (32, 25, 10, 16000, 98, 2997415602, [564, 478, 566, 534, 585, 494]),
        (40, 30, 20, 44100, 17, 3176615794, [651, 577, 589, 548, 638, 564]),
    ],
)
def test_micro_is_exactly_the_frontend(
    channels: int, window: float, step: float, rate: int, frames: int, checksum: int, some: list[int]
) -> None:
    """The figures are those of TensorFlow's audio_microfrontend with the settings of micro_speech."""
    kind = Features("micro", frames, channels, window, step)
    real = kind.numbers(sound() / 2.0**15, rate, port(1, frames, channels))
    values = np.rint(real * 25.6).astype("<u2")
    assert values.shape == (frames, channels)
    assert values[7, :6].tolist() == some
    assert zlib.crc32(values.tobytes()) == checksum


def test_micro_in_bytes_is_what_devices_compute() -> None:
    """As the example micro_speech scales them: (256 v + 333) div 666 - 128."""
    features = features_of(MICRO, None)
    assert features == Features("micro", 49, 40, 30.0, 20.0)
    numbers = features.numbers(sound() / 2.0**15, 16000, MICRO)
    assert numbers.dtype == np.int8
    # Values of the test above: 564, 524, 573, 482, 550, 522.
    assert numbers[7, :6].tolist() == [89, 73, 92, 57, 83, 73]
    assert features.numbers(np.zeros(16000), 16000, MICRO).tolist() == [[-128] * 40] * 49


def test_mfcc_and_lfbe_are_those_of_tf_signal() -> None:
    mfcc = features_of(port(1, 49, 10, 1), None)
    assert mfcc is not None
    numbers = mfcc.numbers(sound() / 2.0**15, 16000, port(1, 49, 10, 1))
    expected = [25.0054, -2.9245, 0.6979, 0.0070, 0.0684, 0.0736, 0.0788, -0.0493, 0.5159, -0.3959]
    np.testing.assert_allclose(numbers[10], expected, atol=1e-4)
    np.testing.assert_allclose(numbers.sum(), 205.7543, rtol=1e-5)
    lfbe = features_of(port(1, 30, 1, 40), ("lfbe", 64.0, 32.0))
    assert lfbe is not None
    numbers = lfbe.numbers(sound() / 2.0**15, 16000, port(1, 30, 1, 40))
    np.testing.assert_allclose(numbers[5, ::8], [0.19613, 0.44586, 0.71246, 0.82256, 0.93506], atol=1e-5)
    np.testing.assert_allclose(numbers.sum(), 594.5771, rtol=1e-5)


@pytest.mark.parametrize(
    ("to", "asked", "expected"),
    [
        (port(1, 1960), None, Features("micro", 49, 40, 30, 20)),
        (port(1, 49, 40), None, Features("micro", 49, 40, 30, 20)),
        (port(-1, 49, 40, 1), None, Features("micro", 49, 40, 30, 20)),
        (port(1, 3, 40), ("micro", 30.0, 10.0), Features("micro", 3, 40, 30, 10)),
        (port(1, 1, 40), None, Features("micro", 1, 40, 30, 20)),
        (port(1, -1, 40), None, Features("micro", 0, 40, 30, 20)),
        (port(1, 490), None, Features("mfcc", 49, 10, 30, 20)),
        (port(-1, 49, 10, 1, dtype=np.int8, scale=0.58, zero_point=83), None, Features("mfcc", 49, 10, 30, 20)),
        (port(1, 98, 13), None, Features("mfcc", 98, 13, 30, 20)),
        (port(1, 30, 1, 40, dtype=np.int8, scale=0.0037, zero_point=-128), None, Features("lfbe", 30, 40, 64, 32)),
        (port(1, 99, 64), None, None),
        (port(1, 99, 64), ("lfbe", 25.0, 10.0), Features("lfbe", 99, 64, 25, 10)),
        (port(1, 15600), None, None),
        (port(-1, 10), None, None),
        (port(4, 10), None, None),
        (port(1, 10, 12), None, Features("mfcc", 10, 12, 30, 20)),
        (port(1, 224, 224, 3), ("micro", 30.0, 20.0), None),
        (port(1, 49, 40, dtype=np.int32), None, None),
        (port(1, 49, 40, dtype=np.object_), ("micro", 30.0, 20.0), None),
        (port(), None, None),
    ],
)
def test_the_features_that_an_input_takes(to: Any, asked: Any, expected: Features | None) -> None:
    assert features_of(to, asked) == expected


def test_kinds_and_times() -> None:
    assert parse("mfcc") == ("mfcc", 30.0, 20.0)
    assert parse("micro:30:10") == ("micro", 30.0, 10.0)
    for text in ("mel", "micro:30", "micro:0:10", "micro:30:x", "micro:30:nan"):
        with pytest.raises(ValueError, match=r"must be one of|could not convert|a window and a step"):
            parse(text)


def test_micro_needs_the_frequencies_that_it_looks_at() -> None:
    with pytest.raises(InputError, match="need sounds of more than 15000 Hz, got 8000 Hz"):
        Features("micro", 49, 40, 30, 20).numbers(np.zeros(8000), 8000, port(1, 49, 40))
