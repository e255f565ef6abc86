"""AVERAGE_POOL_2D: counts at the border, and rounding."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.average_pool_2d import op
from gossamer.schema import ActivationFunctionType, Padding, Pool2DOptions
from tests.ops.cases import Case, run_case, tensor
from tests.ops.reference import assert_refused


def options(padding: Padding = Padding.VALID, **fields: Any) -> Pool2DOptions:
    sizes = {"stride_h": 1, "stride_w": 1, "filter_height": 1, "filter_width": 1}
    return Pool2DOptions(**{"padding": padding, **sizes, **fields})


SQUARE = np.arange(1.0, 10.0).reshape(1, 3, 3, 1)

CASES = [
    Case(
        "valid_2x2",
        [tensor(SQUARE)],
        [tensor([[[[3], [4]], [[6], [7]]]])],
        options(filter_height=2, filter_width=2),
    ),
    # Corners have 4 elements, edges 6.
    Case(
        "same_3x3_counts_what_is_inside",
        [tensor(SQUARE)],
        [tensor(np.reshape([3, 3.5, 4, 4.5, 5, 5.5, 6, 6.5, 7], (1, 3, 3, 1)))],
        options(Padding.SAME, filter_height=3, filter_width=3),
    ),
    Case(
        "window_larger_than_the_image",
        [tensor([[[[1], [3]]]])],
        [tensor([[[[2], [2]]]])],
        options(Padding.SAME, filter_height=100, filter_width=100),
    ),
    Case(
        "stride_beyond_the_window",
        [tensor([[[[1], [2], [3], [4]]]])],
        [tensor([[[[1], [4]]]])],
        options(stride_w=3),
    ),
    Case(
        "relu6",
        [tensor([[[[-4], [-2], [10]]]])],
        [tensor([[[[0], [4]]]])],
        options(filter_width=2, fused_activation_function=ActivationFunctionType.RELU6),
    ),
    Case("nothing", [tensor(np.zeros((0, 2, 2, 3)))], [tensor(np.zeros((0, 2, 2, 3)))], options()),
    # 1.5, -1.5, 0.5 and -0.5
    Case(
        "int8_halves_away_from_zero",
        [tensor([[[[1], [2]], [[-1], [-2]], [[0], [1]], [[0], [-1]]]], np.int8, scale=1)],
        [tensor([[[[2]], [[-2]], [[1]], [[-1]]]], np.int8, scale=1)],
        options(filter_width=2),
        version=2,
    ),
    Case(
        "uint8",
        [tensor([[[[1], [2]], [[254], [255]]]], np.uint8, scale=1)],
        [tensor([[[[2]], [[255]]]], np.uint8, scale=1)],
        options(filter_width=2),
    ),
    # Real values of -1 and 1 lie 4 levels from the zero point.
    Case(
        "int16_relu_n1_to_1",
        [tensor([[[[100], [101]], [[-7], [-8]], [[1], [1]]]], np.int16, scale=0.25)],
        [tensor([[[[4]], [[-4]], [[1]]]], np.int16, scale=0.25)],
        options(filter_width=2, fused_activation_function=ActivationFunctionType.RELU_N1_TO_1),
        version=3,
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


def made(shape: tuple[int, ...] = (1, 4, 4, 1), y: Any = np.float32, **fields: Any) -> Case:
    return Case("", [tensor(np.zeros(shape))], [tensor(np.zeros(1), y)], options(**fields))


REFUSED = [
    ("input must have 4 dimensions, got 2 [4, 4]", made((4, 4))),
    ("height: filter size must be at least 1, got 0", made(filter_height=0)),
    ("width: stride must be at least 1, got 0", made(stride_w=0)),
    ("height: a window of 6 (VALID padding) does not fit the input of 4", made(filter_height=6)),
    ("output must be float32 like the input, got int8", made(y=np.int8)),
    ("needs 32769 elements of padding", made(padding=Padding.SAME, filter_height=65540)),
]


@pytest.mark.parametrize(("message", "case_"), REFUSED, ids=[message for message, _ in REFUSED])
def test_refuses(message: str, case_: Case) -> None:
    assert_refused(op, case_, message)


def test_quantized_activation_needs_a_scale_to_fit() -> None:
    case = Case(
        "",
        [tensor([[[[1]]]], np.int8, scale=1)],
        [tensor([[[[1]]]], np.int8, scale=1e-12)],
        options(fused_activation_function=ActivationFunctionType.RELU6),
    )
    assert_refused(op, case, "activation bound 6.0 does not fit int32")
