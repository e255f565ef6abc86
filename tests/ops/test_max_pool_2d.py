"""MAX_POOL_2D."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.max_pool_2d import op
from gossamer.schema import ActivationFunctionType, Padding, Pool2DOptions
from tests.ops.cases import Case, run_case, tensor
from tests.ops.reference import assert_refused

LARGEST = float(np.finfo(np.float32).max)


def options(padding: Padding = Padding.VALID, **fields: Any) -> Pool2DOptions:
    sizes = {"stride_h": 1, "stride_w": 1, "filter_height": 1, "filter_width": 1}
    return Pool2DOptions(**{"padding": padding, **sizes, **fields})


CASES = [
    Case(
        "valid_2x2",
        [tensor(np.reshape([1, 9, 3, 4, 5, 6, 7, 8, 2], (1, 3, 3, 1)))],
        [tensor([[[[9], [9]], [[8], [8]]]])],
        options(filter_height=2, filter_width=2),
    ),
    Case(
        "same_stride_2_is_below_zero_too",
        [tensor([[[[-1, 5], [-2, 6], [-3, 7]]]])],
        [tensor([[[[-1, 6], [-3, 7]]]])],
        options(Padding.SAME, filter_width=2, stride_w=2),
    ),
    Case(
        "infinities_and_nan",
        [tensor([[[[np.inf], [-np.inf], [np.nan]]]])],
        [tensor([[[[LARGEST], [-LARGEST], [-LARGEST]]]])],
        options(),
        default=[tensor([[[[np.inf], [-LARGEST], [-LARGEST]]]])],
    ),
    Case(
        "int8_relu",
        [tensor([[[[-128], [-100], [20]]]], np.int8, scale=1, zero_point=-50)],
        [tensor([[[[-50], [20]]]], np.int8, scale=1, zero_point=-50)],
        options(filter_width=2, fused_activation_function=ActivationFunctionType.RELU),
        version=2,
    ),
    Case(
        "uint8_relu6",
        [tensor([[[[0], [100], [255]]]], np.uint8, scale=0.1, zero_point=90)],
        [tensor([[[[100], [150]]]], np.uint8, scale=0.1, zero_point=90)],
        options(filter_width=2, fused_activation_function=ActivationFunctionType.RELU6),
    ),
    Case(
        "int16",
        [tensor([[[[-32768], [-32767]]]], np.int16, scale=1)],
        [tensor([[[[-32767], [-32767]]]], np.int16, scale=1)],
        options(Padding.SAME, filter_width=3),
        version=3,
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


def made(shape: tuple[int, ...] = (1, 4, 4, 1), **fields: Any) -> Case:
    return Case("", [tensor(np.zeros(shape))], [tensor(np.zeros(1))], options(**fields))


REFUSED = [
    ("input must have 4 dimensions, got 5 [1, 1, 1, 1, 1]", made((1, 1, 1, 1, 1))),
    ("width: filter size must be at least 1, got -1", made(filter_width=-1)),
    ("height: stride must be at least 1, got 0", made(stride_h=0)),
    ("width: a window of 6 (VALID padding) does not fit the input of 4", made(filter_width=6)),
]


@pytest.mark.parametrize(("message", "case_"), REFUSED, ids=[message for message, _ in REFUSED])
def test_refuses(message: str, case_: Case) -> None:
    assert_refused(op, case_, message)
