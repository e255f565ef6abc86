"""SignalFilterBank: bands, signs, overflow."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gossamer.ops.custom.signalfilterbank import op
from tests.ops.cases import Case, const, run_case, tensor
from tests.ops.invoking import assert_refused_by_invoke
from tests.ops.reference import assert_refused, output_of
from tests.ops.signals import signal


def bank(
    frequencies: Any = (0, 1),
    starts: Any = (0, 1),
    widths: Any = (1, 1),
    unweights: Any = (1, 2),
    num_channels: int = 1,
) -> Case:
    numbers = [tensor(values, np.int16) for values in ([1, 2], unweights)]
    places = [const(values, np.int16) for values in (frequencies, starts, widths)]
    return signal(
        "", [tensor([1, 2], np.uint32), *numbers, *places], [tensor([0], np.uint64)], num_channels=num_channels
    )


CASES = [
    signal(
        "bands",
        [
            tensor([10, 20, 30, 40, 50], np.uint32),
            tensor([1, 2, 3, 4, 5], np.int16),
            tensor([5, 4, 3, 2, 1], np.int16),
            tensor([0, 1, 3], np.int16),
            tensor([0, 1, 3], np.int16),
            tensor([1, 2, 2], np.int16),
        ],
        [tensor([180, 580], np.uint64)],
        num_channels=2,
    ),
    signal(
        "signs_and_overflow",
        [
            tensor([4294967295, 1], np.uint32),
            tensor([-1, 32767], np.int16),
            tensor([3, -32768], np.int16),
            tensor([0, 0], np.int16),
            tensor([0, 0], np.int16),
            tensor([2, 2], np.int16),
        ],
        [tensor([8589934589], np.uint64)],
        num_channels=1,
    ),
    signal(
        "no_width",
        [
            tensor([10, 20], np.uint32),
            tensor([3, 4], np.int16),
            tensor([5, 6], np.int16),
            tensor([0, 0, 1], np.int16),
            tensor([0, 0, 1], np.int16),
            tensor([1, -3, 1], np.int16),
        ],
        [tensor([50, 80], np.uint64)],
        num_channels=2,
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


def test_bands_that_are_known_when_it_runs() -> None:
    places = [tensor(values, np.int16) for values in ([0, 1], [0, 0], [1, 1])]
    weights = [tensor(values, np.int16) for values in ([2], [3])]
    case = signal("", [tensor([10, 20], np.uint32), *weights, *places], [tensor([0], np.uint64)], num_channels=1)
    assert output_of(op, case).tolist() == [20 * 2 + 10 * 3]
    places[2] = tensor([1, 2], np.int16)
    assert_refused_by_invoke(
        op, replace(case, inputs=[*case.inputs[:3], *places]), "a band needs elements 0 to 2 of input, which has 2"
    )


REFUSED = [
    ("channel_widths must have 2 elements, got 1", bank(widths=[1])),
    ("weights and unweights must have the same length", bank(unweights=[1, 2, 3])),
    ("a band needs elements 0 to 2 of input, which has 2", bank(frequencies=[0, 1], widths=[1, 2])),
    ("a band needs elements -1 to 0 of input, which has 2", bank(frequencies=[-1, 0])),
    ("a band needs elements 0 to 2 of weights, which has 2", bank(starts=[0, 2])),
    ("num_channels must be in [1, 16777216], got 0", bank(num_channels=0)),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED, ids=[message for message, _ in REFUSED])
def test_refuses(message: str, refused: Case) -> None:
    assert_refused(op, refused, message)
