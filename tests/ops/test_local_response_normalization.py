"""LOCAL_RESPONSE_NORMALIZATION: neighbourhoods and powers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.local_response_normalization import op
from gossamer.schema import LocalResponseNormalizationOptions
from tests.ops.cases import Case, run_case, tensor
from tests.ops.reference import assert_refused

X = [[[[1, 2, 3, 4]]]]


def options(**fields: Any) -> LocalResponseNormalizationOptions:
    return LocalResponseNormalizationOptions(**{"radius": 1, "bias": 1, "alpha": 1, "beta": 1, **fields})


CASES = [
    # One neighbour before, none behind: sums 1, 1 + 4, 4 + 9, 9 + 16. By default one behind: 1 + 4, 1 + 4 + 9, ...
    Case(
        "radius_1",
        [tensor(X)],
        [tensor(np.reshape([1 / 2, 2 / 6, 3 / 14, 4 / 26], (1, 1, 1, 4)))],
        options(),
        default=[tensor(np.reshape([1 / 6, 2 / 15, 3 / 30, 4 / 26], (1, 1, 1, 4)))],
    ),
    Case("radius_9", [tensor(X)], [tensor(np.array(X) / 31)], options(radius=9)),
    Case(
        "radius_0",
        [tensor(X)],
        [tensor(np.array(X) / 2)],
        options(radius=0, bias=4, beta=0.5),
        default=[tensor(X / np.sqrt(4 + np.square(X)))],
    ),
    Case("no_channels", [tensor(np.zeros((1, 2, 2, 0)))], [tensor(np.zeros((1, 2, 2, 0)))], options()),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


@pytest.mark.parametrize(
    ("message", "case_"),
    [
        ("x must have 4 dimensions, got 3 [1, 1, 4]", Case("", [tensor(X[0])], [tensor(X[0])], options())),
        ("must be float32, got int8", Case("", [tensor(X, np.int8)], [tensor(X, np.int8)], options())),
    ],
)
def test_refuses(message: str, case_: Case) -> None:
    assert_refused(op, case_, message)
