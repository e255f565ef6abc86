"""SignalFilterBankSpectralSubtraction: smoothing, clamping, overflow, state."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.custom.signalfilterbankspectralsubtraction import op
from tests.ops.cases import Case, run_case, tensor
from tests.ops.reference import assert_refused
from tests.ops.signals import signal

OPTIONS = {
    "alternate_one_minus_smoothing": 15401,
    "alternate_smoothing": 983,
    "clamping": False,
    "min_signal_remaining": 819,
    "num_channels": 4,
    "one_minus_smoothing": 15975,
    "smoothing": 409,
    "smoothing_bits": 10,
    "spectral_subtraction_bits": 14,
}


CASES = [
    signal(
        "first",
        [tensor([0, 1, 1000, 70000], np.uint32)],
        [tensor([0, 0, 975, 65800], np.uint32), tensor([0, 61, 25562, 4300625], np.uint32)],
        alternate_one_minus_smoothing=15401,
        alternate_smoothing=983,
        clamping=False,
        min_signal_remaining=819,
        num_channels=4,
        one_minus_smoothing=15975,
        smoothing=409,
        smoothing_bits=10,
        spectral_subtraction_bits=14,
    ),
    signal(
        "tenth",
        [tensor([0, 1, 1000, 70000], np.uint32)],
        [tensor([0, 0, 776, 37704], np.uint32), tensor([0, 469, 228736, 33071063], np.uint32)],
        calls=10,
        alternate_one_minus_smoothing=15401,
        alternate_smoothing=983,
        clamping=False,
        min_signal_remaining=819,
        num_channels=4,
        one_minus_smoothing=15975,
        smoothing=409,
        smoothing_bits=10,
        spectral_subtraction_bits=14,
    ),
    signal(
        "clamped",
        [tensor([5, 100, 1000, 70000], np.uint32)],
        [tensor([0, 4, 49, 8155], np.uint32), tensor([5120, 102400, 1024000, 63328289], np.uint32)],
        calls=3,
        alternate_one_minus_smoothing=15401,
        alternate_smoothing=-1,
        clamping=True,
        min_signal_remaining=819,
        num_channels=4,
        one_minus_smoothing=15975,
        smoothing=30000,
        smoothing_bits=10,
        spectral_subtraction_bits=14,
    ),
    signal(
        "overflow",
        [tensor([4294967295, 2147483648, 4194304, 1073741824], np.uint32)],
        [tensor([4294966477, 2147483648, 3435134976, 3221225472], np.uint32), tensor([0, 0, 0, 0], np.uint32)],
        calls=2,
        alternate_one_minus_smoothing=15401,
        alternate_smoothing=983,
        clamping=False,
        min_signal_remaining=819,
        num_channels=4,
        one_minus_smoothing=15975,
        smoothing=-1,
        smoothing_bits=31,
        spectral_subtraction_bits=0,
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


REFUSED = [
    (
        "input must have shape [4], got [3]",
        signal("", [tensor([0] * 3, np.uint32)], [tensor([0] * 3, np.uint32)] * 2, **OPTIONS),
    ),
    (
        "smoothing_bits must be in [0, 31], got 32",
        signal("", [tensor([0] * 4, np.uint32)], [tensor([0] * 4, np.uint32)] * 2, **OPTIONS | {"smoothing_bits": 32}),
    ),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED, ids=[message for message, _ in REFUSED])
def test_refuses(message: str, refused: Case) -> None:
    assert_refused(op, refused, message)
