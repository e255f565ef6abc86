"""BROADCAST_TO: NumPy's rules."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.broadcast_to import op
from tests.ops.cases import Case, const, run_case, tensor
from tests.ops.invoking import assert_refused_by_invoke
from tests.ops.reference import assert_refused

COLUMN = np.array([[1], [2]])


def wide(id: str, x: Any, shape: Any, y: Any) -> Case:
    return Case(id, [x, shape], [y], version=2)


CASES = [
    wide("columns", tensor(COLUMN), const([2, 3]), tensor([[1, 1, 1], [2, 2, 2]])),
    wide("new_dimensions", tensor([1, 2], np.int8), const([2, 1, 2], np.int64), tensor([[[1, 2]]] * 2, np.int8)),
    wide("fed", tensor(COLUMN), tensor([2, 2], np.int32), tensor([[1, 1], [2, 2]])),
    wide("scalar", tensor(3, np.complex64), const([2]), tensor([3, 3], np.complex64)),
    wide("to_nothing", tensor(COLUMN), const([2, 0]), tensor(np.zeros((2, 0)))),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


REFUSED = [
    ("input [2, 1] does not broadcast to [3, 1]", wide("", tensor(COLUMN), const([3, 1]), tensor(0))),
    ("input [2, 1] does not broadcast to [2]", wide("", tensor(COLUMN), const([2]), tensor(0))),
    ("output shape [-1, 2, 1] has a negative dimension", wide("", tensor(COLUMN), const([-1, 2, 1]), tensor(0))),
    ("is too large", wide("", tensor(COLUMN), const([2147483647, 2, 1]), tensor(0))),
    ("shape must have 1 dimensions, got 0 []", wide("", tensor(COLUMN), const(2), tensor(0))),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED, ids=[message for message, _ in REFUSED])
def test_refuses(message: str, refused: Case) -> None:
    assert_refused(op, refused, message)


REFUSED_BY_INVOKE = [
    ("does not broadcast to [1, 1]", wide("", tensor(COLUMN), tensor([1, 1], np.int32), tensor(0))),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED_BY_INVOKE, ids=[message for message, _ in REFUSED_BY_INVOKE])
def test_refuses_values(message: str, refused: Case) -> None:
    assert_refused_by_invoke(op, refused, message)
