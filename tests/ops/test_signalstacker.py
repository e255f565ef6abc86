"""SignalStacker: contexts and steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.custom.signalstacker import op
from tests.ops.cases import Case, run_case, tensor
from tests.ops.reference import REFERENCE, assert_refused
from tests.ops.signals import signal


def stacked(left: int = 0, step: int = 1, channels: int = 2) -> Case:
    options = {"num_channels": channels, "stacker_left_context": left, "stacker_right_context": 0, "stacker_step": step}
    return signal("", [tensor([1, 2], np.int16)], [tensor([1, 2], np.int16), tensor(True, np.bool_)], **options)


CASES = [
    signal(
        "left",
        [tensor([1, 2], np.int16)],
        [tensor([1, 2, 1, 2, 1, 2], np.int16), tensor(True, np.bool_)],
        num_channels=2,
        stacker_left_context=2,
        stacker_right_context=0,
        stacker_step=1,
    ),
    signal(
        "right_needs_more",
        [tensor([1, 2], np.int16)],
        [tensor([1, 2, 1, 2, 1, 2], np.int16), tensor(True, np.bool_)],
        calls=2,
        num_channels=2,
        stacker_left_context=1,
        stacker_right_context=1,
        stacker_step=1,
    ),
    signal(
        "step",
        [tensor([1], np.int16)],
        [tensor([1, 1, 1], np.int16), tensor(True, np.bool_)],
        calls=5,
        num_channels=1,
        stacker_left_context=1,
        stacker_right_context=1,
        stacker_step=3,
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


def test_between_stacks_it_is_0() -> None:
    outputs = [tensor([0] * 4, np.int16), tensor(False, np.bool_)]
    options = {"num_channels": 2, "stacker_left_context": 0, "stacker_right_context": 1, "stacker_step": 1}
    run_case(REFERENCE, op, signal("", [tensor([1, 2], np.int16)], outputs, **options))


REFUSED = [
    ("stacker_step must be in [1, 2], got 3", stacked(left=1, step=3)),
    ("contexts must not be negative, got -1 and 0", stacked(left=-1)),
    ("stacker_step must be in [1, 16777216], got 0", stacked(step=0)),
    ("frames of 2 are too many", stacked(left=1 << 30)),
    ("input must have shape [3], got [2]", stacked(channels=3)),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED, ids=[message for message, _ in REFUSED])
def test_refuses(message: str, refused: Case) -> None:
    assert_refused(op, refused, message)
