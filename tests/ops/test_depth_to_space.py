"""DEPTH_TO_SPACE: channels into blocks of pixels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.depth_to_space import op
from gossamer.schema import DepthToSpaceOptions
from tests.ops.cases import Case, run_case, tensor
from tests.ops.reference import assert_refused

TWO = DepthToSpaceOptions(block_size=2)

CASES = [
    Case("one_channel", [tensor([[[[0, 1, 4, 5], [2, 3, 6, 7]]]])], [tensor(np.arange(8).reshape(1, 2, 4, 1))], TWO),
    Case(
        "two_channels",
        [tensor([[[[0, 1, 2, 3, 4, 5, 6, 7]]]], np.uint8)],
        [tensor(np.arange(8).reshape(1, 2, 2, 2), np.uint8)],
        TWO,
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


REFUSED = [
    (
        "3 channels must be a multiple of block_size squared, 4",
        Case("", [tensor(np.zeros((1, 1, 1, 3)))], [tensor(0)], TWO),
    ),
    (
        "block_size must be at least 1, got -1",
        Case("", [tensor(np.zeros((1, 1, 1, 4)))], [tensor(0)], DepthToSpaceOptions(block_size=-1)),
    ),
    ("is too large", Case("", [tensor(np.zeros((1, 1, 1, 0)))], [tensor(0)], DepthToSpaceOptions(block_size=1 << 30))),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED, ids=[message for message, _ in REFUSED])
def test_refuses(message: str, refused: Case) -> None:
    assert_refused(op, refused, message)
