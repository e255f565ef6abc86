"""SEGMENT_SUM: sums of sorted segments."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer import Interpreter
from gossamer.ops.segment_sum import op
from tests.ops.cases import Case, const, model_of, run_case, tensor
from tests.ops.invoking import assert_refused_by_invoke
from tests.ops.reference import REFERENCE, assert_refused

X = [[1, 2], [3, 4], [5, 6]]

CASES = [
    Case("fed", [tensor(X), tensor([0, 0, 1], np.int32)], [tensor([[4, 6], [5, 6]])]),
    Case("constant_ids", [tensor([1, 2, 3], np.int32), const([0, 1, 1])], [tensor([1, 5], np.int32)]),
    Case("constant", [const(X, np.float32), const([0, 1, 2])], [tensor(X)]),
    Case("wraps", [tensor([2147483647, 1], np.int32), const([0, 0])], [tensor([-2147483648], np.int32)]),
]


def test_case(case: Case) -> None:
    # TFLite's reference resolver, the peer of other operators, lacks this one.
    run_case(REFERENCE, op, case)


def test_the_shape_is_told_by_stored_ids() -> None:
    interpreter = Interpreter(model_content=model_of(op, CASES[1]))
    interpreter.allocate_tensors()
    assert not any(claims.refusals for claims in interpreter.delegate_claims())
    interpreter.set_tensor(0, np.int32([1, 2, 3]))
    interpreter.invoke()
    assert interpreter.get_tensor(2).tolist() == [1, 5]


REFUSED = [
    ("segment_ids must have shape [3], got [2]", Case("", [tensor(X), tensor([0, 1], np.int32)], [tensor(0)])),
    (
        "segment_ids must start at 0 and rise by 0 or 1, got [0, 2, 2]",
        Case("", [const(X, np.float32), const([0, 2, 2])], [tensor(0)]),
    ),
    ("data must not be a scalar", Case("", [tensor(1), tensor([0], np.int32)], [tensor(0)])),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED, ids=[message for message, _ in REFUSED])
def test_refuses(message: str, refused: Case) -> None:
    assert_refused(op, refused, message)


REFUSED_BY_INVOKE = [
    ("segment_ids must start at 0", Case("", [tensor(X), tensor([1, 1, 2], np.int32)], [tensor(0)])),
    (
        "segment_ids must start at 0 and rise by 0 or 1, got [0, 1, 0]",
        Case("", [tensor(X), tensor([0, 1, 0], np.int32)], [tensor(0)]),
    ),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED_BY_INVOKE, ids=[message for message, _ in REFUSED_BY_INVOKE])
def test_refuses_values(message: str, refused: Case) -> None:
    assert_refused_by_invoke(op, refused, message)
