"""SignalDelay: lengths and channels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.custom.signaldelay import op
from tests.ops.cases import Case, run_case, tensor
from tests.ops.reference import assert_refused
from tests.ops.signals import signal

X = tensor([1, 2, 3], np.int16)


CASES = [
    signal(
        "shorter_than_a_frame",
        [tensor([[1, 2, 3], [4, 5, 6]], np.int16)],
        [tensor([[3, 1, 2], [6, 4, 5]], np.int16)],
        calls=2,
        delay_length=1,
    ),
    signal(
        "longer_than_a_frame", [tensor([1, 2, 3], np.int16)], [tensor([2, 3, 1], np.int16)], calls=3, delay_length=5
    ),
    signal("none", [tensor([1, 2, 3], np.int16)], [tensor([1, 2, 3], np.int16)], calls=2, delay_length=0),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


REFUSED = [
    ("delay_length must be in [0, 16777216], got -1", signal("", [X], [X], delay_length=-1)),
    ("must have samples", signal("", [tensor(1, np.int16)], [tensor(1, np.int16)], delay_length=1)),
    (
        "16777216 samples are too many for [2, 1]",
        signal("", [tensor([[1], [2]], np.int16)], [tensor([[1], [2]], np.int16)], delay_length=1 << 24),
    ),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED, ids=[message for message, _ in REFUSED])
def test_refuses(message: str, refused: Case) -> None:
    assert_refused(op, refused, message)
