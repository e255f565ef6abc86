"""NON_MAX_SUPPRESSION_V4: the best of what overlaps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.non_max_suppression_v4 import op
from tests.ops.cases import Case, const, run_case, tensor
from tests.ops.invoking import assert_refused_by_invoke
from tests.ops.reference import assert_refused

BOXES = [[0, 0, 1, 1], [0, 0, 1, 0.5], [3, 3, 2, 2], [2, 2, 3, 3]]
SCORES = [0.9, 0.8, 0.7, 0.6]


def thresholds(overlap: float, score: float) -> list[Any]:
    return [const(overlap, np.float32), const(score, np.float32)]


CASES = [
    Case(
        "half",
        [tensor(BOXES), tensor(SCORES), const(4), *thresholds(0.5, 0)],
        [tensor([0, 2, 0, 0], np.int32), tensor(2, np.int32)],
    ),
    Case(
        "more_than_half",
        [tensor(BOXES), tensor(SCORES), const(4), *thresholds(0.6, 0)],
        [tensor([0, 1, 2, 0], np.int32), tensor(3, np.int32)],
    ),
    Case(
        "score",
        [tensor(BOXES), tensor(SCORES), const(4), *thresholds(0.6, 0.8)],
        [tensor([0, 0, 0, 0], np.int32), tensor(1, np.int32)],
    ),
    Case(
        "limit",
        [tensor(BOXES), tensor(SCORES), const(1), *thresholds(0.5, 0)],
        [tensor([0], np.int32), tensor(1, np.int32)],
    ),
    Case(
        "fed_limit",
        [tensor(BOXES), tensor(SCORES), tensor(2, np.int32), *thresholds(0.5, 0)],
        [tensor([0, 2], np.int32), tensor(2, np.int32)],
    ),
    # A heap does not keep the order of equal scores.
    Case(
        "equal_scores",
        [tensor([[i, 0, i + 1, 1] for i in range(5)]), tensor([1, 1, 1, 1, 1]), const(5), *thresholds(0.5, 0)],
        [tensor([0, 2, 4, 1, 3], np.int32), tensor(5, np.int32)],
        faults=True,
    ),
    Case(
        "no_area",
        [tensor([[1, 1, 1, 1]]), tensor([1]), const(1), *thresholds(0.5, 0)],
        [tensor([0], np.int32), tensor(1, np.int32)],
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


REFUSED = [
    (
        "boxes must have shape [4, 4], got [4, 3]",
        Case("", [tensor(np.zeros((4, 3))), tensor(SCORES), const(4), *thresholds(0.5, 0)], [tensor(0, np.int32)] * 2),
    ),
    (
        "scores must have shape [4], got [1]",
        Case("", [tensor(BOXES), tensor([1]), const(4), *thresholds(0.5, 0)], [tensor(0, np.int32)] * 2),
    ),
    (
        "max_output_size must not be negative, got -1",
        Case("", [tensor(BOXES), tensor(SCORES), const(-1), *thresholds(0.5, 0)], [tensor(0, np.int32)] * 2),
    ),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED, ids=[message for message, _ in REFUSED])
def test_refuses(message: str, refused: Case) -> None:
    assert_refused(op, refused, message)


REFUSED_BY_INVOKE = [
    (
        "max_output_size must not be negative, got -1",
        Case("", [tensor(BOXES), tensor(SCORES), tensor(-1, np.int32), *thresholds(0.5, 0)], [tensor(0, np.int32)] * 2),
    ),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED_BY_INVOKE, ids=[message for message, _ in REFUSED_BY_INVOKE])
def test_refuses_values(message: str, refused: Case) -> None:
    assert_refused_by_invoke(op, refused, message)
