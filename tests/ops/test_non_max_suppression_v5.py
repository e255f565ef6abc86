"""NON_MAX_SUPPRESSION_V5: scores that shrink where boxes overlap."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.non_max_suppression_v5 import op
from tests.ops.cases import Case, const, run_case, tensor
from tests.ops.invoking import assert_refused_by_invoke
from tests.ops.reference import assert_refused

BOXES = [[0, 0, 1, 1], [0, 0, 1, 0.5], [3, 3, 2, 2], [2, 2, 3, 3]]
SCORES = [0.9, 0.8, 0.7, 0.6]


def thresholds(overlap: float, score: float) -> list[Any]:
    return [const(overlap, np.float32), const(score, np.float32)]


CASES = [
    Case(
        "hard",
        [tensor(BOXES), tensor(SCORES), const(3), *thresholds(0.5, 0), const(0, np.float32)],
        [tensor([0, 2, 0], np.int32), tensor([0.9, 0.7, 0]), tensor(2, np.int32)],
    ),
    # The overlap of 0.5 costs the second box a factor of exp(-0.5 / 0.5 * 0.25).
    Case(
        "soft",
        [tensor(BOXES), tensor(SCORES), const(3), *thresholds(1, 0), const(0.5, np.float32)],
        [tensor([0, 2, 1], np.int32), tensor([0.9, 0.7, 0.8 * np.exp(-0.25)]), tensor(3, np.int32)],
    ),
    Case(
        "soft_and_then_under_the_threshold",
        [tensor(BOXES[:2]), tensor(SCORES[:2]), const(2), *thresholds(1, 0.65), const(0.5, np.float32)],
        [tensor([0, 0], np.int32), tensor([0.9, 0]), tensor(1, np.int32)],
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


REFUSED = [
    (
        "sigma must have 0 dimensions, got 1 [1]",
        Case(
            "",
            [tensor(BOXES), tensor(SCORES), const(4), *thresholds(0.5, 0), const([1], np.float32)],
            [tensor(0, np.int32), tensor(0), tensor(0, np.int32)],
        ),
    ),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED, ids=[message for message, _ in REFUSED])
def test_refuses(message: str, refused: Case) -> None:
    assert_refused(op, refused, message)


REFUSED_BY_INVOKE = [
    (
        "sigma must not be negative, got -1",
        Case(
            "",
            [tensor(BOXES), tensor(SCORES), const(4), *thresholds(0.5, 0), const(-1, np.float32)],
            [tensor(0, np.int32), tensor(0), tensor(0, np.int32)],
        ),
    ),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED_BY_INVOKE, ids=[message for message, _ in REFUSED_BY_INVOKE])
def test_refuses_values(message: str, refused: Case) -> None:
    assert_refused_by_invoke(op, refused, message)
