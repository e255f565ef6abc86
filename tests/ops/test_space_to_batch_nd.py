"""SPACE_TO_BATCH_ND: pixels of a block into images, with padding."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.space_to_batch_nd import op
from tests.ops.cases import Case, const, run_case, tensor
from tests.ops.invoking import assert_refused_by_invoke
from tests.ops.reference import assert_refused

IMAGE = np.arange(1, 5).reshape(1, 2, 2, 1)
NONE = [[0, 0], [0, 0]]

CASES = [
    Case("square", [tensor(IMAGE), const([2, 2]), const(NONE)], [tensor(np.arange(1, 5).reshape(4, 1, 1, 1))]),
    Case(
        "two_images",
        [tensor([[[[1]], [[2]]], [[[3]], [[4]]]]), const([2, 1]), const(NONE)],
        [tensor([1, 3, 2, 4], shape=(4, 1, 1, 1))],
    ),
    Case(
        "padded",
        [tensor(IMAGE), const([2, 2]), const([[0, 0], [2, 0]])],
        [tensor([0, 1, 0, 2, 0, 3, 0, 4], shape=(4, 1, 2, 1))],
    ),
    Case(
        "padded_with_the_zero_point",
        [tensor([[[7]]], np.int8, scale=1, zero_point=-5), const([2]), const([[1, 0]])],
        [tensor([[[-5]], [[7]]], np.int8, scale=1, zero_point=-5)],
        version=2,
    ),
    Case(
        "fed",
        [tensor([[[1], [2]]], np.int64), tensor([2], np.int32), tensor([[0, 0]], np.int32)],
        [tensor([[[1]], [[2]]], np.int64)],
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


REFUSED = [
    (
        "padded size 2 must be a multiple of its block 3",
        Case("", [tensor(IMAGE), const([3, 1]), const(NONE)], [tensor(0)]),
    ),
    ("block_shape [0, 1] must be at least 1", Case("", [tensor(IMAGE), const([0, 1]), const(NONE)], [tensor(0)])),
    ("block_shape must have shape [2], got [1]", Case("", [tensor(IMAGE), const([2]), const(NONE)], [tensor(0)])),
    (
        "paddings must be in [0, 2147483647], got [[-1, 1], [0, 0]]",
        Case("", [tensor(IMAGE), const([1, 1]), const([[-1, 1], [0, 0]])], [tensor(0)]),
    ),
    (
        "input must have 3 to 4 dimensions, got 2",
        Case("", [tensor(IMAGE[0, 0]), const([1]), const([[0, 0]])], [tensor(0)]),
    ),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED, ids=[message for message, _ in REFUSED])
def test_refuses(message: str, refused: Case) -> None:
    assert_refused(op, refused, message)


REFUSED_BY_INVOKE = [
    (
        "padded size 2 must be a multiple of its block 3",
        Case("", [tensor(IMAGE), tensor([1, 3], np.int32), const(NONE)], [tensor(0)]),
    ),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED_BY_INVOKE, ids=[message for message, _ in REFUSED_BY_INVOKE])
def test_refuses_values(message: str, refused: Case) -> None:
    assert_refused_by_invoke(op, refused, message)
