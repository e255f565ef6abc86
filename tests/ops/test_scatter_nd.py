"""SCATTER_ND: what meets adds up."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gossamer.ops.scatter_nd import op
from tests.ops.cases import Case, const, run_case, tensor
from tests.ops.invoking import assert_refused_by_invoke
from tests.ops.reference import assert_refused, output_of

CASES = [
    Case("elements", [tensor([[3], [1]], np.int32), tensor([5, 7]), const([4])], [tensor([0, 7, 0, 5])]),
    Case(
        "rows",
        [tensor([[1]], np.int32), tensor([[1, 2]], np.int64), const([2, 2])],
        [tensor([[0, 0], [1, 2]], np.int64)],
    ),
    Case(
        "int8_wraps", [tensor([[0], [0]], np.int32), tensor([100, 100], np.int8), const([1])], [tensor([-56], np.int8)]
    ),
    Case(
        "uint8_wraps",
        [tensor([[0], [0]], np.int32), tensor([200, 100], np.uint8), const([1])],
        [tensor([44], np.uint8)],
    ),
    Case(
        "bool", [tensor([[0], [0], [1]], np.int32), tensor([1, 1, 0], np.bool_), const([2])], [tensor([1, 0], np.bool_)]
    ),
    Case("fed_shape", [tensor([[0, 1]], np.int32), tensor([5]), tensor([1, 3], np.int32)], [tensor([[0, 5, 0]])]),
    Case("one_update", [tensor([1], np.int32), tensor([5, 6]), const([2, 2])], [tensor([[0, 0], [5, 6]])]),
]
CASES += [
    replace(case, id=f"{case.id}_known", inputs=[replace(case.inputs[0], constant=True), *case.inputs[1:]])
    for case in CASES
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


REFUSED = [
    (
        "updates [3] must have the shape of indices [2, 1] without its last dimension",
        Case("", [tensor([[0], [1]], np.int32), tensor([1, 2, 3]), const([4])], [tensor(0)]),
    ),
    ("updates must not be a scalar", Case("", [tensor([0], np.int32), tensor(1), const([4])], [tensor(0)])),
    (
        "output shape [-4] has a negative dimension",
        Case("", [tensor([[0]], np.int32), tensor([1]), const([-4])], [tensor(0)]),
    ),
    ("indices must be int32, got int64", Case("", [tensor([[0]], np.int64), tensor([1]), const([4])], [tensor(0)])),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED, ids=[message for message, _ in REFUSED])
def test_refuses(message: str, refused: Case) -> None:
    assert_refused(op, refused, message)


REFUSED_BY_INVOKE = [
    (
        "index of dimension 0 4 is out of range [0, 4)",
        Case("", [tensor([[4]], np.int32), tensor([1]), const([4])], [tensor(0, shape=(1,))]),
    ),
    (
        "index of dimension 0 -1 is out of range [0, 4)",
        Case("", [tensor([[-1]], np.int32), tensor([1]), const([4])], [tensor(0, shape=(1,))]),
    ),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED_BY_INVOKE, ids=[message for message, _ in REFUSED_BY_INVOKE])
def test_refuses_values(message: str, refused: Case) -> None:
    assert_refused_by_invoke(op, refused, message)


def test_coordinates_of_no_dimension_add_to_everything() -> None:
    case = Case("", [tensor(np.zeros((2, 0)), np.int32), tensor([[1, 2], [3, 4]]), const([2])], [tensor(0)])
    np.testing.assert_array_equal(output_of(op, case), [4, 6])
