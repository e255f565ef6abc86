"""SQUEEZE: without dimensions of size 1."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.squeeze import op
from gossamer.schema import SqueezeOptions
from tests.ops.cases import Case, run_case, tensor
from tests.ops.reference import assert_refused

X = np.arange(6).reshape(1, 2, 1, 3, 1)

CASES = [
    Case("all", [tensor(X)], [tensor(X.reshape(2, 3))], SqueezeOptions()),
    Case("some", [tensor(X)], [tensor(X.reshape(1, 2, 3))], SqueezeOptions(squeeze_dims=(2, -1))),
    Case("twice", [tensor(X)], [tensor(X.reshape(2, 1, 3, 1))], SqueezeOptions(squeeze_dims=(0, -5))),
    Case("scalar", [tensor([[4]])], [tensor(4)], SqueezeOptions()),
    Case("strings", [tensor([[b"a", b"bb"]], object)], [tensor([b"a", b"bb"], object)], SqueezeOptions()),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


REFUSED = [
    (
        "squeeze_dims: dimension 1 of [1, 2, 1, 3, 1] is not 1",
        Case("", [tensor(X)], [tensor(0)], SqueezeOptions(squeeze_dims=(1,))),
    ),
    (
        "squeeze_dims 5 is out of range, must be in [-5, 4]",
        Case("", [tensor(X)], [tensor(0)], SqueezeOptions(squeeze_dims=(5,))),
    ),
    ("input must have 0 to 8 dimensions, got 9", Case("", [tensor(np.zeros((1,) * 9))], [tensor(0)], SqueezeOptions())),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED, ids=[message for message, _ in REFUSED])
def test_refuses(message: str, refused: Case) -> None:
    assert_refused(op, refused, message)
