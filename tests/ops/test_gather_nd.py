"""GATHER_ND: slices at coordinates."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.gather_nd import op
from tests.ops.cases import Case, run_case, tensor
from tests.ops.invoking import assert_refused_by_invoke
from tests.ops.reference import assert_refused, output_of

X = np.arange(12).reshape(3, 4)

CASES = [
    Case("elements", [tensor(X), tensor([[0, 1], [2, 3]], np.int32)], [tensor([1, 11])]),
    Case("rows", [tensor(X, np.int8), tensor([[[2]], [[0]]], np.int64)], [tensor(X[[2, 0]][:, None], np.int8)]),
    Case("one_element", [tensor(X), tensor([1, 2], np.int16)], [tensor(6)], version=5),
    Case("no_indices", [tensor(np.zeros((0, 4))), tensor(np.zeros((0, 1)), np.int32)], [tensor(np.zeros((0, 4)))]),
    Case(
        "strings",
        [tensor([b"a", b"bb"], object), tensor([[1], [0]], np.int32)],
        [tensor([b"bb", b"a"], object)],
        version=3,
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


REFUSED = [
    (
        "the last dimension of indices [1, 3] must be at most 2, the rank of params",
        Case("", [tensor(X), tensor([[0, 0, 0]], np.int32)], [tensor(0)]),
    ),
    ("params must not be a scalar", Case("", [tensor(1), tensor([0], np.int32)], [tensor(0)])),
    ("indices must not be a scalar", Case("", [tensor(X), tensor(0, np.int32)], [tensor(0)])),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED, ids=[message for message, _ in REFUSED])
def test_refuses(message: str, refused: Case) -> None:
    assert_refused(op, refused, message)


REFUSED_BY_INVOKE = [
    ("index of dimension 1 4 is out of range [0, 4)", Case("", [tensor(X), tensor([[0, 4]], np.int32)], [tensor(0)])),
    ("index of dimension 0 -1 is out of range [0, 3)", Case("", [tensor(X), tensor([[-1]], np.int32)], [tensor(0)])),
    (
        "cannot gather from empty params [0, 4]",
        Case("", [tensor(np.zeros((0, 4))), tensor([[0]], np.int32)], [tensor(0)]),
    ),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED_BY_INVOKE, ids=[message for message, _ in REFUSED_BY_INVOKE])
def test_refuses_values(message: str, refused: Case) -> None:
    assert_refused_by_invoke(op, refused, message)


def test_coordinates_of_no_dimension_take_everything() -> None:
    # LiteRT refuses them: indices without elements have no data.
    case = Case("", [tensor(X), tensor(np.zeros((2, 0)), np.int32)], [tensor(0)])
    np.testing.assert_array_equal(output_of(op, case), [X, X])
