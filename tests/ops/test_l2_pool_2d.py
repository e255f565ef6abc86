"""L2_POOL_2D."""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer.ops.l2_pool_2d import op
from gossamer.schema import ActivationFunctionType, Padding, Pool2DOptions
from tests.ops.cases import Case, run_case, tensor
from tests.ops.reference import assert_refused


def options(padding: Padding = Padding.VALID, **fields: Any) -> Pool2DOptions:
    sizes = {"stride_h": 1, "stride_w": 1, "filter_height": 1, "filter_width": 1}
    return Pool2DOptions(**{"padding": padding, **sizes, **fields})


CASES = [
    Case(
        "valid",
        [tensor([[[[1], [-7], [5]]]])],
        [tensor([[[[5], [37**0.5]]]])],
        options(filter_width=2),
    ),
    Case(
        "same_counts_what_is_inside",
        [tensor([[[[1], [-7], [5]]]])],
        [tensor([[[[5], [37**0.5], [5]]]])],
        options(Padding.SAME, filter_width=2),
    ),
    Case(
        "relu6",
        [tensor([[[[-3], [8]]]])],
        [tensor([[[[3], [6]]]])],
        options(fused_activation_function=ActivationFunctionType.RELU6),
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


def test_refuses_integers() -> None:
    case = Case("", [tensor([[[[1]]]], np.int8, scale=1)], [tensor([[[[1]]]], np.int8, scale=1)], options())
    assert_refused(op, case, "input must be float32, got int8")
