"""REVERSE_V2: neighbouring axes backwards."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.reverse_v2 import op
from tests.ops.cases import Case, const, run_case, tensor
from tests.ops.invoking import assert_refused_by_invoke
from tests.ops.reference import assert_refused

X = np.arange(12).reshape(2, 3, 2)

CASES = [
    Case("first", [tensor(X), const([0])], [tensor(X[::-1])]),
    Case("middle", [tensor(X, np.bool_), const([-2])], [tensor(X[:, ::-1], np.bool_)]),
    Case("two", [tensor(X, np.int64), const([2, 1])], [tensor(X[:, ::-1, ::-1], np.int64)], version=2),
    Case("all", [tensor(X), tensor([0, 1, 2], np.int32)], [tensor(X[::-1, ::-1, ::-1])]),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


REFUSED = [
    ("axes [0, 2] must follow one another", Case("", [tensor(X), const([0, 2])], [tensor(X)])),
    ("axes [1, 1] must follow one another", Case("", [tensor(X), const([1, -2])], [tensor(X)])),
    ("axis 3 is out of range, must be in [-3, 2]", Case("", [tensor(X), const([3])], [tensor(X)])),
    ("2 axes for 1 dimensions", Case("", [tensor([1]), const([0, 0])], [tensor([1])])),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED, ids=[message for message, _ in REFUSED])
def test_refuses(message: str, refused: Case) -> None:
    assert_refused(op, refused, message)


REFUSED_BY_INVOKE = [
    ("axis -4 is out of range", Case("", [tensor(X), tensor([-4], np.int32)], [tensor(X)])),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED_BY_INVOKE, ids=[message for message, _ in REFUSED_BY_INVOKE])
def test_refuses_values(message: str, refused: Case) -> None:
    assert_refused_by_invoke(op, refused, message)
