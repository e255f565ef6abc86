"""SPARSE_TO_DENSE: values at coordinates."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gossamer.ops.sparse_to_dense import op
from tests.ops.cases import Case, const, run_case, tensor
from tests.ops.invoking import assert_refused_by_invoke
from tests.ops.reference import assert_refused


def sparse(id: str, indices: Any, shape: Any, values: Any, y: Any) -> Case:
    return Case(id, [tensor(indices, np.int32), shape, tensor(values), tensor(-1)], [tensor(y)])


CASES = [
    sparse("matrix", [[0, 1], [1, 0]], const([2, 2]), [5, 6], [[-1, 5], [6, -1]]),
    sparse("vector", [2, 0], const([3]), [5, 6], [6, -1, 5]),
    sparse("scalar_index", 1, const([2]), [5], [-1, 5]),
    sparse("one_value_for_all", [[0], [2]], const([3], np.int64), 5, [5, -1, 5]),
    sparse("the_last_stays", [1, 0, 1], const([2]), [5, 6, 7], [6, 7]),
    sparse("fed_shape", [[1]], tensor([2], np.int32), [5], [-1, 5]),
]
CASES += [
    replace(case, id=f"{case.id}_known", inputs=[replace(case.inputs[0], constant=True), *case.inputs[1:]])
    for case in CASES
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


REFUSED = [
    ("output_shape must have shape [1], got [2]", sparse("", [0], const([2, 2]), [1], 0)),
    ("values must have shape [2], got [3]", sparse("", [0, 1], const([2]), [1, 2, 3], 0)),
    (
        "default_value must be int32 here, got float32",
        Case("", [tensor([0], np.int32), const([1]), tensor([1], np.int32), tensor(1)], [tensor(0, np.int32)]),
    ),
    ("indices must have 0 to 2 dimensions, got 3", sparse("", [[[0]]], const([1]), [1], 0)),
    ("at most 4 dimensions, got 5", sparse("", [[0] * 5], const([1] * 5), [1], 0)),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED, ids=[message for message, _ in REFUSED])
def test_refuses(message: str, refused: Case) -> None:
    assert_refused(op, refused, message)


REFUSED_BY_INVOKE = [
    ("index of dimension 1 2 is out of range [0, 2)", sparse("", [[0, 2]], const([2, 2]), [1], np.zeros((2, 2)))),
    ("index of dimension 0 -1 is out of range [0, 2)", sparse("", [-1], const([2]), [1], [0, 0])),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED_BY_INVOKE, ids=[message for message, _ in REFUSED_BY_INVOKE])
def test_refuses_values(message: str, refused: Case) -> None:
    assert_refused_by_invoke(op, refused, message)
