"""STABLEHLO_REDUCE_WINDOW: bodies, padding, dilations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.stablehlo_reduce_window import op
from gossamer.schema import StablehloReduceWindowOptions
from tests.ops.bodies import BodyCase, assert_body_refused, run_body_case
from tests.ops.cases import tensor

X = tensor([1, 2, 3, 4])
ADD = ("STABLEHLO_ADD",)


def window(size: tuple[int, ...] = (2,), **attributes: tuple[int, ...]) -> StablehloReduceWindowOptions:
    return StablehloReduceWindowOptions(window_dimensions=size, body_subgraph_index=1, **attributes)


def pairs(body: str, start: Any, expected: Any, dtype: Any = np.float32) -> BodyCase:
    """Each two neighbours of [1, 2, 3, 4]."""
    return BodyCase(
        body.lower(), [tensor(X.value, dtype), tensor(start, dtype)], [tensor(expected, dtype)], window(), body=(body,)
    )


def summed(id: str, expected: Any, size: int = 2, start: float = 0, **attributes: tuple[int, ...]) -> BodyCase:
    return BodyCase(id, [X, tensor([start])], [tensor(expected)], window((size,), **attributes), body=ADD)


CASES = [
    pairs("ADD", 10, [13, 15, 17]),
    pairs("STABLEHLO_ADD", 10, [13, 15, 17], np.int8),
    pairs("MUL", 1, [2, 6, 12], np.int32),
    pairs("STABLEHLO_MULTIPLY", 2, [4, 12, 24]),
    pairs("MAXIMUM", 0, [2, 3, 4]),
    pairs("STABLEHLO_MAXIMUM", 3, [3, 3, 4], np.int64),
    pairs("MINIMUM", 9, [1, 2, 3]),
    pairs("STABLEHLO_MINIMUM", 2, [1, 2, 2]),
    pairs("LOGICAL_AND", True, [True] * 3, bool),
    pairs("STABLEHLO_AND", 0, [0] * 3, np.int32),
    pairs("LOGICAL_OR", False, [True] * 3, bool),
    summed("padding_has_the_start_value", [11, 8, 10, 12, 14], start=5, padding=(1, 1)),
    summed("crop", [5, 7], padding=(-1, 0)),
    summed("base_dilations", [1, 2, 2, 3, 3, 4], base_dilations=(2,)),
    summed("base_dilations_have_the_start_value", [11, 12, 12, 13, 13, 14], start=5, base_dilations=(2,)),
    summed("window_dilations", [4, 6], window_dilations=(2,)),
    summed("strides", [3, 7], window_strides=(2,)),
    summed("running_sum", [1, 3, 6, 10], size=4, padding=(3, 0)),
    BodyCase(
        "average_pool_without_the_average",
        [tensor(np.arange(9).reshape(1, 3, 3, 1)), tensor(0)],
        [tensor([[[[8], [7]], [[13], [8]]]])],
        window((1, 2, 2, 1), window_strides=(1, 2, 2, 1), padding=(0, 0, 0, 1, 0, 1, 0, 0)),
        body=("ADD",),
    ),
]


def test_case(case: BodyCase, backend: Any) -> None:
    run_body_case(backend, op, case)


REFUSED = [
    ("the body (subgraph 1) must be one of ADD", window(), ("SUB",)),
    ("it is ADD, ADD", window(), ("ADD", "ADD")),
    ("it is empty", window(), ()),
    ("window_dimensions must have 1 positive elements, got []", window(()), ADD),
    ("window_dimensions must have 1 positive elements, got [0]", window((0,)), ADD),
    ("window_strides must have 1 positive elements, got [1, 1]", window(window_strides=(1, 1)), ADD),
    ("window_dilations must have 1 positive elements, got [-1]", window(window_dilations=(-1,)), ADD),
    ("base_dilations must have 1 positive elements, got [0]", window(base_dilations=(0,)), ADD),
    ("padding must have 2 elements, got 1", window(padding=(1,)), ADD),
    ("padding leaves an empty tensor of shape [0]", window(padding=(-2, -2)), ADD),
    ("is too large", window(padding=(2**40, 0)), ADD),
]


@pytest.mark.parametrize(("message", "options", "body"), REFUSED, ids=[refused[0] for refused in REFUSED])
def test_refuses(message: str, options: StablehloReduceWindowOptions, body: tuple[str, ...]) -> None:
    assert_body_refused(op, BodyCase("", [X, tensor(0)], [tensor([0])], options, body=body), message)


def test_refuses_other_types() -> None:
    case = BodyCase("", [X, tensor(0, np.int8)], [tensor([0])], window(), body=ADD)
    assert_body_refused(op, case, "init_value must be float32 here, got int8")
    case = BodyCase("", [tensor([1], np.float16), tensor(0, np.float16)], [tensor([0], np.float16)], window(), body=ADD)
    assert_body_refused(op, case, "got float16")
