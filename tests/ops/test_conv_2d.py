"""CONV_2D: windows, groups, and every combination of types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops import _convolution
from gossamer.ops.conv_2d import op
from gossamer.schema import ActivationFunctionType, Conv2DOptions, Padding, TensorType
from tests.ops.cases import Case, const, run_case, tensor
from tests.ops.reference import REFERENCE, assert_refused, output_of

LARGEST = float(np.finfo(np.float32).max)


def options(padding: Padding = Padding.VALID, **fields: Any) -> Conv2DOptions:
    return Conv2DOptions(**{"padding": padding, "stride_h": 1, "stride_w": 1, **fields})


def floats(id: str, x: Any, filter: Any, bias: Any, y: Any, how: Conv2DOptions) -> Case:
    return Case(id, [tensor(x), const(filter, np.float32), const(bias, np.float32)], [tensor(y)], how)


SQUARE = np.arange(1.0, 10.0).reshape(1, 3, 3, 1)
CORNERS = np.arange(1.0, 5.0).reshape(1, 2, 2, 1)

CASES = [
    floats("valid", SQUARE, CORNERS, [0.5], [[[[37.5], [47.5]], [[67.5], [77.5]]]], options()),
    # One row and one column of padding, both behind.
    floats(
        "same_stride_2",
        SQUARE,
        CORNERS,
        [0],
        [[[[37], [21]], [[23], [9]]]],
        options(Padding.SAME, stride_h=2, stride_w=2),
    ),
    floats(
        "same_3x3",
        SQUARE,
        np.ones((1, 3, 3, 1)),
        [0],
        np.reshape([12, 21, 16, 27, 45, 33, 24, 39, 28], (1, 3, 3, 1)),
        options(Padding.SAME),
    ),
    floats("dilated", SQUARE, CORNERS, [0], [[[[64]]]], options(dilation_h_factor=2, dilation_w_factor=2)),
    # Place 0 meets nothing: its taps lie at -1 and 2.
    floats(
        "no_tap_inside",
        [[[[5], [7]]]],
        [[[[1], [10]]]],
        [1],
        [[[[1], [6]]]],
        options(Padding.SAME, dilation_w_factor=3),
    ),
    floats("groups", [[[[1, 2, 3, 4]]]], [[[[1, 1]]], [[[10, 1]]]], [0, 0], [[[[3, 34]]]], options()),
    floats(
        "relu_n1_to_1",
        [[[[-2], [0.5], [3]]]],
        [[[[1]]]],
        [0],
        [[[[-1], [0.5], [1]]]],
        options(fused_activation_function=ActivationFunctionType.RELU_N1_TO_1),
    ),
    floats(
        "tanh_is_ignored",
        [[[[3]]]],
        [[[[1]]]],
        [0],
        [[[[3]]]],
        options(fused_activation_function=ActivationFunctionType.TANH),
    ),
    Case(
        "infinity",
        [tensor([[[[np.inf], [np.nan]]]]), const([[[[-1]]]], np.float32), const([0], np.float32)],
        [tensor([[[[-LARGEST], [np.nan]]]])],
        options(),
        default=[tensor([[[[-np.inf], [np.nan]]]])],
    ),
    # (1 + 1 - 2) / 1 = 0 places; only a window that is larger still is an error.
    floats("window_just_too_large", [[[[1]]]], np.ones((1, 2, 1, 1)), [0], np.zeros((1, 0, 1, 1)), options()),
    floats("no_samples", np.zeros((0, 3, 3, 1)), CORNERS, [0], np.zeros((0, 2, 2, 1)), options()),
    floats("bias_of_any_rank", [[[[1]]]], [[[[2]]]], [[[3]]], [[[[5]]]], options()),
    Case(
        "filter_fed",
        [tensor(SQUARE), tensor(CORNERS), tensor([0])],
        [tensor([[[[64]]]])],
        options(dilation_h_factor=2, dilation_w_factor=2),
    ),
    # (8 * 3 + 5) / 4 = 7.25 becomes 8, being rounded twice: 29 / 2 to 15, 15 / 2 to 8. (8 * -4 - 6) / 8 = -4.75, ...
    Case(
        "int8_per_channel",
        [
            tensor([[[[10], [-20]]]], np.int8, scale=0.5, zero_point=2),
            const([[[[3]]], [[[-4]]]], np.int8, scale=[0.5, 0.25]),
            const([5, -6], scale=[0.25, 0.125]),
        ],
        [tensor([[[[7, -6], [-16, 9]]]], np.int8, scale=1, zero_point=-1)],
        options(),
        version=3,
        default=[tensor([[[[6, -6], [-16, 9]]]], np.int8)],  # XNNPACK rounds halves to even
    ),
    Case(
        "halves_round_away",
        [tensor([[[[2], [-2]]]], np.int8, scale=1), const([[[[1]]]], np.int8, scale=0.25), const([0], scale=0.25)],
        [tensor([[[[1], [-1]]]], np.int8, scale=1)],
        options(),
        version=3,
        default=[tensor([[[[0], [0]]]], np.int8)],  # XNNPACK rounds halves to even
    ),
    Case(
        "int8_relu6",
        [tensor([[[[-5], [5], [50]]]], np.int8, scale=0.5), const([[[[1]]]], np.int8, scale=1), const([0], scale=0.5)],
        [tensor([[[[-10], [-5], [2]]]], np.int8, scale=0.5, zero_point=-10)],
        options(fused_activation_function=ActivationFunctionType.RELU6),
        version=3,
    ),
    Case(
        "int8_padding_is_the_zero_point",
        [tensor([[[[3]]]], np.int8, scale=1, zero_point=5), const(np.ones((1, 3, 3, 1)), np.int8, scale=1), const([0])],
        [tensor([[[[-2]]]], np.int8, scale=1)],
        options(Padding.SAME),
        version=3,
    ),
    Case(
        "multiplier_below_2**-32_is_0",
        [
            tensor([[[[127]]]], np.int8, scale=1e-10),
            const([[[[127]]]], np.int8, scale=1),
            const([1 << 30], scale=1e-10),
        ],
        [tensor([[[[3]]]], np.int8, scale=1, zero_point=3)],
        options(),
        version=3,
    ),
    Case(
        "int8_x_int4",
        [
            tensor([[[[10, 3]]]], np.int8, scale=1),
            const([[[[-8, 7]]]], np.int8, type=TensorType.INT4, scale=1),
            const([0]),
        ],
        [tensor([[[[-59]]]], np.int8, scale=1)],
        options(),
        version=7,
    ),
    Case(
        "int8_x_int4_and_a_bias_with_a_scale",
        [
            tensor([[[[10, 3]]]], np.int8, scale=1),
            const([[[[-8, 7]]]], np.int8, type=TensorType.INT4, scale=1),
            const([1], scale=1),
        ],
        [tensor([[[[-58]]]], np.int8, scale=1)],
        options(),
        version=7,
    ),
    # ((12 - 10) * (7 - 4) + 4) * 0.25 = 2.5, away from zero
    Case(
        "uint8",
        [
            tensor([[[[12]]]], np.uint8, scale=0.5, zero_point=10),
            const([[[[7]]]], np.uint8, scale=0.5, zero_point=4),
            const([4], scale=0.25),
        ],
        [tensor([[[[103]]]], np.uint8, scale=1, zero_point=100)],
        options(),
        default=[tensor([[[[102]]]], np.uint8)],  # XNNPACK rounds halves to even
    ),
    Case(
        "int16_with_int64_sums",
        [tensor([[[[1000]]]], np.int16, scale=0.5), const([[[[2]]]], np.int8, scale=1), const([1 << 32], np.int64)],
        [tensor([[[[16384]]]], np.int16, scale=1 << 17)],
        options(),
        version=4,
        notes="(2000 + 2**32) * 2**-18",
    ),
    Case(
        "int16_with_int32_sums",
        [tensor([[[[1000]]]], np.int16, scale=0.5), const([[[[2]]]], np.int8, scale=1), const([501])],
        [tensor([[[[1251]]]], np.int16, scale=1)],
        options(quantized_bias_type=TensorType.INT32),
        version=8,
    ),
    # Levels 64 (from 63.5) and -127 of scale 2 / 127.
    Case(
        "hybrid_symmetric",
        [tensor([[[[1, -2]]]]), const([[[[3, 4]]]], np.int8, scale=0.5), const([1], np.float32)],
        [tensor([[[[1 - 316 / 127]]]])],
        options(),
        version=2,
        default=[tensor([[[[-1.5]]]])],  # XNNPACK quantizes asymmetrically: levels 127 and -128 of scale 3 / 255
    ),
    Case(
        "hybrid_samples_have_their_own_scales",
        [tensor([[[[127]]], [[[0.127]]], [[[0]]]]), const([[[[3]]]], np.int8, scale=0.5), const([1], np.float32)],
        [tensor([[[[191.5]]], [[[1.1905]]], [[[1]]]])],
        options(),
        version=2,
    ),
    # Levels -128 and 127 of scale 0.01 and zero point -128: 0 and 255 above it.
    Case(
        "hybrid_asymmetric",
        [
            tensor([[[[0, 2.55]]]]),
            const([[[[1, 2]]], [[[3, 4]]]], np.int8, scale=[0.5, 0.25]),
            const([0, 1], np.float32),
        ],
        [tensor([[[[2.55, 3.55]]]])],
        options(),
        version=5,
    ),
    Case(
        "hybrid_groups",
        [tensor([[[[0, 2.55]]]]), const([[[[1]]], [[[2]]]], np.int8, scale=[0.5, 0.5]), const([0, 1], np.float32)],
        [tensor([[[[0, 3.55]]]])],
        options(),
        version=6,
    ),
    Case(
        "hybrid_int4",
        [tensor([[[[127]]]]), const([[[[-8]]]], np.int8, type=TensorType.INT4, scale=0.5), const([0], np.float32)],
        [tensor([[[[-508]]]])],
        options(),
        version=7,
    ),
    Case(
        "hybrid_uint8_holds_int8",
        [tensor([[[[127]]]]), const([[[[255]]]], np.uint8, scale=0.5, zero_point=128), const([0], np.float32)],
        [tensor([[[[-63.5]]]])],
        options(),
        version=2,
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


def made(
    x: tuple[int, ...] = (1, 4, 4, 2),
    filter: tuple[int, ...] = (4, 3, 3, 2),
    bias: tuple[int, ...] = (4,),
    **fields: Any,
) -> Case:
    """A float case of these shapes; what comes out does not matter."""
    operands = [tensor(np.zeros(shape)) for shape in (x, filter, bias)]
    return Case("", operands, [tensor(np.zeros(1))], options(**fields))


def quantized(
    x_type: Any = np.int8, filter_type: Any = np.int8, bias_type: Any = np.int32, y_type: Any = None, **how: Any
) -> Case:
    """A case of these types with scales of 1, unless ``how`` has other fields for x, filter, bias, y or options."""
    types = {"x": x_type, "filter": filter_type, "bias": bias_type, "y": y_type or x_type}
    shapes = {"x": (1, 4, 4, 2), "filter": (4, 3, 3, 2), "bias": (4,), "y": (1,)}
    x, filter, bias, y = (
        tensor(np.zeros(shape), types[name], **{"scale": 1, **how.get(name, {})}) for name, shape in shapes.items()
    )
    return Case("", [x, filter, bias], [y], options(**how.get("options", {})))


REFUSED = [
    ("input must have 4 dimensions, got 3 [4, 4, 2]", made(x=(4, 4, 2))),
    ("filter must have 4 dimensions, got 3 [3, 3, 8]", made(filter=(3, 3, 8))),
    ("input [1, 0, 4, 2] must not be empty along dimension 1", made(x=(1, 0, 4, 2))),
    ("input has 3 channels, which is not a multiple of the filter's depth, 2", made(x=(1, 4, 4, 3))),
    ("5 filters cannot be shared out among 2 groups", made(x=(1, 4, 4, 4), filter=(5, 3, 3, 2), bias=(5,))),
    ("bias must have 4 elements (one an output channel), got 3 [3]", made(bias=(3,))),
    ("height: a window of 7 (VALID padding) does not fit the input of 4", made(filter=(4, 7, 3, 2))),
    ("width: stride must be at least 1, got 0", made(stride_w=0)),
    ("height: dilation must be at most 32767, got 32768", made(dilation_h_factor=32768)),
    ("padding must be SAME (0) or VALID (1), got 7", made(padding=7)),
    (
        "needs 32770 elements of padding, at most 32767",
        made(padding=Padding.SAME, filter=(4, 6, 1, 2), dilation_h_factor=13108),
    ),
    ("filter must be int8 or int4 with int8 input, got uint8", quantized(filter_type=np.uint8)),
    ("filter must be int8 or int4 with int16 input, got float32", quantized(x_type=np.int16, filter_type=np.float32)),
    ("input must be float32, uint8, int8 or int16, got int32", quantized(x_type=np.int32)),
    ("output must be int8 like the input, got uint8", quantized(y_type=np.uint8)),
    ("bias must be int32 with int8 input, got int64", quantized(bias_type=np.int64)),
    ("bias zero point must be 0, got 1", quantized(bias={"zero_point": 1})),
    ("the zero points of the filter must be 0", quantized(filter={"zero_point": 1})),
    ("filter must be quantized: it is int8 without a scale", quantized(filter={"scale": None})),
    ("input of type int8 needs one finite scale above 0, got none", quantized(x={"scale": None})),
    ("filter has 3 scales, must have 1 or 4", quantized(filter={"scale": [1, 1, 1], "dimension": 1})),
    ("a uint8 filter must have a single scale, got 4", quantized(np.uint8, np.uint8, filter={"scale": [1] * 4})),
    ("bias scale 2 must be input scale x filter scale = 1", quantized(np.uint8, np.uint8, bias={"scale": 2})),
    ("input zero point must be 0 for int16, got 1", quantized(np.int16, bias_type=np.int64, x={"zero_point": 1})),
    (
        "bias must be int32 as quantized_bias_type says, got int64",
        quantized(np.int16, bias_type=np.int64, options={"quantized_bias_type": TensorType.INT32}),
    ),
    (
        "quantized_bias_type must be int32 or int64, got bool",
        quantized(np.int16, bias_type=np.int64, options={"quantized_bias_type": TensorType.BOOL}),
    ),
    (
        "activation bound 6.0 does not fit int32",
        quantized(y={"scale": 1e-12}, options={"fused_activation_function": ActivationFunctionType.RELU6}),
    ),
]


@pytest.mark.parametrize(("message", "case_"), REFUSED, ids=[message for message, _ in REFUSED])
def test_refuses(message: str, case_: Case) -> None:
    assert_refused(op, case_, message)


def test_bias_is_needed() -> None:
    case = made()
    case.inputs = case.inputs[:2]
    assert_refused(op, case, "needs 3 inputs (input, filter, bias), got 2")


def test_int32_bias_of_int16_input_counts_where_its_type_is_not_stated() -> None:
    # LiteRT reads it as int64, past its end.
    case = Case(
        "",
        [tensor([[[[1000]]]], np.int16, scale=0.5), const([[[[2]]]], np.int8, scale=1), const([501])],
        [tensor([[[[1251]]]], np.int16, scale=1)],
        options(),
    )
    run_case(REFERENCE, op, case)


def test_patches_in_pieces_are_patches_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    x, filter = random.normal(size=(3, 9, 7, 4)), random.normal(size=(6, 3, 2, 2))
    bias, how = random.normal(size=6), options(Padding.SAME, stride_h=2, dilation_w_factor=2)
    case = Case("", [tensor(x), tensor(filter), tensor(bias)], [tensor(np.zeros((3, 5, 7, 6)))], how)
    whole = output_of(op, case)
    monkeypatch.setattr(_convolution, "PATCH_ELEMENTS", 300)
    np.testing.assert_allclose(output_of(op, case), whole, rtol=1e-5, atol=1e-6)
