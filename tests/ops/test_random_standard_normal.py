"""RANDOM_STANDARD_NORMAL: seeds, sequences, distribution; expected values are LiteRT's."""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer.ops.random_standard_normal import op
from gossamer.schema import RandomOptions
from tests.ops.cases import Case, const, run_case, tensor
from tests.ops.reference import assert_refused, output_of

SEEDS = RandomOptions(seed=1234, seed2=5678)
FIRST = [-0.1828981339931488, 0.8823578357696533, 0.2705938518047333, 0.4013582170009613, 1.5379809141159058]
SECOND = [0.3480303883552551, 1.216773271560669, -0.1026574969291687, 1.492680311203003, 1.1548436880111694]

CASES = [
    Case("first", [const([5])], [tensor(FIRST)], SEEDS),
    Case("second", [const([5])], [tensor(SECOND)], SEEDS, calls=2),
    Case("shape_from_input", [tensor([5, 1], np.int32)], [tensor(FIRST, shape=(5, 1))], SEEDS),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


def test_is_normal() -> None:
    numbers = output_of(op, Case("", [const([100_000])], [tensor(np.zeros(100_000))], RandomOptions(seed=1)))
    assert abs(numbers.mean()) < 0.01
    assert abs(numbers.std() - 1) < 0.01
    assert abs((numbers < 1).mean() - 0.8413) < 0.005


def test_refuses_other_outputs() -> None:
    assert_refused(op, Case("", [const([5])], [tensor([0], np.float64)], SEEDS), "output must be float32, got float64")
