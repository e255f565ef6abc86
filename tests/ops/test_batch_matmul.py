"""BATCH_MATMUL: broadcasting, transposed operands, integers, hybrid products, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.batch_matmul import op
from gossamer.schema import BatchMatMulOptions
from tests.ops.cases import Case, const, run_case, tensor
from tests.ops.reference import REFERENCE, assert_refused

A = np.array([[1, 2, 3], [4, 5, 6]])
B = np.array([[1, -1], [2, 0], [0, 3]])
AB = [[5, 8], [14, 14]]


def options(adj_x: bool = False, adj_y: bool = False, asymmetric: bool = False) -> BatchMatMulOptions:
    return BatchMatMulOptions(adj_x=adj_x, adj_y=adj_y, asymmetric_quantize_inputs=asymmetric)


CASES = [
    Case("float", [tensor(A), tensor(B)], [tensor(AB)], options()),
    Case("adj_x", [tensor(A.T), tensor(B)], [tensor(AB)], options(adj_x=True)),
    Case("adj_y", [tensor(A), tensor(B.T)], [tensor(AB)], options(adj_y=True)),
    Case("both", [tensor(A.T), const(B.T, np.float32)], [tensor(AB)], options(True, True)),
    Case(
        "broadcasting",
        [tensor([[A], [2 * A]]), tensor([B, -B, B])],
        [tensor([np.multiply.outer([1, -1, 1], AB), np.multiply.outer([2, -2, 2], AB)])],
        options(),
    ),
    Case("empty_depth", [tensor(np.zeros((2, 0))), tensor(np.zeros((0, 3)))], [tensor(np.zeros((2, 3)))], options()),
    # (a - 1) . (b - 2) = 0*0 + 2*3 + 4*-2 = -2; times 0.5 is -1; plus 3.
    Case(
        "int8",
        [
            tensor([[1, 3, 5]], np.int8, scale=0.5, zero_point=1),
            tensor([[2], [5], [0]], np.int8, scale=1, zero_point=2),
        ],
        [tensor([[2]], np.int8, scale=1, zero_point=3)],
        options(),
        version=3,
    ),
    Case(
        "int8_saturates",
        [tensor([[100], [-100]], np.int8, scale=1), tensor([[100]], np.int8, scale=1)],
        [tensor([[127], [-128]], np.int8, scale=1)],
        options(),
        version=3,
    ),
    Case(
        "int8_to_int32_ignores_quantization",
        [tensor([[1, 3]], np.int8, scale=0.5, zero_point=1), tensor([[100], [-128]], np.int8, scale=9, zero_point=2)],
        [tensor([[-284]], np.int32)],
        options(),
        version=4,
    ),
    Case(
        "int16",
        [tensor([[1000, -7]], np.int16, scale=0.5), tensor([[300], [100]], np.int16, scale=1)],
        [tensor([[14965]], np.int16, scale=10)],
        options(),
        version=3,
    ),
    Case(
        "int16_by_int8",
        [tensor([[1000, -7]], np.int16, scale=0.5), const([[100], [100]], np.int8, scale=1)],
        [tensor([[4965]], np.int16, scale=10)],
        options(),
        version=3,
    ),
    # Rows of 127 and -254: scales 1 and 2.
    Case(
        "hybrid",
        [tensor([[127, 0], [0, -254]]), const([[64, -64], [32, 0]], np.int8, scale=1 / 64)],
        [tensor([[127, -127], [-127, 0]])],
        options(),
    ),
    # A scale for each of the columns, which adj_y puts first; the range -1 to 254 has scale 1.
    Case(
        "hybrid_asymmetric",
        [tensor([[-1, 254, -0.5]]), const([[2, 1, 4], [0, 0, 3]], np.int8, scale=[0.5, 1])],
        [tensor([[124, -3]])],
        options(adj_y=True, asymmetric=True),
        version=4,
        default=[tensor([[126, 0]])],  # XNNPACK rounds the halves of the level of -0.5 to even
    ),
    Case(
        "hybrid_rows_of_each_batch",
        [tensor([[[127]], [[254]]]), const([[[64]], [[32]]], np.int8, scale=1 / 64)],
        [tensor([[[127]], [[127]]])],
        options(),
    ),
    Case(
        "rows_with_scales_of_their_own_are_nothing",
        [
            const([[1, 2], [3, 4]], np.int8, scale=[0.5, 1]),
            tensor([[5, 6], [7, 8]], np.int8, scale=0.5),
        ],
        [tensor([[3, 3], [3, 3]], np.int8, scale=1, zero_point=3)],
        options(),
        version=2,
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


def test_hybrid_rows_keep_their_scales_in_several_batch_dimensions() -> None:
    """LiteRT reads the scale of another row here."""
    x = np.array([1, 10, 100, 1000], np.float32).reshape(2, 2, 1, 1)
    case = Case("", [tensor(x), const([[2]], np.int8, scale=0.5)], [tensor(x)], options())
    run_case(REFERENCE, op, case)


@pytest.mark.parametrize(
    ("message", "case_"),
    [
        (
            "lhs must have 2 to 5 dimensions, got 1 [3]",
            Case("", [tensor([1, 2, 3]), tensor(B)], [tensor(AB)], options()),
        ),
        (
            "lhs [2, 3] has rows of 3, rhs [2, 3] columns of 2 elements",
            Case("", [tensor(A), tensor(A)], [tensor(AB)], options()),
        ),
        ("do not broadcast", Case("", [tensor([A, A]), tensor([B, B, B])], [tensor([AB, AB])], options())),
        (
            "no kernel for int8 x int16 to int8",
            Case("", [tensor(A, np.int8), tensor(B, np.int16)], [tensor(AB, np.int8)], options()),
        ),
        (
            "no kernel for int8 x int8 to int16: output must be int8 or int32",
            Case("", [tensor(A, np.int8), tensor(B, np.int8)], [tensor(AB, np.int16)], options()),
        ),
        (
            "lhs of type int8 needs one positive scale",
            Case("", [tensor(A, np.int8), tensor(B, np.int8)], [tensor(AB, np.int8)], options()),
        ),
        (
            "rhs must have zero point 0 for int16, got 1",
            Case(
                "",
                [tensor(A, np.int16, scale=1), tensor(B, np.int16, scale=1, zero_point=1)],
                [tensor(AB, np.int16, scale=1)],
                options(),
            ),
        ),
        (
            "rhs must have 1 scale or 2 along dimension 1, got 3 along dimension 0",
            Case("", [tensor(A), const(B, np.int8, scale=[1, 2, 3])], [tensor(AB)], options()),
        ),
    ],
)
def test_refuses(message: str, case_: Case) -> None:
    assert_refused(op, case_, message)
