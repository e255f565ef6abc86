"""TILE: whole repetitions along each dimension."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.tile import op
from tests.ops.cases import Case, const, run_case, tensor
from tests.ops.invoking import assert_refused_by_invoke
from tests.ops.reference import assert_refused

X = np.array([[1, 2]])

CASES = [
    Case("both", [tensor(X), const([2, 3])], [tensor(np.tile(X, (2, 3)))]),
    Case("int64", [tensor(X, np.int8), const([1, 2], np.int64)], [tensor([[1, 2, 1, 2]], np.int8)]),
    Case("fed", [tensor(X), tensor([2, 1], np.int32)], [tensor([[1, 2], [1, 2]])]),
    Case("none", [tensor(X), const([0, 1])], [tensor(np.zeros((0, 2)))]),
    Case("scalar", [tensor(3), const([], shape=(0,))], [tensor(3)]),
    Case("constant", [const(X), const([1, 2])], [tensor([[1, 2, 1, 2]], np.int32)]),
    Case(
        "strings", [tensor([b"a", b"bb"], object), const([2])], [tensor([b"a", b"bb", b"a", b"bb"], object)], version=2
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


REFUSED = [
    ("multipliers must not be negative, got [1, -1]", Case("", [tensor(X), const([1, -1])], [tensor(0)])),
    (
        "multipliers must have 2 elements, one for each dimension of [1, 2], got 1",
        Case("", [tensor(X), const([1])], [tensor(0)]),
    ),
    ("is too large: more than 2147483647 elements", Case("", [tensor(X), const([2147483647, 1])], [tensor(0)])),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED, ids=[message for message, _ in REFUSED])
def test_refuses(message: str, refused: Case) -> None:
    assert_refused(op, refused, message)


REFUSED_BY_INVOKE = [
    ("multipliers must not be negative", Case("", [tensor(X), tensor([-1, 1], np.int32)], [tensor(0)])),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED_BY_INVOKE, ids=[message for message, _ in REFUSED_BY_INVOKE])
def test_refuses_values(message: str, refused: Case) -> None:
    assert_refused_by_invoke(op, refused, message)
