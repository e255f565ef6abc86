"""SignalWindow: windows, shifts, clamping."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.custom.signalwindow import op
from tests.ops.cases import Case, run_case, tensor
from tests.ops.reference import assert_refused
from tests.ops.signals import signal

CASES = [
    signal(
        "window",
        [tensor([100, -200, 300, -400], np.int16), tensor([1, 2, 3, 4], np.int16)],
        [tensor([50, -200, 450, -800], np.int16)],
        shift=1,
    ),
    signal(
        "two_windows",
        [tensor([[100, -200, 300, -401]], np.int16), tensor([4096, 2048], np.int16)],
        [tensor([[100, -100, 300, -201]], np.int16)],
        shift=12,
    ),
    signal(
        "clamps",
        [tensor([32767, -32768, -32768], np.int16), tensor([4, 4, -32768], np.int16)],
        [tensor([32767, -32768, 32767], np.int16)],
        shift=0,
    ),
    signal(
        "rounds_down",
        [tensor([1, -1, -5], np.int16), tensor([1, 1, 1], np.int16)],
        [tensor([0, -1, -1], np.int16)],
        shift=31,
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


REFUSED = [
    (
        "weights must have 1 dimension",
        signal("", [tensor([1], np.int16), tensor([[1]], np.int16)], [tensor([0], np.int16)], shift=0),
    ),
    (
        "has no whole windows of 2 samples",
        signal("", [tensor([1, 2, 3], np.int16), tensor([1, 2], np.int16)], [tensor([0, 0, 0], np.int16)], shift=0),
    ),
    (
        "input must have a dimension",
        signal("", [tensor(1, np.int16), tensor([1], np.int16)], [tensor(0, np.int16)], shift=0),
    ),
    (
        "shift must be in [0, 31], got 32",
        signal("", [tensor([1], np.int16), tensor([1], np.int16)], [tensor([0], np.int16)], shift=32),
    ),
    (
        "custom option shift must be an integer of 32 bits, got None",
        signal("", [tensor([1], np.int16), tensor([1], np.int16)], [tensor([0], np.int16)]),
    ),
    (
        "custom option shift must be an integer of 32 bits, got 1.5",
        signal("", [tensor([1], np.int16), tensor([1], np.int16)], [tensor([0], np.int16)], shift=1.5),
    ),
    (
        "custom option shift must be an integer of 32 bits, got 4294967296",
        signal("", [tensor([1], np.int16), tensor([1], np.int16)], [tensor([0], np.int16)], shift=1 << 32),
    ),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED, ids=[message for message, _ in REFUSED])
def test_refuses(message: str, refused: Case) -> None:
    assert_refused(op, refused, message)
