"""HASHTABLE_LOOKUP: rows by key."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.hashtable_lookup import op
from tests.ops.cases import Case, run_case, tensor
from tests.ops.reference import assert_refused


def vector(*values: int) -> Any:
    return tensor(values, np.int32)


def hits(*values: int) -> Any:
    return tensor(values, np.uint8)


ROWS = [[1, 2], [3, 4], [5, 6]]
LONGEST = (-(2**31), 0, 2**31 - 1)

CASES = [
    Case(
        "rows", [vector(11, -3, 0), vector(-3, 0, 7), tensor(ROWS)], [tensor([[0, 0], [1, 2], [3, 4]]), hits(0, 1, 1)]
    ),
    Case(
        "scalars",
        [vector(7, 7), vector(7, 8), tensor([4, 5], np.int64)],
        [tensor([4, 4], np.int64), hits(1, 1)],
    ),
    Case(
        "strings",
        [vector(2, 3), vector(1, 2), tensor([b"a", b"bc"], object)],
        [tensor([b"bc", b""], object), hits(1, 0)],
    ),
    Case("far_apart", [vector(*LONGEST), vector(*LONGEST), tensor([1, 2, 3])], [tensor([1, 2, 3]), hits(1, 1, 1)]),
    Case("equal_keys", [vector(5), vector(5, 5, 5, 5), tensor([1, 2, 3, 4])], [tensor([3]), hits(1)]),
    Case(
        "unsorted_keys",
        [vector(3, 0, 9), vector(9, 3, 0), tensor([1, 2, 3], np.int8)],
        [tensor([2, 0, 0], np.int8), hits(1, 0, 0)],
        notes="the search expects 9 behind 3 and 0 before it",
    ),
    *(
        Case(
            str(np.dtype(dtype)),
            [vector(2, 1, 5), vector(1, 2), tensor([[1, 2], [3, 4]], dtype)],
            [tensor([[3, 4], [1, 2], [0, 0]], dtype), hits(1, 1, 0)],
        )
        for dtype in (np.uint8, np.float16, np.int16, np.float64, np.complex64)
    ),
    Case("bool", [vector(1, 2), vector(1), tensor([True], bool)], [tensor([True, False], bool), hits(1, 0)]),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


REFUSED = [
    (
        "lookup must have 1 dimensions, got 0",
        Case("", [tensor(1, np.int32), vector(1), tensor([1])], [tensor([1]), hits(1)]),
    ),
    (
        "must have the same number of rows, at least 1",
        Case("", [vector(1), vector(1, 2), tensor([1])], [tensor([1]), hits(1)]),
    ),
    (
        "keys [0] and values [0] must have the same number of rows, at least 1",
        Case("", [vector(1), vector(), tensor(np.zeros(0))], [tensor([1]), hits(1)]),
    ),
    ("values must have at least 1 dimension", Case("", [vector(1), vector(1), tensor(1)], [tensor([1]), hits(1)])),
    (
        "values of strings must have 1 dimensions, got 2",
        Case("", [vector(1), vector(1), tensor([[b"a"]], object)], [tensor([b"a"], object), hits(1)]),
    ),
    (
        "output must be float32 here, got int8",
        Case("", [vector(1), vector(1), tensor([1])], [tensor([1], np.int8), hits(1)]),
    ),
    (
        "hits must be uint8, got int8",
        Case("", [vector(1), vector(1), tensor([1])], [tensor([1]), tensor([1], np.int8)]),
    ),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED, ids=[message for message, _ in REFUSED])
def test_refuses(message: str, refused: Case) -> None:
    assert_refused(op, refused, message)
