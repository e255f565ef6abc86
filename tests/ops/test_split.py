"""SPLIT: equal parts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.split import op
from gossamer.schema import SplitOptions
from tests.ops.cases import Case, const, run_case, tensor
from tests.ops.invoking import assert_refused_by_invoke
from tests.ops.reference import assert_refused

X = np.arange(8).reshape(2, 4)
TWO = SplitOptions(num_splits=2)

CASES = [
    Case("columns", [const(1), tensor(X)], [tensor(X[:, :2]), tensor(X[:, 2:])], TWO),
    Case("negative_axis", [const(-2), tensor(X, np.int16)], [tensor(X[:1], np.int16), tensor(X[1:], np.int16)], TWO),
    Case("fed_axis", [tensor([0], np.int32), tensor(X)], [tensor(X[:1]), tensor(X[1:])], TWO),
    Case("one_part", [const(0), tensor(X)], [tensor(X)], SplitOptions(num_splits=1)),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


REFUSED = [
    (
        "dimension 1 of [2, 3] does not split into 2 equal parts",
        Case("", [const(1), tensor(np.zeros((2, 3)))], [tensor(0), tensor(0)], TWO),
    ),
    ("axis 2 is out of range, must be in [-2, 1]", Case("", [const(2), tensor(X)], [tensor(0), tensor(0)], TWO)),
    ("num_splits 2 but 1 outputs", Case("", [const(0), tensor(X)], [tensor(0)], TWO)),
    (
        "axis -1 is out of range, must be absent: the tensor is a scalar",
        Case("", [const(-1), tensor(1)], [tensor(0)], SplitOptions(num_splits=1)),
    ),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED, ids=[message for message, _ in REFUSED])
def test_refuses(message: str, refused: Case) -> None:
    assert_refused(op, refused, message)


REFUSED_BY_INVOKE = [
    ("axis 5 is out of range", Case("", [tensor(5, np.int32), tensor(X)], [tensor(0), tensor(0)], TWO)),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED_BY_INVOKE, ids=[message for message, _ in REFUSED_BY_INVOKE])
def test_refuses_values(message: str, refused: Case) -> None:
    assert_refused_by_invoke(op, refused, message)
