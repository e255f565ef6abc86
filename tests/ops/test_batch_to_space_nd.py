"""BATCH_TO_SPACE_ND: images into pixels of a block, with cropping."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.batch_to_space_nd import op
from tests.ops.cases import Case, const, run_case, tensor
from tests.ops.invoking import assert_refused_by_invoke
from tests.ops.reference import assert_refused

FOUR = np.arange(1, 5).reshape(4, 1, 1, 1)
NONE = [[0, 0], [0, 0]]

CASES = [
    Case("square", [tensor(FOUR), const([2, 2]), const(NONE)], [tensor([[[[1], [2]], [[3], [4]]]])]),
    Case("two_images", [tensor(FOUR), const([2, 1]), const(NONE)], [tensor([1, 3, 2, 4], shape=(2, 2, 1, 1))]),
    Case("cropped", [tensor(FOUR, np.int8), const([2, 2]), const([[0, 1], [1, 0]])], [tensor([[[[2]]]], np.int8)]),
    Case(
        "three_dimensions", [tensor([[[1], [2]], [[3], [4]]]), const([2]), const([[1, 0]])], [tensor([[[3], [2], [4]]])]
    ),
    Case("fed", [tensor(FOUR), tensor([2, 2], np.int32), tensor(NONE, np.int32)], [tensor([[[[1], [2]], [[3], [4]]]])]),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


REFUSED = [
    ("batch 4 must be a multiple of 3, the block", Case("", [tensor(FOUR), const([3, 1]), const(NONE)], [tensor(0)])),
    ("crops must not be negative", Case("", [tensor(FOUR), const([2, 2]), const([[-1, 0], [0, 0]])], [tensor(0)])),
    ("crops 2 and 1 exceed the size 2", Case("", [tensor(FOUR), const([2, 2]), const([[2, 1], [0, 0]])], [tensor(0)])),
    ("block_shape [0, 2] must be at least 1", Case("", [tensor(FOUR), const([0, 2]), const(NONE)], [tensor(0)])),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED, ids=[message for message, _ in REFUSED])
def test_refuses(message: str, refused: Case) -> None:
    assert_refused(op, refused, message)


REFUSED_BY_INVOKE = [
    ("batch 4 must be a multiple of 8", Case("", [tensor(FOUR), tensor([2, 4], np.int32), const(NONE)], [tensor(0)])),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED_BY_INVOKE, ids=[message for message, _ in REFUSED_BY_INVOKE])
def test_refuses_values(message: str, refused: Case) -> None:
    assert_refused_by_invoke(op, refused, message)
