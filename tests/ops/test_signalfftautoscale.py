"""SignalFftAutoScale: shifts, silence, and the number whose magnitude is none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.custom.signalfftautoscale import op
from tests.ops.cases import Case, run_case, tensor
from tests.ops.reference import assert_refused
from tests.ops.signals import signal

CASES = [
    signal(
        "quiet", [tensor([1, -5, 3, 0], np.int16)], [tensor([4096, -20480, 12288, 0], np.int16), tensor(12, np.int32)]
    ),
    signal("loud", [tensor([1, -32767, 3, 0], np.int16)], [tensor([1, -32767, 3, 0], np.int16), tensor(0, np.int32)]),
    signal("silence", [tensor([0, 0, 0, 0], np.int16)], [tensor([0, 0, 0, 0], np.int16), tensor(0, np.int32)]),
    signal(
        "half",
        [tensor([-8192, 5, 16383, 1], np.int16)],
        [tensor([-16384, 10, 32766, 2], np.int16), tensor(1, np.int32)],
    ),
    signal(
        "the_least_is_last",
        [tensor([1, 2, 3, -32768], np.int16)],
        [tensor([1, 2, 3, -32768], np.int16), tensor(0, np.int32)],
    ),
    signal(
        "the_least_is_forgotten",
        [tensor([9, -32768, 3, -1], np.int16)],
        [tensor([8192, 0, 24576, -8192], np.int16), tensor(13, np.int32)],
    ),
    signal(
        "negative_after_the_least",
        [tensor([-32768, -5, -9, -3], np.int16)],
        [tensor([0, -10240, -18432, -6144], np.int16), tensor(11, np.int32)],
    ),
    signal(
        "negative_alone",
        [tensor([5, 6, -32768, -5], np.int16)],
        [tensor([5, 6, -32768, -5], np.int16), tensor(0, np.int32)],
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


REFUSED = [
    (
        "input must have 1 dimension",
        signal("", [tensor([[1]], np.int16)], [tensor([[1]], np.int16), tensor(0, np.int32)]),
    ),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED, ids=[message for message, _ in REFUSED])
def test_refuses(message: str, refused: Case) -> None:
    assert_refused(op, refused, message)
