"""REDUCE_WINDOW: windows, functions, types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.reduce_window import op
from gossamer.schema import ReduceWindowFunction, ReduceWindowOptions
from tests.ops.cases import Case, Operand, const, run_case, tensor
from tests.ops.reference import assert_refused, output_of

ADD = ReduceWindowFunction.ADD
X = tensor(np.arange(12).reshape(3, 4))


def long(*values: int) -> Operand:
    return const(values, np.int64)


def by(function: int) -> ReduceWindowOptions:
    return ReduceWindowOptions(reduce_function=function)


def pairs(id: str, function: ReduceWindowFunction, values: Any, start: Any, expected: Any, dtype: Any) -> Case:
    """Each two neighbours."""
    return Case(
        f"{id}_{np.dtype(dtype)}",
        [tensor(values, dtype), tensor(start, dtype), long(2), long(1), long(1)],
        [tensor(expected, dtype)],
        by(function),
    )


NAN = np.nan
CASES = [
    Case(
        "sum",
        [X, tensor(100), long(2, 2), long(1, 1), long(1, 1)],
        [tensor([[110, 114, 118], [126, 130, 134]])],
        by(ADD),
    ),
    Case("strides", [X, tensor([0]), long(1, 2), long(2, 2), long(1, 1)], [tensor([[1, 5], [17, 21]])], by(ADD)),
    Case("dilations", [X, tensor(0), long(2, 2), long(1, 1), long(2, 3)], [tensor([[0 + 3 + 8 + 11]])], by(ADD)),
    pairs("product", ReduceWindowFunction.MUL, [2, 3, 4], 10, [60, 120], np.int64),
    pairs("minimum", ReduceWindowFunction.MINIMUM, [2, 3, 1], 9, [2, 1], np.int16),
    pairs("maximum", ReduceWindowFunction.MAXIMUM, [2, 3, 1], -9, [3, 3], np.float64),
    pairs("all", ReduceWindowFunction.ALL, [2, 3, 0], 7, [1, 0], np.int32),
    pairs("any", ReduceWindowFunction.ANY, [0, 0, 2.5], 0, [0, 1], np.float32),
    pairs("wraps", ADD, [127, 1, 255], 0, [128, 0], np.uint8),
    pairs("nan_is_forgotten", ReduceWindowFunction.MAXIMUM, [9, NAN, 1, 2], 0, [NAN, 1, 2], np.float32),
    pairs("bool", ADD, [True, True, False], False, [True, True], bool),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


def test_a_window_that_does_not_fit_has_no_place() -> None:
    case = Case("", [X, tensor(0), long(1, 3), long(1, 1), long(1, 2)], [tensor(np.zeros((3, 1)))], by(ADD))
    assert output_of(op, case).shape == (3, 0)


ONE = (tensor(0), long(1, 1), long(1, 1), long(1, 1))
REFUSED = [
    ("operand must have 1 to 6 dimensions, got 7", Case("", [tensor(np.zeros((1,) * 7)), *ONE], [X], by(ADD))),
    ("init_value must be float32 here, got int8", Case("", [X, tensor(0, np.int8), *ONE[1:]], [X], by(ADD))),
    ("init_value must have one element", Case("", [X, tensor([0, 0]), *ONE[1:]], [X], by(ADD))),
    ("got UNSUPPORTED", Case("", [X, *ONE], [X], by(0))),
    ("got 9", Case("", [X, *ONE], [X], by(9))),
    (
        "window_shape must be a constant of the model",
        Case("", [X, tensor(0), tensor([1, 1], np.int64), *ONE[2:]], [X], by(ADD)),
    ),
    ("window_strides must have 2 positive elements, got [1]", Case("", [X, *ONE[:2], long(1), ONE[3]], [X], by(ADD))),
    ("window_dilations must have 2 positive elements, got [1, 0]", Case("", [X, *ONE[:3], long(1, 0)], [X], by(ADD))),
    ("window_shape must be int64, got int32", Case("", [X, tensor(0), const([1, 1]), *ONE[2:]], [X], by(ADD))),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED, ids=[message for message, _ in REFUSED])
def test_refuses(message: str, refused: Case) -> None:
    assert_refused(op, refused, message)
