"""BROADCAST_ARGS: the shape two shapes broadcast to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.broadcast_args import op
from tests.ops.cases import Case, const, run_case, tensor
from tests.ops.invoking import assert_refused_by_invoke
from tests.ops.reference import assert_refused

CASES = [
    Case("ones", [tensor([2, 1], np.int32), tensor([1, 3], np.int32)], [tensor([2, 3], np.int32)]),
    Case("shorter", [tensor([4], np.int64), tensor([2, 1, 1], np.int64)], [tensor([2, 1, 4], np.int64)]),
    Case("scalar_shape", [tensor(np.zeros(0), np.int32), tensor([5], np.int32)], [tensor([5], np.int32)]),
    Case("constant", [const([1, 0]), const([7, 1])], [tensor([7, 0], np.int32)]),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


REFUSED = [
    ("shapes [2] and [3] do not broadcast", Case("", [const([2]), const([3])], [tensor([0], np.int32)])),
    (
        "shape2 must be int32 here, got int64",
        Case("", [tensor([2], np.int32), tensor([2], np.int64)], [tensor([0], np.int32)]),
    ),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED, ids=[message for message, _ in REFUSED])
def test_refuses(message: str, refused: Case) -> None:
    assert_refused(op, refused, message)


REFUSED_BY_INVOKE = [
    (
        "shapes [2, 2] and [3] do not broadcast",
        Case("", [tensor([2, 2], np.int32), tensor([3], np.int32)], [tensor([0, 0], np.int32)]),
    ),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED_BY_INVOKE, ids=[message for message, _ in REFUSED_BY_INVOKE])
def test_refuses_values(message: str, refused: Case) -> None:
    assert_refused_by_invoke(op, refused, message)
