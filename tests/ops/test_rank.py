"""RANK: the number of dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.rank import op
from tests.ops.cases import Case, run_case, tensor
from tests.ops.reference import assert_refused

CASES = [
    Case("three", [tensor(np.zeros((2, 0, 3)))], [tensor(3, np.int32)]),
    Case("scalar", [tensor(1)], [tensor(0, np.int32)]),
    Case("strings", [tensor([b"a"], object)], [tensor(1, np.int32)]),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


REFUSED = [
    ("needs 1 inputs (input), got 0", Case("", [], [tensor(0, np.int32)])),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED, ids=[message for message, _ in REFUSED])
def test_refuses(message: str, refused: Case) -> None:
    assert_refused(op, refused, message)
