"""SPACE_TO_DEPTH: blocks of pixels into channels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.space_to_depth import op
from gossamer.schema import SpaceToDepthOptions
from tests.ops.cases import Case, run_case, tensor
from tests.ops.reference import assert_refused

IMAGE = np.arange(8).reshape(1, 2, 4, 1)
TWO = SpaceToDepthOptions(block_size=2)

CASES = [
    Case("one_channel", [tensor(IMAGE)], [tensor([[[[0, 1, 4, 5], [2, 3, 6, 7]]]])], TWO),
    Case(
        "two_channels",
        [tensor(IMAGE.reshape(1, 2, 2, 2), np.int8)],
        [tensor([[[[0, 1, 2, 3, 4, 5, 6, 7]]]], np.int8)],
        TWO,
    ),
    Case("blocks_of_one", [tensor(IMAGE, np.int64)], [tensor(IMAGE, np.int64)], SpaceToDepthOptions(block_size=1)),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


REFUSED = [
    (
        "height and width 2 x 4 must be multiples of block_size 3",
        Case("", [tensor(IMAGE)], [tensor(0)], SpaceToDepthOptions(block_size=3)),
    ),
    ("block_size must be at least 1, got 0", Case("", [tensor(IMAGE)], [tensor(0)], SpaceToDepthOptions())),
    ("input must have 4 dimensions, got 3 [2, 4, 1]", Case("", [tensor(IMAGE[0])], [tensor(0)], TWO)),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED, ids=[message for message, _ in REFUSED])
def test_refuses(message: str, refused: Case) -> None:
    assert_refused(op, refused, message)
