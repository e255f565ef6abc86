"""FILL: one value everywhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.fill import op
from tests.ops.cases import Case, const, run_case, tensor
from tests.ops.invoking import assert_refused_by_invoke
from tests.ops.reference import assert_refused

CASES = [
    Case("float32", [const([2, 1]), tensor(7)], [tensor([[7], [7]])]),
    Case("int64_dims", [const([2], np.int64), tensor(True, np.bool_)], [tensor([True, True], np.bool_)]),
    Case("fed", [tensor([3], np.int32), tensor(-1, np.int64)], [tensor([-1, -1, -1], np.int64)]),
    Case("scalar", [const([], shape=(0,)), tensor(7)], [tensor(7)]),
    Case(
        "int8",
        [const([2]), tensor(3, np.int8, scale=2, zero_point=1)],
        [tensor([3, 3], np.int8, scale=2, zero_point=1)],
        version=3,
    ),
    Case("strings", [const([2]), const(b"ab", object)], [tensor([b"ab", b"ab"], object)], version=2),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


REFUSED = [
    ("output shape [2, -1] has a negative dimension", Case("", [const([2, -1]), tensor(7)], [tensor(0)])),
    ("output shape [65536, 65536] is too large", Case("", [const([1 << 16, 1 << 16]), tensor(7)], [tensor(0)])),
    ("value must have 0 dimensions, got 1 [1]", Case("", [const([2]), tensor([7])], [tensor(0)])),
    (
        "must have the same scale and zero point",
        Case("", [const([2]), tensor(3, np.int8, scale=2)], [tensor(0, np.int8, scale=1)]),
    ),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED, ids=[message for message, _ in REFUSED])
def test_refuses(message: str, refused: Case) -> None:
    assert_refused(op, refused, message)


REFUSED_BY_INVOKE = [
    ("output shape [-2] has a negative dimension", Case("", [tensor([-2], np.int32), tensor(7)], [tensor(0)])),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED_BY_INVOKE, ids=[message for message, _ in REFUSED_BY_INVOKE])
def test_refuses_values(message: str, refused: Case) -> None:
    assert_refused_by_invoke(op, refused, message)
