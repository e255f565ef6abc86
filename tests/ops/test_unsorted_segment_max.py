"""UNSORTED_SEGMENT_MAX: greatest elements of segments in any order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.unsorted_segment_max import op
from tests.ops.cases import Case, const, run_case, tensor
from tests.ops.invoking import assert_refused_by_invoke
from tests.ops.reference import assert_refused

X = [[1, 2], [3, 4], [4, 3]]

CASES = [
    Case("fed_ids", [tensor(X), tensor([0, 1, 0], np.int32), const(2)], [tensor([[4, 3], [3, 4]])]),
    Case("no_segments", [tensor(X), tensor([-1, -1, -2], np.int32), const(0)], [tensor(np.zeros((0, 2)))]),
    Case("constant_ids", [tensor(X), const([0, 1, 0]), const(2)], [tensor([[4, 3], [3, 4]])]),
    Case(
        "empty_segment_and_negative_id",
        [tensor([5, 6], np.int32), const([-1, 1]), const(2)],
        [tensor([-2147483648, 6], np.int32)],
    ),
    Case("ids_of_two_dimensions", [tensor([[1, 9]]), tensor([[1, 0]], np.int32), const([2])], [tensor([9, 1])]),
    Case(
        "int32_limits", [tensor([2147483647, 1], np.int32), const([0, 0]), const(1)], [tensor([2147483647], np.int32)]
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


REFUSED = [
    ("segment id 2 must be less than num_segments 2", Case("", [tensor(X), const([0, 2, 0]), const(2)], [tensor(0)])),
    (
        "segment_ids [2] must be the first dimensions of data [3, 2]",
        Case("", [tensor(X), const([0, 0]), const(2)], [tensor(0)]),
    ),
    ("num_segments must not be negative, got -1", Case("", [tensor(X), const([0, 0, 0]), const(-1)], [tensor(0)])),
    ("num_segments must be a scalar, got [2]", Case("", [tensor(X), const([0, 0, 0]), const([1, 2])], [tensor(0)])),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED, ids=[message for message, _ in REFUSED])
def test_refuses(message: str, refused: Case) -> None:
    assert_refused(op, refused, message)


REFUSED_BY_INVOKE = [
    (
        "segment id 2 must be less than num_segments 2",
        Case("", [tensor(X), tensor([0, 2, 0], np.int32), const(2)], [tensor(0)]),
    ),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED_BY_INVOKE, ids=[message for message, _ in REFUSED_BY_INVOKE])
def test_refuses_values(message: str, refused: Case) -> None:
    assert_refused_by_invoke(op, refused, message)
