"""SignalEnergy: squares, and which of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.custom.signalenergy import op
from tests.ops.cases import Case, run_case, tensor
from tests.ops.reference import assert_refused, output_of
from tests.ops.signals import signal

X, Y = tensor([1, 2, 3, 4], np.int16), tensor([0, 0], np.uint32)


CASES = [
    signal(
        "all",
        [tensor([3, 4, -5, 12, -32768, -32768], np.int16)],
        [tensor([25, 169, 2147483648], np.uint32)],
        start_index=0,
        end_index=3,
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


def test_what_is_not_computed_is_0() -> None:
    x = tensor([1, 2, 3, 4, 5, 6], np.int16)
    case = signal("", [x], [tensor([0] * 3, np.uint32)], start_index=1, end_index=2)
    assert output_of(op, case).tolist() == [0, 25, 0]


REFUSED = [
    ("indices 2 to 1 are not within 2 values", signal("", [X], [Y], start_index=2, end_index=1)),
    ("indices 0 to 3 are not within 2 values", signal("", [X], [Y], start_index=0, end_index=3)),
    ("indices -1 to 1 are not within 2 values", signal("", [X], [Y], start_index=-1, end_index=1)),
    (
        "an even number of elements",
        signal("", [tensor([1, 2, 3], np.int16)], [tensor([0], np.uint32)], start_index=0, end_index=1),
    ),
    (
        "input must have 1 dimension",
        signal("", [tensor([[1, 2]], np.int16)], [tensor([0], np.uint32)], start_index=0, end_index=1),
    ),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED, ids=[message for message, _ in REFUSED])
def test_refuses(message: str, refused: Case) -> None:
    assert_refused(op, refused, message)
