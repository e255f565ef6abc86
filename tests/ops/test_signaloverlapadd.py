"""SignalOverlapAdd: steps, channels, clamping."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.custom.signaloverlapadd import op
from tests.ops.cases import Case, run_case, tensor
from tests.ops.reference import assert_refused
from tests.ops.signals import signal

CASES = [
    signal("int16", [tensor([[1, 2, 3], [10, 20, 30]], np.int16)], [tensor([1, 12], np.int16)], T=7, frame_step=1),
    signal(
        "second_call",
        [tensor([[1, 2, 3], [10, 20, 30]], np.int16)],
        [tensor([31, 2, 13, 20], np.int16)],
        calls=2,
        T=7,
        frame_step=2,
    ),
    signal("clamps", [tensor([[20000, -20000]], np.int16)], [tensor([0], np.int16)], calls=3, T=7, frame_step=1),
    signal(
        "no_overlap", [tensor([[1, 2], [3, 4]], np.int16)], [tensor([1, 2, 3, 4], np.int16)], calls=2, T=7, frame_step=2
    ),
    signal(
        "float32_channels",
        [tensor([[[3.5, -0.5, -1.0], [-5.25, -0.0, -0.75]], [[-1.0, 0.75, 0.75], [-2.25, -1.75, -1.0]]], np.float32)],
        [tensor([[2.5, -6.5], [-2.0, -2.5]], np.float32)],
        calls=3,
        T=0,
        frame_step=1,
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


REFUSED = [
    (
        "frame_step must be in [1, 2], got 3",
        signal("", [tensor([[1, 2]], np.int16)], [tensor([1, 2, 3], np.int16)], T=7, frame_step=3),
    ),
    ("must have frames of samples", signal("", [tensor([1, 2], np.int16)], [tensor([1], np.int16)], T=7, frame_step=1)),
    (
        "custom option T is float32, the input is int16",
        signal("", [tensor([[1, 2]], np.int16)], [tensor([1], np.int16)], T=0, frame_step=1),
    ),
    (
        "output must be int16 here, got float32",
        signal("", [tensor([[1, 2]], np.int16)], [tensor([1], np.float32)], T=7, frame_step=1),
    ),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED, ids=[message for message, _ in REFUSED])
def test_refuses(message: str, refused: Case) -> None:
    assert_refused(op, refused, message)
