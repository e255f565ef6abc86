"""DEPTHWISE_CONV_2D: channels by themselves, multipliers, and every combination of types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.depthwise_conv_2d import op
from gossamer.schema import ActivationFunctionType, DepthwiseConv2DOptions, Padding, TensorType
from tests.ops.cases import Case, const, run_case, tensor
from tests.ops.reference import REFERENCE, assert_refused


def options(padding: Padding = Padding.VALID, **fields: Any) -> DepthwiseConv2DOptions:
    return DepthwiseConv2DOptions(**{"padding": padding, "stride_h": 1, "stride_w": 1, "depth_multiplier": 1, **fields})


CASES = [
    Case(
        "same_stride_2",
        [
            tensor([[[[1, -1], [2, -2], [3, -3]]]]),
            const([[[[1, 10], [2, 20]]]], np.float32),
            const([0.5, 0], np.float32),
        ],
        [tensor([[[[5.5, -50], [3.5, -30]]]])],
        options(Padding.SAME, stride_h=2, stride_w=2),
    ),
    Case(
        "multiplier_2",
        [tensor([[[[3, 5]]]]), const([[[[1, 2, 10, 20]]]], np.float32), const([0, 0, 0, 1], np.float32)],
        [tensor([[[[3, 6, 50, 101]]]])],
        options(depth_multiplier=2),
    ),
    Case(
        "no_bias_dilated",
        [tensor([[[[1], [2], [3], [4], [5]]]]), const([[[[1], [10]]]], np.float32)],
        [tensor([[[[31], [42], [53]]]])],
        options(dilation_w_factor=2),
        version=2,
    ),
    Case(
        "relu6",
        [tensor([[[[-1, 9]]]]), const([[[[1, 1]]]], np.float32), const([0, 0], np.float32)],
        [tensor([[[[0, 6]]]])],
        options(fused_activation_function=ActivationFunctionType.RELU6),
    ),
    Case(
        "no_samples",
        [tensor(np.zeros((0, 2, 2, 1))), const([[[[1]]]], np.float32), const([0], np.float32)],
        [tensor(np.zeros((0, 2, 2, 1)))],
        options(),
    ),
    # (8 * 3 + 5) / 4 = 7.25 becomes 8, being rounded twice, or 7 at once; (8 * -4 - 6) / 8 = -4.75
    Case(
        "int8_per_channel",
        [
            tensor([[[[10]]]], np.int8, scale=0.5, zero_point=2),
            const([[[[3, -4]]]], np.int8, scale=[0.5, 0.25], dimension=3),
            const([5, -6], scale=[0.25, 0.125]),
        ],
        [tensor([[[[7, -6]]]], np.int8, scale=1, zero_point=-1)],
        options(depth_multiplier=2),
        version=3,
        default=[tensor([[[[6, -6]]]], np.int8, scale=1, zero_point=-1)],
    ),
    Case(
        "int8_filter_zero_point_is_ignored",
        [tensor([[[[10]]]], np.int8, scale=1), const([[[[3]]]], np.int8, scale=1, zero_point=2), const([0])],
        [tensor([[[[30]]]], np.int8, scale=1)],
        options(),
        version=3,
    ),
    Case(
        "int8_x_int4_without_bias",
        [
            tensor([[[[10, 3]]]], np.int8, scale=1),
            const([[[[-8, 7]]]], np.int8, type=TensorType.INT4, scale=1),
        ],
        [tensor([[[[-80, 21]]]], np.int8, scale=1)],
        options(),
        version=6,
    ),
    # -2 times a quarter: away from zero, but upwards in vectors of 8 channels
    Case(
        "int8_x_int4_in_vectors",
        [
            tensor([[[[2] * 9]]], np.int8, scale=0.25),
            const([[[[-1] * 9]]], np.int8, type=TensorType.INT4, scale=1),
            const([0] * 9, scale=0.25),
        ],
        [tensor([[[[-1] * 9]]], np.int8, scale=1)],
        options(),
        version=6,
        default=[tensor([[[[0] * 8 + [-1]]]], np.int8)],
    ),
    # ((12 - 10) * (7 - 4) + 4) * 0.25 = 2.5, away from zero or to even; padding adds nothing.
    Case(
        "uint8",
        [
            tensor([[[[12]]]], np.uint8, scale=0.5, zero_point=10),
            const([[[[99], [7], [99]]]], np.uint8, scale=0.5, zero_point=4),
            const([4], scale=0.25),
        ],
        [tensor([[[[103]]]], np.uint8, scale=1, zero_point=100)],
        options(Padding.SAME),
        default=[tensor([[[[102]]]], np.uint8, scale=1, zero_point=100)],
    ),
    Case(
        "int16",
        [tensor([[[[1000]]]], np.int16, scale=0.5), const([[[[2]]]], np.int8, scale=1), const([1 << 32], np.int64)],
        [tensor([[[[16384]]]], np.int16, scale=1 << 17)],
        options(),
        version=5,
    ),
    # Levels -128 and 127 of scale 0.01 and zero point -128: 0 and 255 above it.
    Case(
        "hybrid",
        [
            tensor([[[[0, 2.55]]]]),
            const([[[[1, 2]]]], np.int8, scale=[0.5, 0.25], dimension=3),
            const([3, 4], np.float32),
        ],
        [tensor([[[[3, 5.275]]]])],
        options(),
        version=6,
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


def test_hybrid_filter_with_one_scale() -> None:
    # LiteRT's kernel reads past the one scale.
    case = Case(
        "",
        [tensor([[[[0, 2.55]]]]), const([[[[1, 2]]]], np.int8, scale=0.5), const([3, 4], np.float32)],
        [tensor([[[[3, 6.55]]]])],
        options(),
        version=6,
    )
    run_case(REFERENCE, op, case)


def test_depth_multiplier_of_the_options_does_not_matter() -> None:
    # LiteRT's int16 and hybrid kernels go by it, and leave channels out.
    case = Case(
        "",
        [tensor([[[[3]]]], np.int16, scale=1), const([[[[1, 2]]]], np.int8, scale=1), const([0, 0], np.int64)],
        [tensor([[[[3, 6]]]], np.int16, scale=1)],
        options(depth_multiplier=0),
    )
    run_case(REFERENCE, op, case)


def made(x: Any, filter: Any, bias: Any, y: Any = None, **fields: Any) -> Case:
    return Case("", [x, filter, bias], [y or tensor(np.zeros(1), x.value.dtype, scale=1)], options(**fields))


def zeros(*shape: int, dtype: Any = np.float32, **how: Any) -> Any:
    return tensor(np.zeros(shape), dtype, **{"scale": None if dtype is np.float32 else 1, **how})


IMAGE, FILTER, BIAS = zeros(1, 4, 4, 2), zeros(1, 3, 3, 2), zeros(2)
IMAGE_16 = zeros(1, 4, 4, 2, dtype=np.int16)

REFUSED = [
    ("filter must have 4 dimensions, got 3 [3, 3, 2]", made(IMAGE, zeros(3, 3, 2), BIAS)),
    ("filter must be [1, height, width, channels], got [2, 3, 3, 2]", made(IMAGE, zeros(2, 3, 3, 2), BIAS)),
    ("filter has 3 channels, not a multiple of the input's 2", made(IMAGE, zeros(1, 3, 3, 3), zeros(3))),
    ("bias must have 1 dimension, got 2 [1, 2]", made(IMAGE, FILTER, zeros(1, 2))),
    ("a third input must not be -1", made(IMAGE, FILTER, None)),
    ("height: stride must be at most 32767, got 32768", made(IMAGE, FILTER, BIAS, stride_h=32768)),
    ("width: dilation must be at least 1, got -1", made(IMAGE, FILTER, BIAS, dilation_w_factor=-1)),
    (
        "filter must be float32 or int8 with float32 input, got uint8",
        made(IMAGE, zeros(1, 3, 3, 2, dtype=np.uint8), BIAS),
    ),
    (
        "bias must be int64 with int16 input, got int32",
        made(IMAGE_16, zeros(1, 3, 3, 2, dtype=np.int8), zeros(2, dtype=np.int32)),
    ),
    (
        "filter must be int8 with int16 input, got int4",
        made(IMAGE_16, zeros(1, 3, 3, 2, dtype=np.int8, type=TensorType.INT4), zeros(2, dtype=np.int64)),
    ),
    (
        "must have 2 scales along dimension 3, got 3 along dimension 1",
        made(IMAGE, zeros(1, 3, 3, 2, dtype=np.int8, scale=[1, 1, 1], dimension=1), BIAS),
    ),
]


@pytest.mark.parametrize(("message", "case_"), REFUSED, ids=[message for message, _ in REFUSED])
def test_refuses(message: str, case_: Case) -> None:
    assert_refused(op, case_, message)
