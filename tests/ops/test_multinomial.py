"""MULTINOMIAL: samples, how the generator goes on, what is refused; expected values are LiteRT's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.multinomial import op
from gossamer.schema import RandomOptions
from tests.ops.cases import Case, Operand, const, run_case, tensor
from tests.ops.invoking import assert_refused_by_invoke
from tests.ops.reference import assert_refused, output_of

SEEDS = RandomOptions(seed=1234, seed2=5678)
LOGITS = tensor([[0, 1, 2], [3, -np.inf, 0]])
SIX = tensor(6, np.int32)


def samples(values: Any, dtype: Any = np.int64) -> Operand:
    return tensor(values, dtype)


FIRST = [[1, 1, 1, 1, 2, 2], [0, 2, 0, 0, 0, 0]]
SECOND = [[2, 1, 1, 1, 2, 2], [0, 0, 0, 0, 0, 0]]

CASES = [
    Case("first", [LOGITS, SIX], [samples(FIRST)], SEEDS),
    Case("second", [LOGITS, SIX], [samples(SECOND)], SEEDS, calls=2),
    Case("constant", [const(LOGITS.value, np.float32), const(6)], [samples(FIRST, np.int32)], SEEDS),
    Case("one_class", [tensor([[5], [-np.inf]]), const(2)], [samples([[0, 0], [1, 1]])], SEEDS),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


def test_follows_the_logits() -> None:
    logits = [[*np.log([0.5, 0.3, 0.2])], [-np.inf, *np.log([0.1, 0.9])]]
    drawn = output_of(op, Case("", [tensor(logits), tensor(20_000, np.int32)], [samples([[0]])], RandomOptions(seed=9)))
    shares = [np.bincount(row, minlength=3) / row.size for row in drawn]
    np.testing.assert_allclose(shares, [[0.5, 0.3, 0.2], [0.0, 0.1, 0.9]], atol=0.015)


REFUSED = [
    ("logits must have 2 dimensions, got 1", Case("", [tensor([1]), SIX], [samples([[0]])], SEEDS)),
    ("num_samples must have 0 dimensions, got 1", Case("", [LOGITS, const([6])], [samples([[0]])], SEEDS)),
    ("at least one class", Case("", [tensor(np.zeros((2, 0))), SIX], [samples([[0]])], SEEDS)),
    (
        "num_samples must not be negative, got -1",
        Case("", [const([[1]], np.float32), const(-1)], [samples([[0]])], SEEDS),
    ),
    ("output must be int64 or int32, got int8", Case("", [LOGITS, SIX], [samples([[0]], np.int8)], SEEDS)),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED, ids=[message for message, _ in REFUSED])
def test_refuses(message: str, refused: Case) -> None:
    assert_refused(op, refused, message)


def test_refuses_a_negative_number_of_samples() -> None:
    refused = Case("", [LOGITS, tensor(-3, np.int32)], [samples([[0]])], SEEDS)
    assert_refused_by_invoke(op, refused, "num_samples must not be negative, got -3")
