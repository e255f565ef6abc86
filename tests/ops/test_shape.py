"""SHAPE: sizes, known before anything runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.shape import op
from gossamer.schema import ShapeOptions, TensorType
from tests.ops.cases import Case, run_case, tensor
from tests.ops.reference import assert_refused, output_of

INT32 = ShapeOptions(out_type=TensorType.INT32)
INT64 = ShapeOptions(out_type=TensorType.INT64)

CASES = [
    Case("int32", [tensor(np.zeros((2, 0, 3)))], [tensor([2, 0, 3], np.int32)], INT32),
    Case("int64", [tensor([1, 2], np.uint8)], [tensor([2], np.int64)], INT64),
    Case("strings", [tensor([[b"a"]], object)], [tensor([1, 1], np.int32)], INT32),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


REFUSED = [
    ("out_type must be int32 or int64, got float32", Case("", [tensor([1])], [tensor([0], np.int32)], ShapeOptions())),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED, ids=[message for message, _ in REFUSED])
def test_refuses(message: str, refused: Case) -> None:
    assert_refused(op, refused, message)


def test_a_scalar_has_no_sizes() -> None:
    # LiteRT's interpreter cannot read a tensor without elements.
    assert output_of(op, Case("", [tensor(1)], [tensor([], np.int32)], INT32)).shape == (0,)
