"""TOPK_V2: order, ties, NaN, index types, k that is fed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.errors import InvokeError
from gossamer.ops.topk_v2 import op
from gossamer.schema import TopKV2Options
from tests.ops.cases import Case, const, run_case, tensor
from tests.ops.reference import assert_refused, output_of

X = [[1, 5, 3, 5], [-1, -4, -3, -2]]


def case_(id: str, x: Any, k: Any, values: Any, indices: Any, dtype: Any = np.float32, index: Any = np.int32) -> Case:
    return Case(id, [tensor(x, dtype), k], [tensor(values, dtype), tensor(indices, index)], TopKV2Options(), 3)


CASES = [
    case_("float", X, const(2), [[5, 5], [-1, -2]], [[1, 3], [0, 3]]),
    case_("all", X[0], const([4]), [5, 5, 3, 1], [1, 3, 2, 0]),
    case_("nan", [np.nan, 1, np.inf, -np.inf], const(4), [np.inf, 1, -np.inf, np.nan], [2, 1, 3, 0]),
    case_("uint8", [0, 255, 128], const(2), [255, 128], [1, 2], np.uint8),
    case_("int8", [-128, 127, 0, -128], const(4), [127, 0, -128, -128], [1, 2, 0, 3], np.int8),
    case_("int16_all_through", [-(2**15), 7], const(2, np.int16), [7, -(2**15)], [1, 0], np.int16, np.int16),
    case_("int32", [-(2**31), 7], const(2), [7, -(2**31)], [1, 0], np.int32),
    case_("int64", [-(2**63), 7], const(2), [7, -(2**63)], [1, 0], np.int64),
    case_("k_fed", X, tensor(1, np.int32), [[5], [-1]], [[1], [0]]),
    case_("no_rows", np.zeros((0, 3)), const(2), np.zeros((0, 2)), np.zeros((0, 2))),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


@pytest.mark.parametrize("k", [0, -3])
def test_k_of_nothing(k: int) -> None:
    # LiteRT's Python interface does not hand out empty tensors.
    assert output_of(op, case_("", X, const(k), np.zeros((2, 0)), np.zeros((2, 0)))).shape == (2, 0)


def test_an_open_dimension_leaves_the_shape_open() -> None:
    case = case_("", X, const(2), [[0, 0], [0, 0]], [[0, 0], [0, 0]])
    case.inputs[0].shape_signature = (-1, 4)
    np.testing.assert_array_equal(output_of(op, case), np.float32([[5, 5], [-1, -2]]))


def test_k_that_is_fed_is_checked() -> None:
    with pytest.raises(InvokeError, match="k is 5, but the last dimension"):
        output_of(op, case_("", X, tensor(5, np.int32), X, X))


@pytest.mark.parametrize(
    ("message", "case_"),
    [
        ("k is 5, but the last dimension of x [2, 4] is 4", case_("", X, const(5), X, X)),
        ("k must hold 1 value, got 2", case_("", X, const([1, 2]), X, X)),
        ("x must have at least 1 dimension", case_("", 1, const(1), 1, 1)),
        ("got bool", case_("", X, const(1), X, X, np.bool_)),
        ("indices must be int32 or int16, got int64", case_("", X, const(1), X, X, index=np.int64)),
    ],
)
def test_refuses(message: str, case_: Case) -> None:
    assert_refused(op, case_, message)
