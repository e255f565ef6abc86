"""CONV_3D_TRANSPOSE."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.errors import InvokeError
from gossamer.ops.conv_3d_transpose import op
from gossamer.schema import ActivationFunctionType, Conv3DOptions, Padding
from tests.ops.cases import Case, const, run_case, tensor
from tests.ops.reference import assert_refused, output_of


def options(padding: Padding = Padding.VALID, **fields: Any) -> Conv3DOptions:
    return Conv3DOptions(**{"padding": padding, "stride_d": 1, "stride_h": 1, "stride_w": 1, **fields})


def along_depth(*values: float) -> Any:
    return np.reshape(values, (1, -1, 1, 1, 1))


DECADES = const(np.reshape([1, 10, 100], (3, 1, 1, 1, 1)), np.float32)
PAIR = tensor(along_depth(1, 2))

CASES = [
    Case(
        "valid",
        [const([1, 5, 1, 1, 1]), DECADES, PAIR],
        [tensor(along_depth(1, 10, 102, 20, 200))],
        options(stride_d=2),
    ),
    Case(
        "same",
        [const([1, 4, 1, 1, 1]), DECADES, PAIR],
        [tensor(along_depth(1, 10, 102, 20))],
        options(Padding.SAME, stride_d=2),
    ),
    Case(
        "shape_fed",
        [tensor([1, 5, 1, 1, 1], np.int32), DECADES, PAIR],
        [tensor(along_depth(1, 10, 102, 20, 200))],
        options(stride_d=2),
    ),
    Case(
        "dilated",
        [const([1, 6, 1, 1, 1]), DECADES, PAIR],
        [tensor(along_depth(1, 2, 10, 20, 100, 200))],
        options(dilation_d_factor=2),
    ),
    Case(
        "channels_bias_relu6",
        [
            const([1, 1, 1, 1, 2]),
            const([[[[[1, 2], [0.1, 0.01]]]]], np.float32),
            tensor([[[[[10, 100]]]]]),
            const([1, 2], np.float32),
        ],
        [tensor([[[[[6, 4]]]]])],
        options(fused_activation_function=ActivationFunctionType.RELU6),
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


def made(shape: Any, filter: tuple[int, ...] = (3, 3, 3, 4, 2), **fields: Any) -> Case:
    """A case with this output_shape for an input of 2 x 2 x 2."""
    operands = [shape, tensor(np.zeros(filter)), tensor(np.zeros((1, 2, 2, 2, 2))), tensor(np.zeros(4))]
    return Case("", operands, [tensor(np.zeros(1))], options(**fields))


FITS = [1, 4, 4, 4, 4]

REFUSED = [
    ("output_shape must be a vector of 5, got shape [4]", made(const(FITS[:4]))),
    ("input has 2 channels, the filter expects 3", made(const(FITS), filter=(3, 3, 3, 4, 3))),
    (
        "output_shape [1, 4, 4, 4, 8] must be [1 (the batch), depth, height, width, 4 (the filters)]",
        made(const([1, 4, 4, 4, 8])),
    ),
    ("output_shape [1, -1, 4, 4, 4] must be", made(const([1, -1, 4, 4, 4]))),
    ("asks for an input of depth, height and width [3, 2, 2], got [2, 2, 2]", made(const([1, 5, 4, 4, 4]))),
    ("dilation_h_factor must be at least 1, got 0", made(tensor(FITS, np.int32), dilation_h_factor=0)),
]


@pytest.mark.parametrize(("message", "case_"), REFUSED, ids=[message for message, _ in REFUSED])
def test_refuses(message: str, case_: Case) -> None:
    assert_refused(op, case_, message)


def test_a_fed_shape_that_does_not_fit_fails_the_invocation() -> None:
    with pytest.raises(InvokeError, match="asks for an input of depth, height and width"):
        output_of(op, made(tensor([1, 5, 4, 4, 4], np.int32)))
