"""EMBEDDING_LOOKUP_SPARSE: the combiners, rows that return, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.embedding_lookup_sparse import op
from gossamer.schema import CombinerType, EmbeddingLookupSparseOptions
from tests.ops.cases import Case, const, run_case, tensor
from tests.ops.invoking import assert_refused_by_invoke
from tests.ops.reference import assert_refused

TABLE = tensor([[1, 10], [2, 20], [3, 30]])


def options(combiner: int) -> EmbeddingLookupSparseOptions:
    return EmbeddingLookupSparseOptions(combiner=combiner)


def i(values: Any) -> Any:
    return tensor(values, np.int32)


# Row 0 has id 0 twice over and id 2 once, row 2 has id 1 four times.
ENTRIES = [i([0, 2, 1]), i([[0, 0], [0, 1], [2, 0]]), i([3, 2]), tensor([2, 1, 4]), TABLE]

CASES = [
    Case("sum", ENTRIES, [tensor([[5, 50], [0, 0], [8, 80]])], options(CombinerType.SUM)),
    Case("mean", ENTRIES, [tensor([[5 / 3, 50 / 3], [0, 0], [2, 20]])], options(CombinerType.MEAN)),
    Case(
        "sqrtn",
        ENTRIES,
        [tensor([[5 / 5**0.5, 50 / 5**0.5], [0, 0], [2, 20]])],
        options(CombinerType.SQRTN),
        rtol=1e-5,
    ),
    Case(
        "one_coordinate",
        [i([0, 1]), i([[0], [1]]), i([2]), tensor([1, 1]), TABLE],
        [tensor([3, 30])],
        options(CombinerType.SUM),
    ),
    Case(
        "three_coordinates",
        [i([0, 1]), i([[0, 1, 0], [1, 0, 0]]), i([2, 2, 1]), tensor([1, 1]), TABLE],
        [tensor([[[0, 0], [1, 10]], [[2, 20], [0, 0]]])],
        options(CombinerType.SUM),
    ),
    # Row 0 is first 1, then row 1 comes, then row 0 again: (1 + 2 * 3) / 3 with its own weight only.
    Case(
        "a_row_that_returns_is_divided_again",
        [i([0, 1, 1]), i([[0, 0], [1, 0], [0, 1]]), i([2, 2]), tensor([2, 1, 3]), TABLE],
        [tensor([[7 / 3, 70 / 3], [2, 20]])],
        options(CombinerType.MEAN),
        rtol=1e-5,
    ),
    Case(
        "no_entries",
        [i([]), i(np.zeros((0, 2))), const([2, 2]), tensor([]), TABLE],
        [tensor([[0, 0], [0, 0]])],
        options(CombinerType.MEAN),
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


OUT = tensor([[0, 0]])


@pytest.mark.parametrize(
    ("message", "case_"),
    [
        (
            "indices must have 2 dimensions, got 1 [1]",
            Case("", [i([0]), i([0]), i([1]), tensor([1]), TABLE], [OUT], options(0)),
        ),
        (
            "ids must have shape [2], got [1]",
            Case("", [i([0]), i([[0, 0], [0, 1]]), i([1, 1]), tensor([1, 1]), TABLE], [OUT], options(0)),
        ),
        (
            "weights must have shape [1], got [2]",
            Case("", [i([0]), i([[0, 0]]), i([1, 1]), tensor([1, 1]), TABLE], [OUT], options(0)),
        ),
        (
            "dense_shape must have shape [2], got [1]",
            Case("", [i([0]), i([[0, 0]]), i([1]), tensor([1]), TABLE], [OUT], options(0)),
        ),
        (
            "value must have 2 dimensions or more, got [1]",
            Case("", [i([0]), i([[0, 0]]), i([1, 1]), tensor([1]), tensor([1])], [OUT], options(0)),
        ),
        (
            "combiner must be 0, 1 or 2, got 7",
            Case("", [i([0]), i([[0, 0]]), i([1, 1]), tensor([1]), TABLE], [OUT], options(7)),
        ),
    ],
)
def test_refuses(message: str, case_: Case) -> None:
    assert_refused(op, case_, message)


@pytest.mark.parametrize(
    ("message", "ids", "indices", "shape"),
    [
        ("id 3 is out of range [0, 3)", [3], [[0, 0]], [1, 1]),
        ("id -1 is out of range [0, 3)", [-1], [[0, 0]], [1, 1]),
        ("row of an entry 2 is out of range [0, 2)", [0], [[2, 0]], [2, 1]),
        ("has a negative dimension", [0], [[0, 0]], [-2, 1]),
        ("is too large", [0], [[0, 0, 0]], [1 << 30, 1 << 30, 1]),
    ],
)
def test_refuses_values(message: str, ids: Any, indices: Any, shape: Any) -> None:
    case = Case("", [i(ids), i(indices), i(shape), tensor([1]), TABLE], [OUT], options(0))
    assert_refused_by_invoke(op, case, message)
