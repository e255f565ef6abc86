"""SPLIT_V: parts of given sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.split_v import op
from gossamer.schema import SplitVOptions
from tests.ops.cases import Case, const, run_case, tensor
from tests.ops.invoking import assert_refused_by_invoke
from tests.ops.reference import assert_refused

X = np.arange(8).reshape(2, 4)
TWO = SplitVOptions(num_splits=2)

CASES = [
    Case("sizes", [tensor(X), const([1, 3]), const(1)], [tensor(X[:, :1]), tensor(X[:, 1:])], TWO),
    Case("rest", [tensor(X), const([-1, 1], np.int64), const(-1)], [tensor(X[:, :3]), tensor(X[:, 3:])], TWO),
    Case("nothing_left", [tensor(X), const([4, -1]), const(1)], [tensor(X), tensor(np.zeros((2, 0)))], TWO),
    Case(
        "fed",
        [tensor(X, np.int64), tensor([1, 1], np.int32), const(0)],
        [tensor(X[:1], np.int64), tensor(X[1:], np.int64)],
        TWO,
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


REFUSED = [
    (
        "size_splits [1, 2] must add up to 4, dimension 1 of [2, 4]",
        Case("", [tensor(X), const([1, 2]), const(1)], [tensor(0), tensor(0)], TWO),
    ),
    (
        "size_splits [5, -1] must add up to 4",
        Case("", [tensor(X), const([5, -1]), const(1)], [tensor(0), tensor(0)], TWO),
    ),
    (
        "size_splits [-1, -1] may have one -1",
        Case("", [tensor(X), const([-1, -1]), const(1)], [tensor(0), tensor(0)], TWO),
    ),
    (
        "size_splits must have shape [2], got [3]",
        Case("", [tensor(X), const([1, 2, 1]), const(1)], [tensor(0), tensor(0)], TWO),
    ),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED, ids=[message for message, _ in REFUSED])
def test_refuses(message: str, refused: Case) -> None:
    assert_refused(op, refused, message)


REFUSED_BY_INVOKE = [
    (
        "size_splits [6, -2] may have one -1 and no other negative size",
        Case("", [tensor(X), tensor([6, -2], np.int32), const(1)], [tensor(0), tensor(0)], TWO),
    ),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED_BY_INVOKE, ids=[message for message, _ in REFUSED_BY_INVOKE])
def test_refuses_values(message: str, refused: Case) -> None:
    assert_refused_by_invoke(op, refused, message)
