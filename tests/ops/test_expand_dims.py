"""EXPAND_DIMS: a dimension of size 1."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.expand_dims import op
from tests.ops.cases import Case, const, run_case, tensor
from tests.ops.invoking import assert_refused_by_invoke
from tests.ops.reference import assert_refused

X = np.arange(3)

CASES = [
    Case("front", [tensor(X), const(0)], [tensor(X[None])]),
    Case("behind", [tensor(X), const([-1], np.int64)], [tensor(X[:, None])]),
    Case("fed_axis", [tensor(X, np.int64), tensor(1, np.int32)], [tensor(X[:, None], np.int64)]),
    Case("scalar", [tensor(3), const(0)], [tensor([3])]),
    Case("strings", [tensor([b"a"], object), const(0)], [tensor([[b"a"]], object)]),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


REFUSED = [
    ("axis 2 is out of range, must be in [-2, 1]", Case("", [tensor(X), const(2)], [tensor(0)])),
    ("axis must have one element, got shape [2]", Case("", [tensor(X), const([0, 1])], [tensor(0)])),
    (
        "must have the same scale and zero point",
        Case("", [tensor(X, np.int8, scale=1), const(0)], [tensor(0, np.int8, scale=2)]),
    ),
    (
        "must have zero point 0, got 1",
        Case("", [tensor(X, np.int16, scale=1, zero_point=1), const(0)], [tensor(0, np.int16, scale=1, zero_point=1)]),
    ),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED, ids=[message for message, _ in REFUSED])
def test_refuses(message: str, refused: Case) -> None:
    assert_refused(op, refused, message)


REFUSED_BY_INVOKE = [
    ("axis -3 is out of range", Case("", [tensor(X), tensor(-3, np.int32)], [tensor(0)])),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED_BY_INVOKE, ids=[message for message, _ in REFUSED_BY_INVOKE])
def test_refuses_values(message: str, refused: Case) -> None:
    assert_refused_by_invoke(op, refused, message)
