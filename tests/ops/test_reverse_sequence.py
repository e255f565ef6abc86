"""REVERSE_SEQUENCE: a length for each member of the batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.reverse_sequence import op
from gossamer.schema import ReverseSequenceOptions
from tests.ops.cases import Case, run_case, tensor
from tests.ops.invoking import assert_refused_by_invoke
from tests.ops.reference import assert_refused

X = np.arange(8).reshape(2, 4)
ROWS = ReverseSequenceOptions(seq_dim=1, batch_dim=0)

CASES = [
    Case("rows", [tensor(X), tensor([3, 0], np.int32)], [tensor([[2, 1, 0, 3], [4, 5, 6, 7]])], ROWS),
    Case(
        "columns",
        [tensor(X, np.uint8), tensor([2, 1, 2, 0], np.int64)],
        [tensor([[4, 1, 6, 3], [0, 5, 2, 7]], np.uint8)],
        ReverseSequenceOptions(seq_dim=0, batch_dim=1),
    ),
    Case("negative_length", [tensor(X), tensor([-1, 4], np.int32)], [tensor([[0, 1, 2, 3], [7, 6, 5, 4]])], ROWS),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


REFUSED = [
    (
        "seq_dim and batch_dim must differ, both are 1",
        Case("", [tensor(X), tensor([1, 1], np.int32)], [tensor(X)], ROWS.replace(batch_dim=1)),
    ),
    (
        "seq_dim 2 must be in [0, 2)",
        Case("", [tensor(X), tensor([1, 1], np.int32)], [tensor(X)], ROWS.replace(seq_dim=2)),
    ),
    ("seq_lengths must have shape [2], got [1]", Case("", [tensor(X), tensor([1], np.int32)], [tensor(X)], ROWS)),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED, ids=[message for message, _ in REFUSED])
def test_refuses(message: str, refused: Case) -> None:
    assert_refused(op, refused, message)


REFUSED_BY_INVOKE = [
    ("seq_lengths must be at most 4, got 5", Case("", [tensor(X), tensor([1, 5], np.int32)], [tensor(X)], ROWS)),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED_BY_INVOKE, ids=[message for message, _ in REFUSED_BY_INVOKE])
def test_refuses_values(message: str, refused: Case) -> None:
    assert_refused_by_invoke(op, refused, message)
