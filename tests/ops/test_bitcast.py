"""BITCAST: equal, smaller and larger types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.bitcast import op
from gossamer.schema import BitcastOptions, TensorType
from tests.ops.cases import Case, run_case, tensor
from tests.ops.reference import assert_refused

INT4, UINT4 = TensorType.INT4, TensorType.UINT4

CASES = [
    Case("same_size", [tensor([1.0, -2.0])], [tensor([0x3F800000, -0x40000000], np.int32)], BitcastOptions()),
    Case("smaller", [tensor([[0x01020304]], np.int32)], [tensor([[[4, 3, 2, 1]]], np.uint8)], BitcastOptions()),
    Case(
        "larger",
        [tensor([[4, 3, 2, 1], [1, 0, 0, 0]], np.uint8)],
        [tensor([0x01020304, 1], np.int32)],
        BitcastOptions(),
    ),
    Case("scalar_apart", [tensor(1, np.int64)], [tensor([1, 0], np.int32)], BitcastOptions()),
    Case("scalar_together", [tensor([1, 0], np.int32)], [tensor(1, np.int64)], BitcastOptions()),
    Case("empty", [tensor(np.zeros((0, 4)), np.int8)], [tensor(np.zeros(0), np.int32)], BitcastOptions()),
    Case("int4_to_uint4", [tensor([-8, -1, 7], type=INT4, dtype=np.int8)], [tensor([8, 15, 7], np.uint8, type=UINT4)]),
    Case("uint4_to_int4", [tensor([8, 15, 7], np.uint8, type=UINT4)], [tensor([-8, -1, 7], type=INT4, dtype=np.int8)]),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


@pytest.mark.parametrize(
    ("message", "case_"),
    [
        (
            "last dimension must be 4 to make int32 of uint8, got shape [2, 8]",
            Case("", [tensor(np.zeros((2, 8)), np.uint8)], [tensor([0, 0], np.int32)]),
        ),
        (
            "last dimension must be 2 to make int64 of int32, got shape []",
            Case("", [tensor(1, np.int32)], [tensor(1, np.int64)]),
        ),
        (
            "cannot turn int4 into int8: their bits differ",
            Case("", [tensor([1], np.int8, type=INT4)], [tensor([1], np.int8)]),
        ),
        ("got string", Case("", [tensor([b"a"], object)], [tensor([1], np.int8)])),
        ("cannot turn int8 into string", Case("", [tensor([1], np.int8)], [tensor([b"a"], object)])),
    ],
)
def test_refuses(message: str, case_: Case) -> None:
    assert_refused(op, case_, message)
