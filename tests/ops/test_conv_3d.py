"""CONV_3D."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.conv_3d import op
from gossamer.schema import ActivationFunctionType, Conv3DOptions, Padding
from tests.ops.cases import Case, const, run_case, tensor
from tests.ops.reference import assert_refused


def options(padding: Padding = Padding.VALID, **fields: Any) -> Conv3DOptions:
    return Conv3DOptions(**{"padding": padding, "stride_d": 1, "stride_h": 1, "stride_w": 1, **fields})


CUBE = np.arange(1.0, 9.0).reshape(1, 2, 2, 2, 1)
ONES = np.ones((2, 2, 2, 1, 1))

CASES = [
    Case(
        "valid", [tensor(CUBE), const(ONES, np.float32), const([0.5], np.float32)], [tensor([[[[[36.5]]]]])], options()
    ),
    # Padding lies behind: places further on see less.
    Case(
        "same_without_bias",
        [tensor(CUBE), const(ONES, np.float32)],
        [tensor(np.reshape([36, 20, 22, 12, 26, 14, 15, 8], (1, 2, 2, 2, 1)))],
        options(Padding.SAME),
    ),
    Case(
        "strides",
        [tensor(np.arange(1.0, 28.0).reshape(1, 3, 3, 3, 1)), const([[[[[1]]]]], np.float32)],
        [tensor(np.reshape([1, 2, 3, 19, 20, 21], (1, 2, 1, 3, 1)))],
        options(stride_d=2, stride_h=3),
    ),
    Case(
        "dilated_depth",
        [tensor(np.reshape([1.0, 2, 3], (1, 3, 1, 1, 1))), const(np.reshape([1, 10], (2, 1, 1, 1, 1)), np.float32)],
        [tensor([[[[[31]]]]])],
        options(dilation_d_factor=2),
    ),
    Case(
        "channels_relu6",
        [tensor([[[[[1, 2]]]]]), const([[[[[1, -1], [2, 4]]]]], np.float32), const([0, 0], np.float32)],
        [tensor([[[[[5, 6]]]]])],
        options(fused_activation_function=ActivationFunctionType.RELU6),
    ),
    Case(
        "bias_left_out",
        [tensor([[[[[3]]]]]), const([[[[[2]]]]], np.float32), None],
        [tensor([[[[[6]]]]])],
        options(),
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


def made(
    x: tuple[int, ...] = (1, 4, 4, 4, 2), filter: tuple[int, ...] = (2, 2, 2, 2, 3), bias: int = 3, **fields: Any
) -> Case:
    operands = [tensor(np.zeros(shape)) for shape in (x, filter, (bias,))]
    return Case("", operands, [tensor(np.zeros(1))], options(**fields))


REFUSED = [
    ("input must have 5 dimensions, got 4 [4, 4, 4, 2]", made(x=(4, 4, 4, 2))),
    ("input has 4 channels, the filter expects 2", made(x=(1, 4, 4, 4, 4))),
    ("filter [2, 0, 2, 2, 3] must not be empty along dimension 1", made(filter=(2, 0, 2, 2, 3))),
    ("bias must have 3 elements (one an output channel), got 2 [2]", made(bias=2)),
    ("depth: a window of 9 (VALID padding) does not fit the input of 4", made(dilation_d_factor=8)),
    ("width: stride must be at least 1, got 0", made(stride_w=0)),
]


@pytest.mark.parametrize(("message", "case_"), REFUSED, ids=[message for message, _ in REFUSED])
def test_refuses(message: str, case_: Case) -> None:
    assert_refused(op, case_, message)
