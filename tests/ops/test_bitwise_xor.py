"""BITWISE_XOR: all integer types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.bitwise_xor import op
from gossamer.schema import BitwiseXorOptions
from tests.ops.cases import Case, run_case, tensor
from tests.ops.reference import assert_refused

CASES = [
    Case(
        "int8",
        [tensor([[-1], [5]], np.int8), tensor([1, 127], np.int8)],
        [tensor([[-2, -128], [4, 122]], np.int8)],
        BitwiseXorOptions(),
    ),
    Case("uint8", [tensor([255], np.uint8), tensor([15], np.uint8)], [tensor([240], np.uint8)], BitwiseXorOptions()),
    Case("int16", [tensor([-1], np.int16), tensor([15], np.int16)], [tensor([-16], np.int16)], BitwiseXorOptions()),
    Case(
        "uint16",
        [tensor([65535], np.uint16), tensor([1], np.uint16)],
        [tensor([65534], np.uint16)],
        BitwiseXorOptions(),
    ),
    Case(
        "int32",
        [tensor([-(2**31)], np.int32), tensor([1], np.int32)],
        [tensor([-(2**31) + 1], np.int32)],
        BitwiseXorOptions(),
    ),
    Case(
        "uint32",
        [tensor([2**32 - 1], np.uint32), tensor([1], np.uint32)],
        [tensor([2**32 - 2], np.uint32)],
        BitwiseXorOptions(),
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


@pytest.mark.parametrize(
    ("message", "case_"),
    [
        ("got int64", Case("", [tensor(1, np.int64), tensor(1, np.int64)], [tensor(1, np.int64)])),
    ],
)
def test_refuses(message: str, case_: Case) -> None:
    assert_refused(op, case_, message)
