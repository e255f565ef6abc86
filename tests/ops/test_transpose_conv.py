"""TRANSPOSE_CONV: where filters land, shapes known late, and every combination of types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.errors import InvokeError
from gossamer.ops.transpose_conv import op
from gossamer.schema import ActivationFunctionType, Padding, TensorType, TransposeConvOptions
from tests.ops.cases import Case, const, run_case, tensor
from tests.ops.reference import assert_refused, output_of


def options(padding: Padding = Padding.VALID, **fields: Any) -> TransposeConvOptions:
    return TransposeConvOptions(**{"padding": padding, "stride_h": 1, "stride_w": 1, **fields})


DECADES = const([[[[1], [10], [100]]]], np.float32)
PAIR = tensor([[[[1], [2]]]])

CASES = [
    # 1 and 2 put down the filter at 0 and 2, where they overlap by one element.
    Case(
        "valid",
        [const([1, 1, 5, 1]), DECADES, PAIR],
        [tensor([[[[1], [10], [102], [20], [200]]]])],
        options(stride_w=2),
    ),
    # As much input would come of 6 elements; the last gets nothing.
    Case(
        "valid_with_a_rest",
        [const([1, 1, 6, 1]), DECADES, PAIR],
        [tensor([[[[1], [10], [102], [20], [200], [0]]]])],
        options(stride_w=2),
    ),
    Case(
        "same_drops_what_falls_outside",
        [const([1, 1, 4, 1]), DECADES, PAIR],
        [tensor([[[[1], [10], [102], [20]]]])],
        options(Padding.SAME, stride_w=2),
    ),
    Case(
        "same_stride_1",
        [const([1, 1, 2, 1]), DECADES, PAIR],
        [tensor([[[[12], [120]]]])],
        options(Padding.SAME),
    ),
    Case(
        "shape_fed",
        [tensor([1, 1, 5, 1], np.int32), DECADES, PAIR],
        [tensor([[[[1], [10], [102], [20], [200]]]])],
        options(stride_w=2),
    ),
    Case(
        "channels_and_bias",
        [
            const([1, 1, 1, 2]),
            const([[[[1, 2]]], [[[3, 4]]]], np.float32),
            tensor([[[[10, 100]]]]),
            const([1, 2], np.float32),
        ],
        [tensor([[[[211, 432]]]])],
        options(),
        version=3,
    ),
    Case(
        "bias_left_out_relu6",
        [const([1, 1, 2, 1]), const([[[[1]]]], np.float32), tensor([[[[-5], [9]]]]), None],
        [tensor([[[[0], [6]]]])],
        options(fused_activation_function=ActivationFunctionType.RELU6),
        version=4,
    ),
    # (10 - 2) * (3, -4) + (5, -6) = (29, -38), times (0.25, 0.125): 7.25 becomes 8, being rounded twice
    Case(
        "int8_per_channel",
        [
            const([1, 1, 1, 2]),
            const([[[[3]]], [[[-4]]]], np.int8, scale=[0.5, 0.25]),
            tensor([[[[10]]]], np.int8, scale=0.5, zero_point=2),
            const([5, -6], scale=[0.25, 0.125]),
        ],
        [tensor([[[[7, -6]]]], np.int8, scale=1, zero_point=-1)],
        options(),
        version=2,
        default=[tensor([[[[6, -6]]]], np.int8)],  # XNNPACK rounds halves to even
    ),
    Case(
        "uint8",
        [
            const([1, 1, 2, 1]),
            const([[[[7], [4]]]], np.uint8, scale=0.5, zero_point=4),
            tensor([[[[12]]]], np.uint8, scale=0.5, zero_point=10),
            const([4], scale=0.25),
        ],
        [tensor([[[[103], [101]]]], np.uint8, scale=1, zero_point=100)],
        options(),
        version=3,
        default=[tensor([[[[102], [101]]]], np.uint8)],  # XNNPACK rounds halves to even
    ),
    # -2 times a quarter: away from zero, but upwards in vectors of 8 channels
    Case(
        "int8_with_strides_larger_than_the_filter",
        [
            const([1, 1, 2, 9]),
            const(np.full((9, 1, 1, 1), -1), np.int8, scale=1),
            tensor([[[[2]]]], np.int8, scale=0.25),
            const([0] * 9, scale=0.25),
        ],
        [tensor([[[[-1] * 9, [0] * 9]]], np.int8, scale=1)],
        options(Padding.SAME, stride_w=2),
        version=3,
        default=[tensor([[[[0] * 8 + [-1], [0] * 9]]], np.int8)],
    ),
    Case(
        "int16_with_int64_sums",
        [
            const([1, 1, 1, 1]),
            const([[[[2]]]], np.int8, scale=1),
            tensor([[[[1000]]]], np.int16, scale=0.5),
            const([1 << 32], np.int64),
        ],
        [tensor([[[[16384]]]], np.int16, scale=1 << 17)],
        options(),
        version=4,
    ),
    Case(
        "int16_with_int32_sums",
        [
            const([1, 1, 1, 1]),
            const([[[[2]]]], np.int8, scale=1),
            tensor([[[[1000]]]], np.int16, scale=0.5),
            const([501]),
        ],
        [tensor([[[[1251]]]], np.int16, scale=1)],
        options(quantized_bias_type=TensorType.INT32),
        version=5,
    ),
    # Levels -128 and 127 of scale 0.01 and zero point -128: 0 and 255 above it.
    Case(
        "hybrid",
        [
            const([1, 1, 1, 2]),
            const([[[[1, 2]]], [[[3, 4]]]], np.int8, scale=[0.5, 0.25]),
            tensor([[[[0, 2.55]]]]),
            const([0, 1], np.float32),
        ],
        [tensor([[[[2.55, 3.55]]]])],
        options(),
        version=4,
    ),
    Case(
        "hybrid_one_scale",
        [const([1, 1, 1, 2]), const([[[[1, 2]]], [[[3, 4]]]], np.int8, scale=0.5), tensor([[[[0, 2.55]]]])],
        [tensor([[[[2.55, 5.1]]]])],
        options(),
        version=4,
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


def made(shape: Any, **fields: Any) -> Case:
    """A float case with this output_shape for an input of 2 x 2 and filters of 3 x 3."""
    operands = [shape, tensor(np.zeros((4, 3, 3, 2))), tensor(np.zeros((1, 2, 2, 2))), tensor(np.zeros(4))]
    return Case("", operands, [tensor(np.zeros(1))], options(**fields))


REFUSED = [
    ("output_shape must be a vector of 4, got shape [3]", made(const([1, 4, 4]))),
    ("output_shape must be int32, got int64", made(const([1, 4, 4, 4], np.int64))),
    ("output_shape [2, 4, 4, 4] must be [1 (the batch), height, width, 4 (the filters)]", made(const([2, 4, 4, 4]))),
    ("output_shape [1, 4, -4, 4] must be", made(const([1, 4, -4, 4]))),
    ("asks for an input of height and width [3, 2], got [2, 2]", made(const([1, 5, 4, 4]))),
    ("height: a window of 3 (VALID padding) does not fit the input of 1", made(const([1, 1, 4, 4]))),
    ("width: stride must be 1 to 32767, got 0", made(const([1, 4, 4, 4]), stride_w=0)),
]


@pytest.mark.parametrize(("message", "case_"), REFUSED, ids=[message for message, _ in REFUSED])
def test_refuses(message: str, case_: Case) -> None:
    assert_refused(op, case_, message)


def test_a_fed_shape_that_does_not_fit_fails_the_invocation() -> None:
    with pytest.raises(InvokeError, match="asks for an input of height and width"):
        output_of(op, made(tensor([1, 5, 4, 4], np.int32)))


def test_a_fed_shape_may_change() -> None:
    case = Case("", [tensor([1, 1, 6, 1], np.int32), DECADES, PAIR], [tensor(np.zeros(1))], options(stride_w=2))
    assert output_of(op, case).shape == (1, 1, 6, 1)


def test_int4_filters_are_refused() -> None:
    case = Case(
        "",
        [
            const([1, 1, 1, 1]),
            const([[[[1]]]], np.int8, type=TensorType.INT4, scale=1),
            tensor([[[[1]]]], np.int8, scale=1),
        ],
        [tensor([[[[1]]]], np.int8, scale=1)],
        options(),
    )
    assert_refused(op, case, "filter must be float32, uint8 or int8, got int4")
