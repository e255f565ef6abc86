"""SignalFilterBankLog: both sides of 2^16, the greatest, none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.custom.signalfilterbanklog import op
from tests.ops.cases import Case, run_case, tensor
from tests.ops.reference import assert_refused
from tests.ops.signals import signal

CASES = [
    signal(
        "logarithms",
        [tensor([0, 1, 2, 3, 100, 65535, 65536, 65537, 2147483648, 4294967295], np.uint32)],
        [tensor([0, 0, 44, 70, 295, 710, 710, 710, 1375, 1420], np.int16)],
        input_correction_bits=0,
        output_scale=64,
    ),
    signal(
        "corrected",
        [tensor([0, 1, 1000, 536870912, 536870913], np.uint32)],
        [tensor([0, 133, 575, 0, 133], np.int16)],
        input_correction_bits=3,
        output_scale=64,
    ),
    signal(
        "at_most_32767",
        [tensor([2, 1048576, 2147483648], np.uint32)],
        [tensor([2079, 32767, 32767], np.int16)],
        input_correction_bits=0,
        output_scale=3000,
    ),
    signal(
        "negative_scale",
        [tensor([2, 1048576], np.uint32)],
        [tensor([32767, 32767], np.int16)],
        input_correction_bits=0,
        output_scale=-1,
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


REFUSED = [
    (
        "input_correction_bits must be in [0, 31], got -1",
        signal("", [tensor([1], np.uint32)], [tensor([0], np.int16)], input_correction_bits=-1, output_scale=1),
    ),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED, ids=[message for message, _ in REFUSED])
def test_refuses(message: str, refused: Case) -> None:
    assert_refused(op, refused, message)
