"""RANGE: steps up and down."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.range import op
from tests.ops.cases import Case, const, run_case, tensor
from tests.ops.invoking import assert_refused_by_invoke
from tests.ops.reference import assert_refused


def scalars(*values: Any, dtype: Any = np.int32, made: Any = const) -> list[Any]:
    return [made(value, dtype) for value in values]


CASES = [
    Case("up", scalars(0, 5, 2), [tensor([0, 2, 4], np.int32)]),
    Case("down", scalars(5, 0, -2), [tensor([5, 3, 1], np.int32)]),
    Case("int64", scalars(1 << 40, (1 << 40) + 2, 1, dtype=np.int64), [tensor([1 << 40, (1 << 40) + 1], np.int64)]),
    Case("fed", scalars(3, 6, 1, made=tensor), [tensor([3, 4, 5], np.int32)]),
    Case(
        "float32_adds_up",
        scalars(0, 0.5, 0.1, dtype=np.float32),
        [tensor(np.cumsum([0] + [0.1] * 4, dtype=np.float32))],
        rtol=0,
        atol=0,
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


REFUSED = [
    ("no steps of delta 0 lead from start 0 to limit 5", Case("", scalars(0, 5, 0), [tensor(0, np.int32)])),
    ("no steps of delta -1 lead from start 0 to limit 5", Case("", scalars(0, 5, -1), [tensor(0, np.int32)])),
    ("no steps of delta nan", Case("", scalars(0, 5, np.nan, dtype=np.float32), [tensor(0)])),
    ("inf numbers are too many", Case("", scalars(0, np.inf, 1, dtype=np.float32), [tensor(0)])),
    ("is too large", Case("", scalars(-2147483648, 2147483647, 1), [tensor(0, np.int32)])),
    ("start must have 0 dimensions, got 1 [1]", Case("", scalars([0], 5, 1), [tensor(0, np.int32)])),
    (
        "limit must be int32 here, got float32",
        Case("", [const(0), const(5, np.float32), const(1)], [tensor(0, np.int32)]),
    ),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED, ids=[message for message, _ in REFUSED])
def test_refuses(message: str, refused: Case) -> None:
    assert_refused(op, refused, message)


REFUSED_BY_INVOKE = [
    ("no steps of delta 0", Case("", scalars(0, 5, 0, made=tensor), [tensor(0, np.int32)])),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED_BY_INVOKE, ids=[message for message, _ in REFUSED_BY_INVOKE])
def test_refuses_values(message: str, refused: Case) -> None:
    assert_refused_by_invoke(op, refused, message)
