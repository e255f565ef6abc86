"""MIRROR_PAD: with and without the edge."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.mirror_pad import op
from gossamer.schema import MirrorPadMode, MirrorPadOptions
from tests.ops.cases import Case, const, run_case, tensor
from tests.ops.invoking import assert_refused_by_invoke
from tests.ops.reference import assert_refused

REFLECT = MirrorPadOptions(mode=MirrorPadMode.REFLECT)
SYMMETRIC = MirrorPadOptions(mode=MirrorPadMode.SYMMETRIC)

CASES = [
    Case("reflect", [tensor([1, 2, 3]), const([[2, 1]])], [tensor([3, 2, 1, 2, 3, 2])], REFLECT),
    Case("symmetric", [tensor([1, 2, 3]), const([[2, 3]])], [tensor([2, 1, 1, 2, 3, 3, 2, 1])], SYMMETRIC),
    Case(
        "both_dimensions",
        [tensor([[1, 2], [3, 4]]), const([[1, 0], [0, 1]], np.int64)],
        [tensor([[3, 4, 3], [1, 2, 1], [3, 4, 3]])],
        REFLECT,
    ),
    Case(
        "fed_paddings",
        [tensor([1, 2], np.int8), tensor([[1, 1]], np.int32)],
        [tensor([1, 1, 2, 2], np.int8)],
        SYMMETRIC,
    ),
    Case("one_element", [tensor([5], np.int16), const([[0, 0]])], [tensor([5], np.int16)], REFLECT),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


REFUSED = [
    (
        "paddings [2, 0] of dimension 0 must be at most 1, its size is 2",
        Case("", [tensor([1, 2]), const([[2, 0]])], [tensor(0)], REFLECT),
    ),
    (
        "paddings [0, 3] of dimension 0 must be at most 2, its size is 2",
        Case("", [tensor([1, 2]), const([[0, 3]])], [tensor(0)], SYMMETRIC),
    ),
    ("paddings must have shape [1, 2], got [2]", Case("", [tensor([1, 2]), const([1, 1])], [tensor(0)], SYMMETRIC)),
    ("mode 7 is not known", Case("", [tensor([1, 2]), const([[0, 1]])], [tensor(0)], MirrorPadOptions(mode=7))),
    (
        "must have the same scale and zero point",
        Case("", [tensor([1], np.int8, scale=1), const([[0, 1]])], [tensor(0, np.int8, scale=2)], SYMMETRIC),
    ),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED, ids=[message for message, _ in REFUSED])
def test_refuses(message: str, refused: Case) -> None:
    assert_refused(op, refused, message)


REFUSED_BY_INVOKE = [
    ("must be at most 1", Case("", [tensor([1, 2]), tensor([[0, 2]], np.int32)], [tensor(0)], REFLECT)),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED_BY_INVOKE, ids=[message for message, _ in REFUSED_BY_INVOKE])
def test_refuses_values(message: str, refused: Case) -> None:
    assert_refused_by_invoke(op, refused, message)
