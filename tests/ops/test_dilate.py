"""DILATE: room between the elements."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.dilate import op
from gossamer.schema import DilateOptions
from tests.ops.cases import Case, const, run_case, tensor
from tests.ops.invoking import assert_refused_by_invoke
from tests.ops.reference import assert_refused

X = [[1, 2], [3, 4]]
OPTIONS = DilateOptions()

CASES = [
    Case("both", [tensor(X), const([2, 3]), tensor(9)], [tensor([[1, 9, 9, 2], [9, 9, 9, 9], [3, 9, 9, 4]])], OPTIONS),
    Case(
        "rows",
        [tensor(X, np.int8), const([2, 1]), tensor(0, np.int8)],
        [tensor([[1, 2], [0, 0], [3, 4]], np.int8)],
        OPTIONS,
    ),
    Case(
        "fed",
        [tensor(X, np.int64), tensor([1, 2], np.int32), tensor(7, np.int64)],
        [tensor([[1, 7, 2], [3, 7, 4]], np.int64)],
        OPTIONS,
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


REFUSED = [
    ("dilations must be at least 1, got [0, 1]", Case("", [tensor(X), const([0, 1]), tensor(9)], [tensor(0)], OPTIONS)),
    ("dilations must have shape [2], got [1]", Case("", [tensor(X), const([1]), tensor(9)], [tensor(0)], OPTIONS)),
    (
        "padding_value must have one element, got shape [2]",
        Case("", [tensor(X), const([1, 1]), tensor([9, 9])], [tensor(0)], OPTIONS),
    ),
    ("input must not be a scalar", Case("", [tensor(1), const([], shape=(0,)), tensor(9)], [tensor(0)], OPTIONS)),
    ("input must not be empty, got [0]", Case("", [tensor(np.zeros(0)), const([2]), tensor(9)], [tensor(0)], OPTIONS)),
    ("is too large", Case("", [tensor(X), const([2147483647, 1]), tensor(9)], [tensor(0)], OPTIONS)),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED, ids=[message for message, _ in REFUSED])
def test_refuses(message: str, refused: Case) -> None:
    assert_refused(op, refused, message)


REFUSED_BY_INVOKE = [
    (
        "dilations must be at least 1, got [0, 1]",
        Case("", [tensor(X), tensor([0, 1], np.int32), tensor(9)], [tensor(0)], OPTIONS),
    ),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED_BY_INVOKE, ids=[message for message, _ in REFUSED_BY_INVOKE])
def test_refuses_values(message: str, refused: Case) -> None:
    assert_refused_by_invoke(op, refused, message)
