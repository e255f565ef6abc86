"""PAD: zeros, or the zero point, around a tensor."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.pad import op
from tests.ops.cases import Case, const, run_case, tensor
from tests.ops.invoking import assert_refused_by_invoke
from tests.ops.reference import assert_refused

X = np.arange(1, 5).reshape(2, 2)
AROUND = [[1, 0], [0, 2]]
PADDED = [[0, 0, 0, 0], [1, 2, 0, 0], [3, 4, 0, 0]]

CASES = [
    Case("float32", [tensor(X), const(AROUND)], [tensor(PADDED)]),
    Case("int64_paddings", [tensor(X, np.int32), const(AROUND, np.int64)], [tensor(PADDED, np.int32)]),
    Case("fed_paddings", [tensor(X, np.bool_), tensor(AROUND, np.int32)], [tensor(np.array(PADDED, bool), np.bool_)]),
    Case("scalar", [tensor(3), const(np.zeros((0, 2)))], [tensor(3)]),
    Case("nothing", [tensor(np.zeros((0, 1))), const([[1, 1], [0, 0]])], [tensor([[0], [0]])]),
    Case(
        "zero_point",
        [tensor([1, 2], np.int8, scale=0.5, zero_point=-3), const([[1, 1]])],
        [tensor([-3, 1, 2, -3], np.int8, scale=0.5, zero_point=-3)],
        version=2,
    ),
    Case("int8_not_quantized", [tensor([1, 2], np.int8), const([[1, 1]])], [tensor([0, 1, 2, 0], np.int8)], version=2),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


REFUSED = [
    (
        "paddings must be in [0, 2147483647], got [[-1, 0], [0, 0]]",
        Case("", [tensor(X), const([[-1, 0], [0, 0]])], [tensor(0)]),
    ),
    ("paddings must have shape [2, 2], got [1, 2]", Case("", [tensor(X), const([[1, 0]])], [tensor(0)])),
    (
        "input must have 0 to 5 dimensions, got 6",
        Case("", [tensor(np.zeros((1,) * 6)), const(np.zeros((6, 2)))], [tensor(0)]),
    ),
    (
        "is too large: more than 2147483647 elements",
        Case("", [tensor(X), const([[2147483647, 0], [0, 0]])], [tensor(0)]),
    ),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED, ids=[message for message, _ in REFUSED])
def test_refuses(message: str, refused: Case) -> None:
    assert_refused(op, refused, message)


REFUSED_BY_INVOKE = [
    ("paddings must be in [0, 2147483647]", Case("", [tensor(X), tensor([[0, 0], [-1, 0]], np.int32)], [tensor(0)])),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED_BY_INVOKE, ids=[message for message, _ in REFUSED_BY_INVOKE])
def test_refuses_values(message: str, refused: Case) -> None:
    assert_refused_by_invoke(op, refused, message)
