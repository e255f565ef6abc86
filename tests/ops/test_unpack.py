"""UNPACK: a tensor into its slices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.unpack import op
from gossamer.schema import UnpackOptions
from tests.ops.cases import Case, run_case, tensor
from tests.ops.reference import assert_refused

X = tensor([[1, 2, 3], [4, 5, 6]])

CASES = [
    Case("rows", [X], [tensor([1, 2, 3]), tensor([4, 5, 6])], UnpackOptions(num=2, axis=0)),
    Case("columns", [X], [tensor([1, 4]), tensor([2, 5]), tensor([3, 6])], UnpackOptions(num=3, axis=-1)),
    Case(
        "scalars",
        [tensor([1, 0], np.bool_)],
        [tensor(1, np.bool_), tensor(0, np.bool_)],
        UnpackOptions(num=2, axis=0),
        version=4,
    ),
    Case(
        "float16", [tensor([[1.5]], np.float16)], [tensor([1.5], np.float16)], UnpackOptions(num=1, axis=0), version=5
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


REFUSED = [
    ("axis 2 is out of range, must be in [-2, 1]", Case("", [X], [tensor(0)], UnpackOptions(num=1, axis=2))),
    (
        "num 1, 1 outputs and dimension 0 of [2, 3] must be equal",
        Case("", [X], [tensor(0)], UnpackOptions(num=1, axis=0)),
    ),
    (
        "input must not be empty, got [1, 0]",
        Case("", [tensor(np.zeros((1, 0)))], [tensor(0)], UnpackOptions(num=1, axis=0)),
    ),
    (
        "or float8_e5m2, got int64",
        Case("", [tensor([1], np.int64)], [tensor(0, np.int64)], UnpackOptions(num=1, axis=0)),
    ),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED, ids=[message for message, _ in REFUSED])
def test_refuses(message: str, refused: Case) -> None:
    assert_refused(op, refused, message)
