"""PACK: tensors of one shape on a new axis."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.pack import op
from gossamer.schema import PackOptions
from tests.ops.cases import Case, run_case, tensor
from tests.ops.reference import assert_refused


def stacked(count: int, axis: int) -> PackOptions:
    return PackOptions(values_count=count, axis=axis)


A, B = tensor([1, 2]), tensor([3, 4])

CASES = [
    Case("front", [A, B], [tensor([[1, 2], [3, 4]])], stacked(2, 0)),
    Case("behind", [A, B], [tensor([[1, 3], [2, 4]])], stacked(2, -1)),
    Case(
        "scalars", [tensor(1, np.uint32), tensor(2, np.uint32)], [tensor([1, 2], np.uint32)], stacked(2, 0), version=4
    ),
    Case("quantized", [tensor([1], np.int8, scale=2)], [tensor([[1]], np.int8, scale=2)], stacked(1, 0)),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


REFUSED = [
    ("axis 2 is out of range, must be in [-2, 1]", Case("", [A, B], [tensor(0)], stacked(2, 2))),
    ("values_count 3 but 2 inputs", Case("", [A, B], [tensor(0)], stacked(3, 0))),
    ("must have shape [2], got [1]", Case("", [A, tensor([1])], [tensor(0)], stacked(2, 0))),
    ("must be float32 here, got int32", Case("", [A, tensor([1, 2], np.int32)], [tensor(0)], stacked(2, 0))),
    (
        "must have the same scale and zero point",
        Case("", [tensor([1], np.int8, scale=2)], [tensor(0, np.int8, scale=3)], stacked(1, 0)),
    ),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED, ids=[message for message, _ in REFUSED])
def test_refuses(message: str, refused: Case) -> None:
    assert_refused(op, refused, message)
