"""WHERE: coordinates of what is not zero."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.where import op
from tests.ops.cases import Case, const, run_case, tensor
from tests.ops.reference import assert_refused

CASES = [
    Case("bool", [tensor([[1, 0], [0, 1]], np.bool_)], [tensor([[0, 0], [1, 1]], np.int64)]),
    Case("float32", [tensor([0, -0.0, np.nan, 0.5])], [tensor([[2], [3]], np.int64)], version=2),
    Case("constant", [const([0, 3, 4])], [tensor([[1], [2]], np.int64)], version=2),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


REFUSED = [
    ("condition must not be a scalar", Case("", [tensor(1)], [tensor(0, np.int64)])),
    (
        "condition must be bool, float32, int64, int32, int8, uint8 or uint32, got int16",
        Case("", [tensor([1], np.int16)], [tensor(0, np.int64)]),
    ),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED, ids=[message for message, _ in REFUSED])
def test_refuses(message: str, refused: Case) -> None:
    assert_refused(op, refused, message)
