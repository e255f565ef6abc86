"""MATRIX_SET_DIAG: diagonals replaced."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.matrix_set_diag import op
from tests.ops.cases import Case, run_case, tensor
from tests.ops.reference import assert_refused

CASES = [
    Case("wide", [tensor([[1, 2, 3], [4, 5, 6]]), tensor([8, 9])], [tensor([[8, 2, 3], [4, 9, 6]])]),
    Case("tall", [tensor([[[1], [2]]], np.int64), tensor([[7]], np.int64)], [tensor([[[7], [2]]], np.int64)]),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


REFUSED = [
    ("diagonal must have shape [1], got [2]", Case("", [tensor([[1, 2]]), tensor([1, 2])], [tensor([[0, 0]])])),
    ("input must have 2 dimensions or more, got [2]", Case("", [tensor([1, 2]), tensor([1])], [tensor([0, 0])])),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED, ids=[message for message, _ in REFUSED])
def test_refuses(message: str, refused: Case) -> None:
    assert_refused(op, refused, message)
