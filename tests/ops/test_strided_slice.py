"""STRIDED_SLICE: NumPy indices as vectors and masks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.strided_slice import op
from gossamer.schema import StridedSliceOptions
from tests.ops.cases import Case, const, run_case, tensor
from tests.ops.invoking import assert_refused_by_invoke
from tests.ops.reference import assert_refused

X = np.arange(24).reshape(2, 3, 4)
ROW = np.arange(5)


def sliced(id: str, x: Any, begin: Any, end: Any, strides: Any, y: Any, **masks: Any) -> Case:
    vectors = [const(vector, shape=(len(vector),)) for vector in (begin, end, strides)]
    return Case(id, [tensor(x, np.int32), *vectors], [tensor(y, np.int32)], StridedSliceOptions(**masks), version=4)


CASES = [
    sliced("steps", ROW, [0], [5], [2], [0, 2, 4]),
    sliced("backwards", ROW, [3], [0], [-1], [3, 2, 1]),
    sliced("from_the_end", ROW, [-3], [-1], [1], [2, 3]),
    sliced("clamped", ROW, [-9], [9], [1], ROW),
    sliced("clamped_backwards", ROW, [9], [-9], [-2], [4, 2, 0]),
    sliced("wrong_way", ROW, [3], [1], [1], np.zeros(0)),
    sliced("begin_mask", ROW, [3], [4], [1], [0, 1, 2, 3], begin_mask=1),
    sliced("end_mask", ROW, [3], [4], [1], [3, 4], end_mask=1),
    sliced("masks_backwards", ROW, [2], [2], [-1], ROW[::-1], begin_mask=1, end_mask=1),
    sliced("shrink", X, [1, 0], [2, 3], [1, 2], X[1, ::2], shrink_axis_mask=1),
    sliced("shrink_negative", X, [-1, -2, -4], [0, 0, 0], [1, 1, 1], X[-1, -2, -4], shrink_axis_mask=7),
    sliced("new_axis", ROW, [9, 1], [9, 3], [9, 1], [[1, 2]], new_axis_mask=1),
    sliced("ellipsis", X, [0, 1], [0, 2], [1, 1], X[..., 1:2], ellipsis_mask=1),
    sliced("ellipsis_between", X, [1, 0, 2], [2, 0, 3], [1, 1, 1], X[1:2, :, 2:3], ellipsis_mask=2),
    sliced(
        "ellipsis_and_new_axis",
        X,
        [0, 0, 3],
        [0, 0, 4],
        [1, 1, 1],
        X[..., None, 3],
        ellipsis_mask=1,
        new_axis_mask=2,
        shrink_axis_mask=4,
    ),
    sliced("ellipsis_before_new_axis", ROW, [0], [0], [1], ROW, ellipsis_mask=1, new_axis_mask=1),
    sliced("fewer_entries", X, [1], [2], [1], X[1:2]),
    sliced("no_entries", ROW, [], [], [], ROW),
    sliced("offset", ROW, [1], [3], [2], [1, 3], offset=True),
    Case("scalar", [tensor(4), *[const([], shape=(0,))] * 3], [tensor(4)], StridedSliceOptions()),
    Case(
        "constant", [const(ROW), const([1]), const([3]), const([1])], [tensor([1, 2], np.int32)], StridedSliceOptions()
    ),
    Case("fed", [tensor(ROW), *[tensor([n], np.int32) for n in (4, 0, -2)]], [tensor([4, 2])], StridedSliceOptions()),
    Case(
        "fed_begin_with_offset",
        [tensor(ROW), tensor([2], np.int32), const([2]), const([1])],
        [tensor([2, 3])],
        StridedSliceOptions(offset=True),
    ),
    Case(
        "strings",
        [tensor([b"a", b"bb", b"c"], object), const([0]), const([3]), const([2])],
        [tensor([b"a", b"c"], object)],
        StridedSliceOptions(),
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


REFUSED = [
    ("stride of entry 0 must not be 0", sliced("", ROW, [0], [1], [0], [0])),
    ("stride of entry 0 must not be -2147483648", sliced("", ROW, [0], [1], [-2147483648], [0])),
    ("end must have shape [1], got [2]", sliced("", ROW, [0], [1, 2], [1], [0])),
    (
        "entry 0 (shrink_axis_mask) selects an index outside a dimension of size 5",
        sliced("", ROW, [5], [6], [1], 0, shrink_axis_mask=1),
    ),
    ("ellipsis_mask may have one bit, got 0b11", sliced("", X, [0, 0], [1, 1], [1, 1], 0, ellipsis_mask=3)),
    ("begin may have 31 entries, got 32", sliced("", ROW, [0] * 32, [0] * 32, [1] * 32, 0)),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED, ids=[message for message, _ in REFUSED])
def test_refuses(message: str, refused: Case) -> None:
    assert_refused(op, refused, message)


REFUSED_BY_INVOKE = [
    (
        "selects an index outside a dimension of size 5",
        Case(
            "",
            [tensor(ROW), tensor([7], np.int32), const([8]), const([1])],
            [tensor(0)],
            StridedSliceOptions(shrink_axis_mask=1),
        ),
    ),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED_BY_INVOKE, ids=[message for message, _ in REFUSED_BY_INVOKE])
def test_refuses_values(message: str, refused: Case) -> None:
    assert_refused_by_invoke(op, refused, message)
