"""SLICE: a box by its beginning and its size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.slice import op
from gossamer.schema import TensorType
from tests.ops.cases import Case, const, run_case, tensor
from tests.ops.invoking import assert_refused_by_invoke
from tests.ops.reference import assert_refused

X = np.arange(12).reshape(3, 4)

CASES = [
    Case("box", [tensor(X), const([1, 1]), const([2, 2])], [tensor([[5, 6], [9, 10]])]),
    Case("rest", [tensor(X, np.int16), const([1, 0], np.int64), const([-1, -1], np.int64)], [tensor(X[1:], np.int16)]),
    Case("fed", [tensor(X), tensor([0, 3], np.int32), tensor([3, 1], np.int32)], [tensor(X[:, 3:])]),
    Case("nothing", [tensor(X), const([3, 0]), const([0, -1])], [tensor(np.zeros((0, 4)))]),
    Case(
        "strings",
        [tensor([b"a", b"bb", b"c"], object), const([1]), const([2])],
        [tensor([b"bb", b"c"], object)],
        version=5,
    ),
    Case(
        "int4",
        [tensor([-8, 7, 3], np.int8, type=TensorType.INT4), const([1]), const([2])],
        [tensor([7, 3], np.int8, type=TensorType.INT4)],
        version=6,
    ),
    Case(
        "six_dimensions",
        [tensor(X.reshape(1, 1, 1, 1, 3, 4)), const([0, 0, 0, 0, 2, 1]), const([1, 1, 1, 1, 1, 2])],
        [tensor([9, 10], shape=(1, 1, 1, 1, 1, 2))],
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


REFUSED = [
    (
        "begin 2 and size 2 of dimension 0 reach outside its size 3",
        Case("", [tensor(X), const([2, 0]), const([2, 1])], [tensor(0)]),
    ),
    (
        "begin -1 and size 1 of dimension 1 reach outside its size 4",
        Case("", [tensor(X), const([0, -1]), const([1, 1])], [tensor(0)]),
    ),
    (
        "begin 0 and size -2 of dimension 0 reach outside",
        Case("", [tensor(X), const([0, 0]), const([-2, 1])], [tensor(0)]),
    ),
    ("begin must have shape [2], got [1]", Case("", [tensor(X), const([0]), const([1])], [tensor(0)])),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED, ids=[message for message, _ in REFUSED])
def test_refuses(message: str, refused: Case) -> None:
    assert_refused(op, refused, message)


REFUSED_BY_INVOKE = [
    (
        "begin 0 and size 5 of dimension 1 reach outside its size 4",
        Case("", [tensor(X), tensor([0, 0], np.int32), tensor([1, 5], np.int32)], [tensor(0)]),
    ),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED_BY_INVOKE, ids=[message for message, _ in REFUSED_BY_INVOKE])
def test_refuses_values(message: str, refused: Case) -> None:
    assert_refused_by_invoke(op, refused, message)


def test_a_stored_shape_must_be_what_comes_out() -> None:
    case = Case("", [tensor(X), tensor([0, 0], np.int32), tensor([1, 1], np.int32)], [tensor(np.zeros((2, 2)))])
    assert_refused_by_invoke(op, case, "output 0 has shape [2, 2], the kernel returned [1, 1]")
