"""TRANSPOSE: any permutation of up to 8 dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.transpose import op
from gossamer.schema import TensorType
from tests.ops.cases import Case, const, run_case, tensor
from tests.ops.invoking import assert_refused_by_invoke
from tests.ops.reference import assert_refused

TABLE = np.arange(6).reshape(2, 3)

CASES = [
    Case("matrix", [tensor(TABLE), const([1, 0])], [tensor(TABLE.T)]),
    Case("negative", [tensor(TABLE[None]), const([-1, 0, 1])], [tensor(TABLE.T.reshape(3, 1, 2))]),
    Case("fed_perm", [tensor(TABLE, np.int64), tensor([1, 0], np.int32)], [tensor(TABLE.T, np.int64)]),
    Case(
        "eight_dimensions",
        [tensor(TABLE.reshape(1, 1, 1, 1, 1, 1, 2, 3)), const([7, 6, 5, 4, 3, 2, 1, 0])],
        [tensor(TABLE.T.reshape(3, 2, 1, 1, 1, 1, 1, 1))],
    ),
    Case("nothing", [tensor(np.zeros((0, 3))), const([1, 0])], [tensor(np.zeros((3, 0)))]),
    Case(
        "int4",
        [tensor([[1, -2, 3], [-4, 5, -8]], np.int8, type=TensorType.INT4), const([1, 0])],
        [tensor([[1, -4], [-2, 5], [3, -8]], np.int8, type=TensorType.INT4)],
        version=7,
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


REFUSED = [
    ("perm 2 is out of range, must be in [-2, 1]", Case("", [tensor(TABLE), const([2, 0])], [tensor(0)])),
    ("perm [1, 1] must name every dimension once", Case("", [tensor(TABLE), const([1, 1])], [tensor(0)])),
    ("perm must have shape [2], got [3]", Case("", [tensor(TABLE), const([1, 0, 2])], [tensor(0)])),
    ("input must have 0 to 8 dimensions, got 9", Case("", [tensor(np.zeros((1,) * 9)), const(range(9))], [tensor(0)])),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED, ids=[message for message, _ in REFUSED])
def test_refuses(message: str, refused: Case) -> None:
    assert_refused(op, refused, message)


REFUSED_BY_INVOKE = [
    ("perm -3 is out of range", Case("", [tensor(TABLE), tensor([-3, 0], np.int32)], [tensor(0)])),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED_BY_INVOKE, ids=[message for message, _ in REFUSED_BY_INVOKE])
def test_refuses_values(message: str, refused: Case) -> None:
    assert_refused_by_invoke(op, refused, message)
