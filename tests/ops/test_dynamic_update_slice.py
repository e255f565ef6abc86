"""DYNAMIC_UPDATE_SLICE: a box replaced, wherever it fits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.dynamic_update_slice import op
from gossamer.schema import TensorType
from tests.ops.cases import Case, const, run_case, tensor
from tests.ops.reference import assert_refused

X = np.arange(6).reshape(2, 3)


def put(id: str, at: Any, y: Any) -> Case:
    return Case(id, [tensor(X), tensor([[8, 9]]), tensor(at, np.int32)], [tensor(y)])


CASES = [
    put("inside", [1, 0], [[0, 1, 2], [8, 9, 5]]),
    put("moved_to_fit", [5, 2], [[0, 1, 2], [3, 8, 9]]),
    put("moved_from_before", [-1, -7], [[8, 9, 2], [3, 4, 5]]),
    Case(
        "everything",
        [tensor(1, np.bool_), tensor(0, np.bool_), const([], shape=(0,))],
        [tensor(0, np.bool_)],
        version=2,
    ),
    Case("nothing", [tensor(X), tensor(np.zeros((0, 3))), tensor([0, 0], np.int64)], [tensor(X)], version=2),
    Case(
        "int4",
        [
            tensor([1, 2, 3], np.int8, type=TensorType.INT4),
            tensor([-8], np.int8, type=TensorType.INT4),
            tensor([1], np.int32),
        ],
        [tensor([1, -8, 3], np.int8, type=TensorType.INT4)],
        version=6,
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


REFUSED = [
    (
        "update [3, 1] does not fit into operand [2, 3]",
        Case("", [tensor(X), tensor(np.zeros((3, 1))), tensor([0, 0], np.int32)], [tensor(X)]),
    ),
    (
        "update [1] does not fit into operand [2, 3]",
        Case("", [tensor(X), tensor([0]), tensor([0, 0], np.int32)], [tensor(X)]),
    ),
    (
        "start_indices must have shape [2], got [1]",
        Case("", [tensor(X), tensor([[0]]), tensor([0], np.int32)], [tensor(X)]),
    ),
    (
        "update must be float32 here, got int32",
        Case("", [tensor(X), tensor([[0]], np.int32), tensor([0, 0], np.int32)], [tensor(X)]),
    ),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED, ids=[message for message, _ in REFUSED])
def test_refuses(message: str, refused: Case) -> None:
    assert_refused(op, refused, message)
