"""SELECT_V2: broadcasting of three, single elements."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.select_v2 import op
from gossamer.schema import SelectV2Options, TensorType
from tests.ops.cases import Case, Operand, run_case, tensor
from tests.ops.reference import assert_refused


def _condition(values: Any) -> Operand:
    return tensor(values, np.bool_)


CASES = [
    Case(
        "broadcast",
        [_condition([[True], [False]]), tensor([1, 2]), tensor(3)],
        [tensor([[1, 2], [3, 3]])],
        SelectV2Options(),
    ),
    Case(
        "same_shape",
        [_condition([True, False]), tensor([1, 2], np.int8), tensor([3, 4], np.int8)],
        [tensor([1, 4], np.int8)],
        SelectV2Options(),
    ),
    Case("single_elements", [_condition([[True]]), tensor([1]), tensor(2)], [tensor([[[1]]])], SelectV2Options()),
    Case("empty", [_condition([True]), tensor([]), tensor(1)], [tensor([])], SelectV2Options()),
    Case(
        "rank_8",
        [_condition(np.ones([1] * 8)), tensor([1, 2]), tensor(3)],
        [tensor([1, 2], shape=[1] * 7 + [2])],
        SelectV2Options(),
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


@pytest.mark.parametrize(
    ("message", "case_"),
    [
        (
            "broadcasts up to rank 8, got rank 9",
            Case("", [_condition(np.ones([1] * 9)), tensor([1, 2]), tensor(3)], [tensor([1, 2])]),
        ),
        (
            "shapes [2] and [3] and [] do not broadcast",
            Case("", [_condition([True, False]), tensor([1, 2, 3]), tensor(3)], [tensor([1, 2])]),
        ),
        (
            "got int4",
            Case(
                "",
                [
                    _condition([True]),
                    tensor([1], np.int8, type=TensorType.INT4),
                    tensor([1], np.int8, type=TensorType.INT4),
                ],
                [tensor([1], np.int8, type=TensorType.INT4)],
            ),
        ),
    ],
)
def test_refuses(message: str, case_: Case) -> None:
    assert_refused(op, case_, message)
