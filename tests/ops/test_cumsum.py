"""CUMSUM: axes, exclusive, reverse, wrapping."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.errors import InvokeError
from gossamer.ops.cumsum import op
from gossamer.schema import CumsumOptions
from tests.delegates.jit.running import TARGETS, machine_code, outputs
from tests.ops.cases import Case, const, model_of, run_case, tensor
from tests.ops.reference import assert_refused, output_of

X = [[1, 2, 3], [4, 5, 6]]


def case_(id: str, y: Any, axis: int = 1, dtype: Any = np.float32, **options: bool) -> Case:
    return Case(id, [tensor(X, dtype), const(axis)], [tensor(y, dtype)], CumsumOptions(**options))


CASES = [
    case_("plain", [[1, 3, 6], [4, 9, 15]]),
    case_("first_axis", [[1, 2, 3], [5, 7, 9]], axis=-2),
    case_("exclusive", [[0, 1, 3], [0, 4, 9]], dtype=np.int32, exclusive=True),
    case_("reverse", [[6, 5, 3], [15, 11, 6]], dtype=np.int64, reverse=True),
    case_("both", [[5, 3, 0], [11, 6, 0]], exclusive=True, reverse=True),
    Case("wraps", [tensor([2**31 - 1, 1], np.int32), const([0])], [tensor([2**31 - 1, -(2**31)], np.int32)]),
    Case("axis_fed", [tensor(X), tensor([0], np.int32)], [tensor([[1, 2, 3], [5, 7, 9]])]),
    Case("empty", [tensor(np.zeros((2, 0))), const([1])], [tensor(np.zeros((2, 0)))]),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


@pytest.mark.skipif(not TARGETS, reason="no machine code for this CPU")
@pytest.mark.parametrize("shape", [(5,), (2, 3, 1, 4)])
def test_an_axis_that_is_fed_may_be_any(shape: tuple[int, ...]) -> None:
    x = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    case = Case("", [tensor(x, np.int32), tensor(0, np.int32)], [tensor(x, np.int32)], CumsumOptions(reverse=True))
    interpreter, _ = machine_code(model_of(op, case))
    for axis in range(-len(shape), len(shape)):
        (got,) = outputs(interpreter, {0: x, 1: np.int32(axis)})
        np.testing.assert_array_equal(got, np.flip(np.cumsum(np.flip(x, axis), axis), axis))


def test_an_axis_that_is_fed_is_checked() -> None:
    with pytest.raises(InvokeError, match="axis 5 is not within"):
        output_of(op, Case("", [tensor(X), tensor([5], np.int32)], [tensor(X)]))


@pytest.mark.parametrize(
    ("message", "case_"),
    [
        ("axis 2 is not within an input of 2 dimensions", Case("", [tensor(X), const([2])], [tensor(X)])),
        ("axis must hold 1 value, got 2", Case("", [tensor(X), const([0, 1])], [tensor(X)])),
        ("x must have at least 1 dimension", Case("", [tensor(1), const([0])], [tensor(1)])),
        ("got int8", Case("", [tensor(X, np.int8), const([0])], [tensor(X, np.int8)])),
    ],
)
def test_refuses(message: str, case_: Case) -> None:
    assert_refused(op, case_, message)
