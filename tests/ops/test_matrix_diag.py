"""MATRIX_DIAG: diagonals into matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.matrix_diag import op
from tests.ops.cases import Case, run_case, tensor
from tests.ops.reference import assert_refused, output_of

CASES = [
    Case("vector", [tensor([1, 2])], [tensor([[1, 0], [0, 2]])]),
    Case("batch", [tensor([[1], [2]], np.int8)], [tensor([[[1]], [[2]]], np.int8)]),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


REFUSED = [
    ("diagonal must not be a scalar", Case("", [tensor(1)], [tensor(0)])),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED, ids=[message for message, _ in REFUSED])
def test_refuses(message: str, refused: Case) -> None:
    assert_refused(op, refused, message)


def test_types_that_litert_computes_as_float32() -> None:
    case = Case("", [tensor([1, 2], np.float64)], [tensor(np.zeros((2, 2)), np.float64)])
    np.testing.assert_array_equal(output_of(op, case), [[1, 0], [0, 2]])
