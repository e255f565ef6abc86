"""SignalFilterBankSquareRoot: rounding, and both sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.custom.signalfilterbanksquareroot import op
from tests.ops.cases import Case, run_case, tensor
from tests.ops.invoking import assert_refused_by_invoke
from tests.ops.reference import assert_refused
from tests.ops.signals import signal

CASES = [
    signal(
        "small",
        [tensor([0, 1, 2, 3, 4, 6, 7, 4294967295, 4294836225], np.uint64), tensor(0, np.int32)],
        [tensor([0, 1, 1, 2, 2, 2, 3, 65535, 65535], np.uint32)],
    ),
    signal(
        "large",
        [
            tensor(
                [4294967296, 18446744073709551615, 18446744065119617025, 4503599627370495, 12345678901234567], np.uint64
            ),
            tensor(0, np.int32),
        ],
        [tensor([65536, 4294967295, 4294967295, 67108864, 111111111], np.uint32)],
    ),
    signal(
        "shifted", [tensor([1099511627776, 10000], np.uint64), tensor(3, np.int32)], [tensor([131072, 12], np.uint32)]
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


def test_refuses_other_shifts() -> None:
    case = signal("", [tensor([1], np.uint64), tensor(32, np.int32)], [tensor([0], np.uint32)])
    assert_refused_by_invoke(op, case, "scale_bits must be in [0, 31], got 32")


REFUSED = [
    (
        "scale_bits must have 0 dimensions",
        signal("", [tensor([1], np.uint64), tensor([0], np.int32)], [tensor([0], np.uint32)]),
    ),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED, ids=[message for message, _ in REFUSED])
def test_refuses(message: str, refused: Case) -> None:
    assert_refused(op, refused, message)
