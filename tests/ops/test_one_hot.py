"""ONE_HOT: a new axis of one and others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.one_hot import op
from gossamer.schema import OneHotOptions
from tests.ops.cases import Case, const, run_case, tensor
from tests.ops.invoking import assert_refused_by_invoke
from tests.ops.reference import assert_refused

LAST = OneHotOptions(axis=-1)


def hot(id: str, indices: Any, y: Any, how: OneHotOptions = LAST, depth: Any = None) -> Case:
    return Case(id, [tensor(indices, np.int32), depth or const(3), tensor(5), tensor(0)], [tensor(y)], how)


CASES = [
    hot("last", [2, 0], [[0, 0, 5], [5, 0, 0]]),
    hot("first", [2, 0], [[0, 5], [0, 0], [5, 0]], OneHotOptions(axis=0)),
    hot("outside", [-1, 3], np.zeros((2, 3))),
    hot("scalar", 1, [0, 5, 0]),
    hot("fed_depth", [1], [[0, 5]], depth=tensor([2], np.int32)),
    Case(
        "int64_indices_are_cut",
        [tensor([(1 << 32) + 1], np.int64), const(2), tensor(1, np.int8), tensor(-1, np.int8)],
        [tensor([[-1, 1]], np.int8)],
        LAST,
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


REFUSED = [
    ("axis 2 must be in [-1, 1]", hot("", [2, 0], 0, OneHotOptions(axis=2))),
    ("depth must not be negative, got -1", hot("", [2, 0], 0, depth=const(-1))),
    ("depth must have one element, got shape [2]", hot("", [2, 0], 0, depth=const([1, 2]))),
    (
        "off_value must be float32 here, got int32",
        Case("", [tensor([1], np.int32), const(3), tensor(5), tensor(0, np.int32)], [tensor(0)], LAST),
    ),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED, ids=[message for message, _ in REFUSED])
def test_refuses(message: str, refused: Case) -> None:
    assert_refused(op, refused, message)


REFUSED_BY_INVOKE = [
    ("depth must not be negative, got -1", hot("", [2, 0], 0, depth=tensor(-1, np.int32))),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED_BY_INVOKE, ids=[message for message, _ in REFUSED_BY_INVOKE])
def test_refuses_values(message: str, refused: Case) -> None:
    assert_refused_by_invoke(op, refused, message)
