"""SignalFramer: steps, channels, prefill."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.custom.signalframer import op
from tests.ops.cases import Case, run_case, tensor
from tests.ops.reference import REFERENCE, assert_refused
from tests.ops.signals import signal


def framed(size: int = 2, step: int = 1, sound: Any = (1, 2, 3, 4)) -> Case:
    outputs = [tensor([[0]], np.int16), tensor(True, np.bool_)]
    return signal("", [tensor(sound, np.int16)], outputs, frame_size=size, frame_step=step, prefill=True)


CASES = [
    signal(
        "prefilled",
        [tensor([1, 2, 3, 4], np.int16)],
        [tensor([[0, 0, 0, 1, 2], [0, 1, 2, 3, 4]], np.int16), tensor(True, np.bool_)],
        frame_size=5,
        frame_step=2,
        prefill=True,
    ),
    signal(
        "enough",
        [tensor([1, 2, 3, 4], np.int16)],
        [tensor([[3, 4, 1], [1, 2, 3]], np.int16), tensor(True, np.bool_)],
        calls=2,
        frame_size=3,
        frame_step=2,
        prefill=False,
    ),
    signal(
        "channels",
        [tensor([[1, 2, 3, 4], [5, 6, 7, 8]], np.int16)],
        [
            tensor(
                [[[3, 4, 1], [4, 1, 2], [1, 2, 3], [2, 3, 4]], [[7, 8, 5], [8, 5, 6], [5, 6, 7], [6, 7, 8]]], np.int16
            ),
            tensor(True, np.bool_),
        ],
        calls=2,
        frame_size=3,
        frame_step=1,
        prefill=True,
    ),
    signal(
        "frames_without_overlap",
        [tensor([1, 2, 3, 4], np.int16)],
        [tensor([[1, 2], [3, 4]], np.int16), tensor(True, np.bool_)],
        frame_size=2,
        frame_step=2,
        prefill=False,
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


def test_frames_are_0_until_there_are_enough_samples() -> None:
    outputs = [tensor([[0, 0, 0], [0, 0, 0], [1, 2, 3]], np.int16), tensor(False, np.bool_)]
    options = {"frame_size": 3, "frame_step": 1, "prefill": False}
    run_case(REFERENCE, op, signal("", [tensor([1, 2, 3], np.int16)], outputs, **options))


REFUSED = [
    ("frame_step must be in [1, 2], got 3", framed(size=2, step=3)),
    ("has no whole steps of 3 samples", framed(size=3, step=3)),
    ("frame_size must be in [1, 16777216], got 0", framed(size=0)),
    ("must have samples", framed(sound=1)),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED, ids=[message for message, _ in REFUSED])
def test_refuses(message: str, refused: Case) -> None:
    assert_refused(op, refused, message)
