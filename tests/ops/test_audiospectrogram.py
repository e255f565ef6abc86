"""AudioSpectrogram: windows, channels, options."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from flatbuffers import flexbuffers

from gossamer.ops.custom.audiospectrogram import op
from tests.ops.cases import Case, run_case, tensor
from tests.ops.reference import assert_refused, output_of


def spectrogram(id: str, sound: Any, expected: Any, **options: Any) -> Case:
    """The sound is given channel by channel."""
    samples = np.array(sound, np.float32).T
    return Case(id, [tensor(samples)], [tensor(expected)], custom_options=bytes(flexbuffers.Dumps(options)))


# The Hann window of 2 samples is [0, 1], that of 4 is [0, 0.5, 1, 0.5].
CASES = [
    spectrogram("pairs", [[3, 1, 2]], [[[1, 1], [4, 4]]], window_size=2, stride=1, magnitude_squared=True),
    spectrogram("magnitude", [[3, 1, 2]], [[[1, 1], [2, 2]]], window_size=2, stride=1, magnitude_squared=False),
    spectrogram("constant", [[1] * 4], [[[4, 1, 0]]], window_size=4, stride=1, magnitude_squared=True),
    spectrogram(
        "channels_and_stride",
        [[0, 2, 9, 0, 4], [0, 3, 9, 0, 5]],
        [[[2, 2], [4, 4]], [[3, 3], [5, 5]]],
        window_size=2,
        stride=3,
    ),
    spectrogram("filled_up_to_4", [[1, 1, 1]], [[[1.5, np.sqrt(9 / 8), 0]]], window_size=3, stride=1),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


def test_too_few_samples_make_no_window() -> None:
    case = spectrogram("", [[1, 2, 3]], np.zeros((1, 1, 33)), window_size=60, stride=2)
    assert output_of(op, case).shape == (1, 0, 33)


REFUSED = [
    ("input must have 2 dimensions, got 1", spectrogram("", [1, 2], 0, window_size=2, stride=1)),
    ("window_size must be in [2, 1073741824], got 1", spectrogram("", [[1, 2]], 0, window_size=1, stride=1)),
    ("window_size must be in [2, 1073741824], got 0", spectrogram("", [[1, 2]], 0, stride=1)),
    ("window_size must be in", spectrogram("", [[1, 2]], 0, window_size=2**62, stride=1)),
    ("stride must be at least 1, got 0", spectrogram("", [[1, 2]], 0, window_size=2)),
    ("custom options: ", spectrogram("", [[1, 2]], 0, window_size="wide", stride=1)),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED, ids=[message for message, _ in REFUSED])
def test_refuses(message: str, refused: Case) -> None:
    assert_refused(op, refused, message)
